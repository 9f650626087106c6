#include "layout.h"

#include "patchbay/abi/kinds.h"
#include "patchbay/abi/services.h"

const struct layout_entry layout_of_c[] = {
#include "layout.inc"
};
const size_t layout_of_c_count = sizeof layout_of_c / sizeof layout_of_c[0];
