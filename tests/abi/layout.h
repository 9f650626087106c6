/* Sizes and offsets of what crosses, as a compiler lays it out: layout.c for C11, layout_test.cpp for C++20. */
#ifndef PATCHBAY_TESTS_ABI_LAYOUT_H
#define PATCHBAY_TESTS_ABI_LAYOUT_H
#include <stddef.h>

struct layout_entry { /* "DEVICE", "revision", 1, 0; or "ABI", "pb_str", its size, 0; or "ABI", "pb_str.data", offset, size */
    const char *part, *name;
    size_t first, second;
};

#define PB_ABI_REVISION PB_ABI_MAJOR /* of what all kinds share */
#define REVISION(part) {#part, "revision", PB_##part##_REVISION, 0},
#define STRUCT(part, type) {#part, #type, sizeof(type), 0},
#define FIELD(part, type, field) {#part, #type "." #field, offsetof(type, field), sizeof(((type *)0)->field)},

#ifdef __cplusplus
extern "C" {
#endif
extern const struct layout_entry layout_of_c[];
extern const size_t layout_of_c_count;
#ifdef __cplusplus
}
#endif
#endif
