/* @name@ - attention in C11 over pages of KV on the CPU, a query at a time with a running softmax. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchbay/abi/attention.h"
#include "patchbay/abi/services.h"
#include "patchbay/plugin_names.h"

#define MAX_HEAD_DIM 256

static const pb_param params[] = { /* the schema: what YAML may set */
    {"parallel", PB_PARAM_BOOL, 0, "true", 0, 0, NULL, NULL, "compute sequences on the threads of the pool"},
};

typedef struct @Class@ {
    const pb_host *host;
    const pb_pool *pool; /* NULL: on the calling thread */
} @Class@;

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    @Class@ *const made = malloc(sizeof *made);
    const pb_pool *const pool = host->service(host->ctx, PB_SERVICE_POOL);
    if (!made) return PB_FAILED;
    made->host = host;
    made->pool = pool && pool->revision == PB_POOL_REVISION && config->items[0].value.data[0] == 't' ? pool : NULL;
    *self = made;
    return PB_OK;
}

static void destroy(void *self) { free(self); }

static pb_status refuse(const @Class@ *me, const char *why) {
    me->host->error(me->host->ctx, (pb_str){why, strlen(why)});
    return PB_UNSUPPORTED;
}

static uint64_t bytes_of(const pb_attention_spec *s) { return s->kv_dtype == PB_F32 ? 4 : 2; }

/* How many bytes a page of one layer takes, or why it does not serve such layers. */
static pb_status describe(void *self, const pb_attention_spec *s, pb_attention_layout *out) {
    const uint64_t page_bytes = 2ull * s->block_size * s->kv_heads * s->head_dim * bytes_of(s);
    if (!s->device || strcmp(s->device, "cpu") != 0) return refuse(self, "the device is not 'cpu'");
    if (s->activation_dtype != PB_F32) return refuse(self, "activations are not f32");
    if (s->kv_dtype != PB_F32 && s->kv_dtype != PB_BF16) return refuse(self, "kv dtype is neither f32 nor bf16");
    if (s->head_dim < 1 || s->head_dim > MAX_HEAD_DIM) return refuse(self, "head_dim is not in 1 to 256");
    if (s->block_size < 1 || s->block_size > 65536) return refuse(self, "block_size is not in 1 to 65536");
    if (s->heads < 1 || s->heads > 65536) return refuse(self, "heads is not in 1 to 65536");
    if (s->kv_heads < 1 || s->heads % s->kv_heads) return refuse(self, "kv_heads does not divide heads");
    out->graphs = PB_GRAPHS_NONE;
    out->page_bytes = page_bytes;
    out->plan_bytes = 0;
    snprintf(out->layout_tag, sizeof out->layout_tag, "@name@/%d/%ux%ux%u", (int)s->kv_dtype, s->block_size,
             s->kv_heads, s->head_dim);
    return PB_OK;
}

/* What append_kv() and run() get: what the layers of one KV group need. */
static pb_status bind_group(void *self, const pb_attention_spec *spec, void **bound) {
    (void)self;
    pb_attention_spec *const s = malloc(sizeof *s);
    if (!s) return PB_FAILED;
    *s = *spec;
    *bound = s;
    return PB_OK;
}
static void unbind(void *self, void *bound) { (void)self, free(bound); }
static pb_status plan(void *self, void *bound, const pb_attention_batch *batch, void *buffer) {
    (void)self, (void)bound, (void)batch, (void)buffer; /* once a step: this one has nothing to prepare */
    return PB_OK;
}

/* A page: keys (block_size, kv_heads, head_dim), then values likewise. half 0: keys, 1: values. */
static uint8_t *address(const pb_attention_spec *s, const pb_kv_view *kv, uint64_t half, int64_t slot, uint32_t head) {
    const uint64_t page = (uint64_t)slot / s->block_size, offset = (uint64_t)slot % s->block_size;
    return kv->data + page * kv->page_stride +
           ((half * s->block_size + offset) * s->kv_heads + head) * s->head_dim * bytes_of(s);
}
static float read(const pb_attention_spec *s, const uint8_t *at, uint32_t i) {
    uint32_t bits;
    float out;
    if (s->kv_dtype == PB_F32) return ((const float *)at)[i];
    bits = (uint32_t)((const uint16_t *)at)[i] << 16;
    memcpy(&out, &bits, sizeof out);
    return out;
}
static void write(const pb_attention_spec *s, uint8_t *at, uint32_t i, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (s->kv_dtype == PB_F32) ((float *)at)[i] = value;
    else if (value != value) ((uint16_t *)at)[i] = (uint16_t)(bits >> 16 | 0x40);
    else ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* to nearest, ties to even */
}
static float *row(const pb_tensor *x, int64_t token, int64_t head) {
    return (float *)x->data + token * x->strides[0] + head * x->strides[1];
}

