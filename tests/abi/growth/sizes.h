/* sizes.h - sizes of structs by the headers that sizes.c is compiled with; the list ends with a null name. */
#ifndef PATCHBAY_TESTS_ABI_SIZES_H
#define PATCHBAY_TESTS_ABI_SIZES_H
#include <stddef.h>

struct struct_size {
    const char *name;
    size_t      size;
};

#ifdef __cplusplus
extern "C" {
#endif
extern const struct struct_size sizes_kept_of_short[], sizes_short_of_short[], sizes_kept_of_long[], sizes_long_of_long[];
#ifdef __cplusplus
}
#endif
#endif
