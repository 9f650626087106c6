/* kept_c - attention of f32 rows in host memory, in plain C. */
#include <stdio.h>

#include "plain.h"
#include "rows.h"

struct bound {
    struct rows_shape shape;
    double acc[1024];
};

static pb_status describe(void *self, const pb_attention_spec *spec, pb_attention_layout *out) {
    const char *const why = rows_refusal(spec);
    if (why) return refuse(((const struct plain *)self)->host, PB_UNSUPPORTED, why);
    out->graphs = PB_GRAPHS_NONE;
    out->page_bytes = rows_page_bytes(spec);
    out->plan_bytes = 0;
    snprintf(out->layout_tag, sizeof out->layout_tag, "kept/%ux%ux%u", spec->block_size, spec->kv_heads,
             spec->head_dim);
    return PB_OK;
}

static pb_status bind(void *self, const pb_attention_spec *spec, void **bound) {
    const pb_host *const host = ((const struct plain *)self)->host;
    const char *const why = rows_refusal(spec);
    struct bound *out;
    if (why) return refuse(host, PB_UNSUPPORTED, why);
    out = malloc(sizeof *out);
    if (!out) return refuse(host, PB_EXHAUSTED, "no memory");
    out->shape = rows_shape_of(spec);
    *bound = out;
    return PB_OK;
}

static void unbind(void *self, void *bound) { (void)self, free(bound); }

static pb_status plan(void *self, void *bound, const pb_attention_batch *batch, void *buffer) {
    return (void)self, (void)bound, (void)batch, (void)buffer, PB_OK;
}

static void append_kv(void *self, void *bound, const pb_attention_batch *batch, const pb_kv_view *kv,
                      const pb_tensor *k,
                      const pb_tensor *v) {
    (void)self;
    rows_append(&((const struct bound *)bound)->shape, batch, kv, k, v);
}

static void run(void *self, void *bound, const pb_attention_batch *batch, const pb_kv_view *kv, const pb_tensor *out,
                const pb_tensor *q) {
    struct bound *const b = bound;
    (void)self;
    rows_run(&b->shape, batch, kv, out, q, b->acc);
}

static const pb_attention table = {.struct_size = sizeof table,
                                   .describe = describe,
                                   .bind = bind,
                                   .unbind = unbind,
                                   .plan = plan,
                                   .append_kv = append_kv,
                                   .run = run};
static const pb_component component = {.struct_size = sizeof component,
                                       .param_stride = sizeof(pb_param),
                                       .revision = PB_ATTENTION_REVISION,
                                       .kind = PB_ATTENTION,
                                       .name = "kept_c",
                                       .version = "1.0.0",
                                       .summary = "attention in plain loops",
                                       .create = create_plain,
                                       .destroy = destroy_plain,
                                       .vtable = &table};
EXPORT_ONE(component)
