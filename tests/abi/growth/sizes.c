#include "sizes.h"

#include HEADERS

#define CHANGED(type) {#type, sizeof(type)},
const struct struct_size SIZES[] = {
#include LIST
    {NULL, 0}};