/* k, v: (T, kv_heads, head_dim) f32 */
static void append_kv(void *self, void *bound, const pb_attention_batch *batch, const pb_kv_view *kv,
                      const pb_tensor *k, const pb_tensor *v) {
    const pb_attention_spec *const s = bound;
    (void)self;
    for (uint32_t t = 0; t < batch->token_count; ++t) {
        const int64_t slot = batch->slot_mapping[t]; /* page · block_size + offset in it */
        for (uint32_t h = 0; h < s->kv_heads && slot >= 0; ++h)
            for (uint32_t i = 0; i < s->head_dim; ++i) {
                write(s, address(s, kv, 0, slot, h), i, row(k, t, h)[i]);
                write(s, address(s, kv, 1, slot, h), i, row(v, t, h)[i]);
            }
    }
}

/* One query (head_dim) of query head h at `position` over the keys that it sees. */
static void attend(const pb_attention_spec *s, const pb_kv_view *kv, const int32_t *table, int64_t position, uint32_t h,
                   const float *q, float *out) {
    const uint32_t kv_head = h / (s->heads / s->kv_heads);
    const int64_t window = s->sliding_window ? s->sliding_window : position + 1;
    double greatest = -INFINITY, total = 0, sum[MAX_HEAD_DIM] = {0};
    for (int64_t key = position + 1 > window ? position + 1 - window : 0; key <= position; ++key) {
        const int64_t slot = (int64_t)table[key / s->block_size] * s->block_size + key % s->block_size;
        const uint8_t *const k = address(s, kv, 0, slot, kv_head), *const v = address(s, kv, 1, slot, kv_head);
        double score = 0;
        for (uint32_t i = 0; i < s->head_dim; ++i) score += (double)q[i] * read(s, k, i);
        score *= s->scale;
        if (s->soft_cap > 0) score = s->soft_cap * tanh(score / s->soft_cap);
        const double highest = fmax(greatest, score), kept = exp(greatest - highest), weight = exp(score - highest);
        greatest = highest;
        total = total * kept + weight;
        for (uint32_t i = 0; i < s->head_dim; ++i) sum[i] = sum[i] * kept + weight * read(s, v, i);
    }
    for (uint32_t i = 0; i < s->head_dim; ++i) out[i] = (float)(sum[i] / total);
}

typedef struct work { /* of run(), for the tasks of the pool */
    const pb_attention_spec *s;
    const pb_attention_batch *batch;
    const pb_kv_view *kv;
    const pb_tensor *out, *q;
} work;

static void attend_sequence(void *arg, uint32_t seq) {
    const work *const w = arg;
    const int32_t *const table = w->batch->blocks + w->batch->block_starts[seq];
    for (int32_t t = w->batch->query_starts[seq]; t < w->batch->query_starts[seq + 1]; ++t)
        for (uint32_t h = 0; h < w->s->heads; ++h)
            attend(w->s, w->kv, table, w->batch->positions[t], h, row(w->q, t, h), row(w->out, t, h));
}

/* out (T, heads, head_dim) from q (T, heads, head_dim), both f32. */
static void run(void *self, void *bound, const pb_attention_batch *batch, const pb_kv_view *kv, const pb_tensor *out,
                const pb_tensor *q) {
    const @Class@ *const me = self;
    work w = {bound, batch, kv, out, q};
    if (me->pool) me->pool->run(me->pool->ctx, batch->seq_count, attend_sequence, &w);
    else
        for (uint32_t seq = 0; seq < batch->seq_count; ++seq) attend_sequence(&w, seq);
}

static const pb_attention table = {.struct_size = sizeof table,
                                   .describe = describe,
                                   .bind = bind_group,
                                   .unbind = unbind,
                                   .plan = plan,
                                   .append_kv = append_kv,
                                   .run = run};
static const pb_component component = {
    .struct_size = sizeof component, .revision = PB_ATTENTION_REVISION, .kind = PB_ATTENTION,
    .name = "@name@", .version = "0.1.0", .summary = "a query at a time, with a running softmax",
    .params = params, .param_count = 1, .param_stride = sizeof params[0],
    .create = create, .destroy = destroy, .vtable = &table,
};
static const pb_component *const components[] = {&component};

__attribute__((visibility("default"))) const pb_plugin pb_plugin_v1 = {
    PB_MAGIC, PB_ABI_MAJOR, PB_ABI_MINOR, sizeof pb_plugin_v1, 1,
    PATCHBAY_PLUGIN_NAME, PATCHBAY_PLUGIN_VERSION, PATCHBAY_PLUGIN_BUILD, components};
