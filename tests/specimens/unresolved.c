/* A plugin that was linked without what it calls: add_plugin() would not link it at all. */
#include <stddef.h>

int a_function_of_no_library(void);
const void *pb_plugin_v1(void);
const void *pb_plugin_v1(void) { return a_function_of_no_library() ? "" : NULL; }
