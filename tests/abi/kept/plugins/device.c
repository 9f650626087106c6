/* kept_c - stands before the device cpu and passes every call on, in plain C. */
#include "patchbay/abi/device.h"
#include "patchbay/abi/services.h"
#include "plain.h"

struct device {
    const pb_host *host;
    const pb_devices *devices;
    const pb_device *inner;
    void *self; /* the inner device's */
    const pb_ops *inner_ops;
    pb_ops ops;
};

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    const pb_devices *const devices = host->service(host->ctx, PB_SERVICE_DEVICES);
    struct device *const out = calloc(1, sizeof *out);
    pb_str why = {0};
    pb_status status;
    (void)config;
    if (!out) return refuse(host, PB_EXHAUSTED, "no memory");
    if (!devices || devices->revision != PB_DEVICES_REVISION) {
        free(out);
        return refuse(host, PB_UNAVAILABLE, "the host offers no devices");
    }
    out->host = host;
    out->devices = devices;
    status = devices->open(devices->ctx, "cpu", NULL, 0, &out->inner, &out->self, &why);
    if (status != PB_OK) {
        host->error(host->ctx, why);
        free(out);
        return status;
    }
    *self = out;
    return PB_OK;
}

/* Says why the inner device failed, if it did. */
static pb_status passed_on(const struct device *d, pb_status status) {
    if (status != PB_OK) d->host->error(d->host->ctx, d->devices->why(d->devices->ctx, d->self));
    return status;
}

static pb_status info(void *self, pb_device_info *out) {
    const struct device *const d = self;
    const pb_status status = passed_on(d, d->inner->info(d->self, out));
    if (status == PB_OK && !out->compatible_with[0]) strcpy(out->compatible_with, "cpu");
    return status;
}
static pb_status alloc(void *self, uint64_t bytes, void **out) {
    const struct device *const d = self;
    return passed_on(d, d->inner->alloc(d->self, bytes, out));
}
static void free_memory(void *self, void *memory) {
    const struct device *const d = self;
    d->inner->free(d->self, memory);
}
static pb_status to_device(void *self, void *to, const void *from, uint64_t bytes) {
    const struct device *const d = self;
    return passed_on(d, d->inner->to_device(d->self, to, from, bytes));
}
static pb_status to_host(void *self, void *to, const void *from, uint64_t bytes) {
    const struct device *const d = self;
    return passed_on(d, d->inner->to_host(d->self, to, from, bytes));
}
static pb_status prepare(void *self, const pb_weight_source *source, pb_weight **out) {
    const struct device *const d = self;
    return passed_on(d, d->inner->prepare(d->self, source, out));
}
static void release(void *self, pb_weight *weight) {
    const struct device *const d = self;
    d->inner->release(d->self, weight);
}
static uint64_t weight_bytes(void *self, const pb_weight *weight) {
    const struct device *const d = self;
    return d->inner->weight_bytes(d->self, weight);
}
static pb_status begin_step(void *self) {
    const struct device *const d = self;
    return passed_on(d, d->inner->begin_step(d->self));
}
static pb_status end_step(void *self) {
    const struct device *const d = self;
    return passed_on(d, d->inner->end_step(d->self));
}
static pb_status copy_page(void *self, void *to, const void *from, uint64_t bytes) {
    const struct device *const d = self;
    return passed_on(d, d->inner->copy_page(d->self, to, from, bytes));
}

/* ---- ops: each is there if the inner device has it ------------------------------------------- */

#define OP(name, parameters, ...)                                 \
    static void op_##name parameters {                            \
        const pb_ops *const inner = ((struct device *)ctx)->inner_ops; \
        inner->name(inner->ctx, __VA_ARGS__);                     \
    }
