/* @name@ - a device in C11: another device that computes, with less memory. To see what an engine does where that is
 * scarce. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchbay/abi/device.h"
#include "patchbay/abi/services.h"
#include "patchbay/plugin_names.h"

static const pb_param params[] = { /* the schema: what YAML may set */
    {"inner", PB_PARAM_STRING, 0, "cpu", 0, 0, NULL, NULL, "the device that computes, with its default settings"},
    {"memory_mib", PB_PARAM_INT, PB_PARAM_HAS_MIN | PB_PARAM_HAS_MAX, "1048576", 1, 1e9, NULL, "MiB",
     "memory for weights and KV, at most"},
};

typedef struct block { /* what alloc() gave */
    void *memory;
    uint64_t bytes;
    struct block *next;
} block;

typedef struct @Class@ {
    const pb_host *host;
    const pb_devices *devices;
    const pb_device *inner; /* its table; `self` is its object */
    void *self;
    char name[64];         /* of the inner device */
    uint64_t memory, used; /* bytes */
    block *blocks;
} @Class@;

static pb_status fail(const @Class@ *me, pb_status status, const char *why) {
    me->host->error(me->host->ctx, (pb_str){why, strlen(why)});
    return status;
}
/* Passes a failure of the inner device on. */
static pb_status pass_on(const @Class@ *me, pb_status status) {
    if (status != PB_OK) me->host->error(me->host->ctx, me->devices->why(me->devices->ctx, me->self));
    return status;
}

static void setting(const pb_config *config, const char *key, char *out, size_t size) { /* its text, terminated */
    for (uint32_t i = 0; i < config->count; ++i) {
        const pb_setting *const s = &config->items[i];
        const size_t n = s->value.size < size ? s->value.size : size - 1;
        if (s->key.size != strlen(key) || memcmp(s->key.data, key, s->key.size) != 0) continue;
        memcpy(out, s->value.data, n);
        out[n] = 0;
    }
}

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    @Class@ *const me = calloc(1, sizeof *me);
    char mib[32] = "";
    pb_str why = {"", 0};
    pb_status status = PB_UNAVAILABLE;
    if (!me) return PB_FAILED;
    me->host = host;
    me->devices = host->service(host->ctx, PB_SERVICE_DEVICES);
    setting(config, "inner", me->name, sizeof me->name);
    setting(config, "memory_mib", mib, sizeof mib);
    me->memory = strtoull(mib, NULL, 10) << 20;
    if (me->devices && me->devices->revision == PB_DEVICES_REVISION)
        status = me->devices->open(me->devices->ctx, me->name, NULL, 0, &me->inner, &me->self, &why);
    if (status == PB_OK) {
        *self = me;
        return PB_OK;
    }
    host->error(host->ctx, why);
    free(me);
    return status;
}

static void destroy(void *self) { free(self); } /* the host closes the inner device */

static pb_status info(void *self, pb_device_info *out) {
    const @Class@ *const me = self;
    const pb_status status = pass_on(me, me->inner->info(me->self, out));
    if (status != PB_OK) return status;
    if (!out->computes) return fail(me, PB_UNSUPPORTED, "an inner device that computes nothing");
    if (!out->compatible_with[0]) /* attention and samplers of the inner device serve this one */
        snprintf(out->compatible_with, sizeof out->compatible_with, "%.31s", me->name);
    if (out->memory_total > me->memory) out->memory_total = me->memory;
    if (out->memory_free > me->memory) out->memory_free = me->memory;
    return PB_OK;
}

/* Memory, weights, ops and steps are the inner device's, within the bound. */
static pb_status take(@Class@ *me, uint64_t bytes) {
    if (bytes > me->memory - me->used) return fail(me, PB_EXHAUSTED, "it does not fit into memory_mib");
    me->used += bytes;
    return PB_OK;
}
static pb_status device_alloc(void *self, uint64_t bytes, void **out) {
    @Class@ *const me = self;
    block *const b = malloc(sizeof *b);
    pb_status status = b ? take(me, bytes) : PB_FAILED;
    if (status == PB_OK && (status = pass_on(me, me->inner->alloc(me->self, bytes, out))) != PB_OK) me->used -= bytes;
    if (status != PB_OK) {
        free(b);
        return status;
    }
    *b = (block){*out, bytes, me->blocks};
    me->blocks = b;
    return PB_OK;
}
static void device_free(void *self, void *memory) {
    @Class@ *const me = self;
    me->inner->free(me->self, memory);
    for (block **at = &me->blocks; *at; at = &(*at)->next) {
        block *const b = *at;
        if (b->memory != memory) continue;
        me->used -= b->bytes;
        *at = b->next;
        free(b);
        return;
    }
}
static uint64_t weight_bytes(void *self, const pb_weight *w) {
    const @Class@ *const me = self;
    return me->inner->weight_bytes(me->self, w);
}
static pb_status prepare(void *self, const pb_weight_source *source, pb_weight **out) {
    @Class@ *const me = self;
    pb_status status = pass_on(me, me->inner->prepare(me->self, source, out));
    if (status == PB_OK && (status = take(me, weight_bytes(self, *out))) != PB_OK) me->inner->release(me->self, *out);
    return status;
}
static void release(void *self, pb_weight *w) {
    @Class@ *const me = self;
    me->used -= weight_bytes(self, w);
    me->inner->release(me->self, w);
}
static pb_status to_device(void *self, void *to, const void *from, uint64_t bytes) {
    const @Class@ *const me = self;
    return pass_on(me, me->inner->to_device(me->self, to, from, bytes));
}
static pb_status to_host(void *self, void *to, const void *from, uint64_t bytes) {
    const @Class@ *const me = self;
    return pass_on(me, me->inner->to_host(me->self, to, from, bytes));
}
static pb_status copy_page(void *self, void *to, const void *from, uint64_t bytes) {
    const @Class@ *const me = self;
    return pass_on(me, me->inner->copy_page(me->self, to, from, bytes));
}
static const pb_ops *ops(void *self) {
    const @Class@ *const me = self;
    return me->inner->ops(me->self);
}
static pb_status begin_step(void *self) {
    const @Class@ *const me = self;
    return pass_on(me, me->inner->begin_step(me->self));
}
static pb_status end_step(void *self) {
    const @Class@ *const me = self;
    return pass_on(me, me->inner->end_step(me->self));
}
static void *queue(void *self) {
    const @Class@ *const me = self;
    return me->inner->queue ? me->inner->queue(me->self) : NULL;
}

static const pb_device table = {sizeof table, 0, info, device_alloc, device_free, to_device, to_host, prepare, release,
                                weight_bytes, ops, begin_step, end_step, copy_page, queue};
static const pb_component component = {
    .struct_size = sizeof component, .revision = PB_DEVICE_REVISION, .kind = PB_DEVICE,
    .name = "@name@", .version = "0.1.0", .summary = "another device, with less memory",
    .params = params, .param_count = 2, .param_stride = sizeof params[0],
    .create = create, .destroy = destroy, .vtable = &table,
};
static const pb_component *const components[] = {&component};

__attribute__((visibility("default"))) const pb_plugin pb_plugin_v1 = {
    PB_MAGIC, PB_ABI_MAJOR, PB_ABI_MINOR, sizeof pb_plugin_v1, 1,
    PATCHBAY_PLUGIN_NAME, PATCHBAY_PLUGIN_VERSION, PATCHBAY_PLUGIN_BUILD, components};
