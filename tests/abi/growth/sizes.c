#include "sizes.h"

#include "patchbay/abi/attention.h"
#include "patchbay/abi/model.h"
#include "patchbay/abi/proposer.h"
#include "patchbay/abi/sampler.h"
#include "patchbay/abi/scheduler.h"
#include "patchbay/abi/services.h"

#define CHANGED(type) {#type, sizeof(type)},
const struct struct_size SIZES[] = {
#include LIST
    {NULL, 0}};
