/* plain.h - what each of the C plugins says in the same words: why it fails, and the table that it exports. */
#ifndef KEPT_PLAIN_H
#define KEPT_PLAIN_H
#include <stdlib.h>
#include <string.h>

#include "patchbay/abi.h"

/* An object that knows no more than its host. */
struct plain {
    const pb_host *host;
};

__attribute__((unused)) static pb_status refuse(const pb_host *host, pb_status status, const char *why) {
    host->error(host->ctx, (pb_str){why, strlen(why)});
    return status;
}

__attribute__((unused)) static pb_status create_plain(const pb_host *host, const pb_config *config, void **self) {
    struct plain *const out = malloc(sizeof *out);
    (void)config;
    if (!out) return refuse(host, PB_EXHAUSTED, "no memory");
    out->host = host;
    *self = out;
    return PB_OK;
}
__attribute__((unused)) static void destroy_plain(void *self) { free(self); }

#define EXPORT_ONE(component)                                                                                  \
    static const pb_component *const components[] = {&component};                                              \
    __attribute__((visibility("default"))) extern const pb_plugin pb_plugin_v1;                                \
    const pb_plugin pb_plugin_v1 = {PB_MAGIC, PB_ABI_MAJOR, PB_ABI_MINOR, sizeof pb_plugin_v1, 1, "kept in C", \
                                    "1.0.0",  "by hand",    components};

#endif
