#include "layout.h"

#include "patchbay/abi/attention.h"
#include "patchbay/abi/model.h"
#include "patchbay/abi/proposer.h"
#include "patchbay/abi/sampler.h"
#include "patchbay/abi/scheduler.h"
#include "patchbay/abi/services.h"

const struct layout_entry layout_of_c[] = {
#include "layout.inc"
};
const size_t layout_of_c_count = sizeof layout_of_c / sizeof layout_of_c[0];
