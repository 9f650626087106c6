/* Sizes and offsets of what crosses, as a compiler lays it out: layout.c for C11, layout_test.cpp for C++20. */
#ifndef PATCHBAY_TESTS_ABI_LAYOUT_H
#define PATCHBAY_TESTS_ABI_LAYOUT_H
#include <stddef.h>

struct layout_entry { /* "pb_str", its size, 0; or "pb_str.data", offset, size */
    const char *name;
    size_t first, second;
};

#define STRUCT(type) {#type, sizeof(type), 0},
#define FIELD(type, field) {#type "." #field, offsetof(type, field), sizeof(((type *)0)->field)},

#ifdef __cplusplus
extern "C" {
#endif
extern const struct layout_entry layout_of_c[];
extern const size_t layout_of_c_count;
#ifdef __cplusplus
}
#endif
#endif
