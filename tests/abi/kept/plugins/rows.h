/* rows.h - attention over pages in plain loops, for the C plugin and for the one over the SDK. A page is
 * [keys: kv_heads × block_size × head_dim][values: the same], f32. */
#ifndef KEPT_ROWS_H
#define KEPT_ROWS_H
#include <math.h>
#include <string.h>

#include "patchbay/abi/attention.h"

struct rows_shape {
    uint32_t heads, kv_heads, head_dim, block_size, window;
    float scale, soft_cap;
};

static inline struct rows_shape rows_shape_of(const pb_attention_spec *s) {
    const struct rows_shape out = {s->heads,          s->kv_heads, s->head_dim, s->block_size,
                                   s->sliding_window, s->scale,    s->soft_cap};
    return out;
}

/* Why such layers are not served; NULL: they are. */
static inline const char *rows_refusal(const pb_attention_spec *s) {
    if (!s->device || strcmp(s->device, "cpu") != 0) return "the device is not 'cpu'";
    if (s->activation_dtype != PB_F32 || s->kv_dtype != PB_F32) return "activations and KV have to be f32";
    if (s->kv_heads == 0 || s->heads == 0 || s->heads % s->kv_heads != 0) return "heads is no multiple of kv_heads";
    if (s->heads > 1024 || s->head_dim == 0 || s->head_dim > 1024) return "head_dim or heads not in 1 to 1024";
    if (s->block_size == 0 || s->block_size > 1024) return "block_size not in 1 to 1024";
    return 0;
}

static inline uint64_t rows_page_bytes(const pb_attention_spec *s) {
    return (uint64_t)2 * s->kv_heads * s->block_size * s->head_dim * sizeof(float);
}

static inline float *rows_slot(const struct rows_shape *s, const pb_kv_view *kv, int64_t page, uint32_t of_page,
                               uint32_t head, int value) {
    float *const keys = (float *)(void *)(kv->data + (uint64_t)page * kv->page_stride);
    const uint32_t row = ((value ? s->kv_heads : 0) + head) * s->block_size + of_page;
    return keys + (size_t)row * s->head_dim;
}

static inline const float *rows_at(const pb_tensor *t, int64_t token, int64_t head) {
    return (const float *)t->data + token * t->strides[0] + head * t->strides[1];
}

static inline void rows_append(const struct rows_shape *s, const pb_attention_batch *b, const pb_kv_view *kv,
                               const pb_tensor *k, const pb_tensor *v) {
    for (uint32_t t = 0; t < b->token_count; ++t) {
        const int64_t slot = b->slot_mapping[t];
        if (slot < 0) continue;
        for (uint32_t h = 0; h < s->kv_heads; ++h) {
            const uint32_t of_page = (uint32_t)(slot % s->block_size);
            memcpy(rows_slot(s, kv, slot / s->block_size, of_page, h, 0), rows_at(k, t, h), s->head_dim * sizeof(float));
            memcpy(rows_slot(s, kv, slot / s->block_size, of_page, h, 1), rows_at(v, t, h), s->head_dim * sizeof(float));
        }
    }
}

/* out = sum of values by the softmax of scores, kept as a running maximum and sum. acc: head_dim numbers. */
static inline void rows_attend(const struct rows_shape *s, const pb_attention_batch *b, const pb_kv_view *kv,
                               uint32_t sequence, int32_t position, uint32_t head, const float *q, float *out,
                               double *acc) {
    const uint32_t group = head / (s->heads / s->kv_heads);
    const int32_t window = (int32_t)s->window;
    const int32_t *const blocks = b->blocks + b->block_starts[sequence];
    double highest = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < s->head_dim; ++i) acc[i] = 0;
    for (int32_t j = window > 0 && position >= window ? position - window + 1 : 0; j <= position; ++j) {
        const int32_t page = blocks[(uint32_t)j / s->block_size];
        const float *const key = rows_slot(s, kv, page, (uint32_t)j % s->block_size, group, 0);
        const float *const value = rows_slot(s, kv, page, (uint32_t)j % s->block_size, group, 1);
        double score = 0, weight, shrink;
        for (uint32_t i = 0; i < s->head_dim; ++i) score += (double)q[i] * key[i];
        score *= s->scale;
        if (s->soft_cap > 0) score = s->soft_cap * tanh(score / s->soft_cap);
        shrink = score > highest ? exp(highest - score) : 1;
        if (score > highest) highest = score;
        weight = exp(score - highest);
        sum = sum * shrink + weight;
        for (uint32_t i = 0; i < s->head_dim; ++i) acc[i] = acc[i] * shrink + weight * value[i];
    }
    for (uint32_t i = 0; i < s->head_dim; ++i) out[i] = (float)(acc[i] / sum);
}

static inline void rows_run(const struct rows_shape *s, const pb_attention_batch *b, const pb_kv_view *kv,
                            const pb_tensor *out, const pb_tensor *q, double *acc) {
    for (uint32_t n = 0; n < b->seq_count; ++n)
        for (int32_t t = b->query_starts[n]; t < b->query_starts[n + 1]; ++t)
            for (uint32_t h = 0; h < s->heads; ++h)
                rows_attend(s, b, kv, n, b->positions[t], h, rows_at(q, t, h), (float *)rows_at(out, t, h), acc);
}

#endif