typedef const pb_tensor *tensor;
typedef const pb_weight *matrix;
OP(embedding, (void *ctx, tensor out, matrix table, tensor ids), out, table, ids)
OP(linear, (void *ctx, tensor out, tensor x, matrix w), out, x, w)
OP(rms_norm, (void *ctx, tensor out, tensor x, matrix w, float eps), out, x, w, eps)
OP(add_rms_norm, (void *ctx, tensor out, tensor residual, tensor x, matrix w, float eps), out, residual, x, w, eps)
OP(rope, (void *ctx, tensor x, tensor positions, matrix f, float scale), x, positions, f, scale)
OP(silu_mul, (void *ctx, tensor out, tensor gate_up), out, gate_up)
OP(add, (void *ctx, tensor a, tensor b), a, b)
OP(gather_rows, (void *ctx, tensor out, tensor x, tensor rows), out, x, rows)
OP(layer_norm, (void *ctx, tensor out, tensor x, matrix w, matrix b, float eps), out, x, w, b, eps)
OP(relu, (void *ctx, tensor x), x)
OP(gelu_tanh, (void *ctx, tensor x), x)
OP(gelu_tanh_mul, (void *ctx, tensor out, tensor gate_up), out, gate_up)
OP(scale, (void *ctx, tensor x, float factor), x, factor)
OP(soft_cap, (void *ctx, tensor x, float cap), x, cap)
OP(top_k, (void *ctx, tensor ids, tensor weights, tensor logits, uint32_t normalise), ids, weights, logits, normalise)
OP(expert_linear, (void *ctx, tensor out, tensor x, const pb_weight *const *experts, uint32_t count, tensor ids), out,
   x,
   experts, count, ids)
OP(weighted_sum, (void *ctx, tensor out, tensor x, tensor weights), out, x, weights)
OP(gated_mlp, (void *ctx, tensor out, tensor x, matrix gate_up, matrix down, pb_gate gate), out, x, gate_up, down, gate)
OP(causal_conv_silu,
   (void *ctx, tensor out, tensor x, matrix w, matrix bias, uint32_t width, const pb_state *state, uint64_t offset),
   out,
   x, w, bias, width, state, offset)
OP(ssm_scan,
   (void *ctx, tensor out, tensor x, tensor dt, tensor b, tensor c, const pb_scan *scan, const pb_state *state,
    uint64_t offset),
   out, x, dt, b, c, scan, state, offset)

static const pb_ops *ops(void *self) {
    struct device *const d = self;
    const pb_ops *const inner = d->inner->ops(d->self);
    if (!inner) return NULL;
    d->inner_ops = inner;
    d->ops.struct_size = sizeof d->ops;
    d->ops.ctx = d;
#define PASS(name) d->ops.name = PB_HAS(inner, name) && inner->name ? op_##name : NULL
    PASS(embedding);
    PASS(linear);
    PASS(rms_norm);
    PASS(add_rms_norm);
    PASS(rope);
    PASS(silu_mul);
    PASS(add);
    PASS(gather_rows);
    PASS(layer_norm);
    PASS(relu);
    PASS(gelu_tanh);
    PASS(gelu_tanh_mul);
    PASS(scale);
    PASS(soft_cap);
    PASS(top_k);
    PASS(expert_linear);
    PASS(weighted_sum);
    PASS(gated_mlp);
    PASS(causal_conv_silu);
    PASS(ssm_scan);
    return &d->ops;
}

static const pb_device table = {.struct_size = sizeof table,
                                .info = info,
                                .alloc = alloc,
                                .free = free_memory,
                                .to_device = to_device,
                                .to_host = to_host,
                                .prepare = prepare,
                                .release = release,
                                .weight_bytes = weight_bytes,
                                .ops = ops,
                                .begin_step = begin_step,
                                .end_step = end_step,
                                .copy_page = copy_page};
static const pb_component component = {.struct_size = sizeof component,
                                       .param_stride = sizeof(pb_param),
                                       .revision = PB_DEVICE_REVISION,
                                       .kind = PB_DEVICE,
                                       .name = "kept_c",
                                       .version = "1.0.0",
                                       .summary = "passes every call on to the device cpu",
                                       .create = create,
                                       .destroy = destroy_plain,
                                       .vtable = &table};
EXPORT_ONE(component)
