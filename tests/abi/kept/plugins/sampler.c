/* kept_c - the highest allowed logit of each row, in plain C. */
#include <math.h>

#include "patchbay/abi/sampler.h"
#include "plain.h"

static int may(const pb_sample_row *row, int64_t token) {
    return !row->allowed || (row->allowed[token / 32] >> (token % 32) & 1u);
}

/* The highest number of x that is below (limit, token) in order: higher first, of equals the lower token; −1: none. */
static int32_t next_highest(const float *x, int64_t count, float limit, int32_t token) {
    int32_t best = -1;
    for (int64_t t = 0; t < count; ++t)
        if (x[t] > -INFINITY && (x[t] < limit || (x[t] == limit && t > token)) && (best < 0 || x[t] > x[best]))
            best = (int32_t)t;
    return best;
}

static double log_sum_exp(const float *x, int64_t count) {
    const int32_t highest = next_highest(x, count, INFINITY, -1);
    double sum = 0;
    if (highest < 0) return -INFINITY;
    for (int64_t t = 0; t < count; ++t)
        if (x[t] > -INFINITY) sum += exp((double)x[t] - x[highest]);
    return x[highest] + log(sum);
}

static void write_logprobs(pb_sample_batch *b, uint32_t i, const float *x, uint32_t wanted) {
    const int64_t vocab = b->logits.shape[1];
    const double norm = log_sum_exp(x, vocab);
    float limit = INFINITY;
    int32_t token = -1;
    if (wanted == 0) return;
    b->logprobs[i] = (float)(x[b->tokens[i]] - norm);
    for (uint32_t k = 0; k + 1 < wanted && k < b->max_logprobs; ++k) {
        const size_t to = (size_t)i * b->max_logprobs + k;
        token = next_highest(x, vocab, limit, token);
        if (token < 0) return;
        limit = x[token];
        b->top_tokens[to] = token;
        b->top_logprobs[to] = (float)(x[token] - norm);
    }
}

static pb_status sample(void *self, pb_sample_batch *b) {
    const int64_t vocab = b->logits.shape[1];
    (void)self;
    for (uint32_t i = 0; i < b->row_count; ++i) {
        const pb_sample_row *const row = (const pb_sample_row *)((const char *)b->rows + (size_t)i * b->row_stride);
        const float *const x = (const float *)b->logits.data + (int64_t)i * b->logits.strides[0];
        int32_t best = -1, first = -1;
        for (int64_t t = 0; t < vocab; ++t) {
            if (!may(row, t)) continue;
            if (first < 0) first = (int32_t)t;
            if (x[t] > -INFINITY && (best < 0 || x[t] > x[best])) best = (int32_t)t;
        }
        if (best < 0) b->faults[i] = 1;
        b->tokens[i] = best >= 0 ? best : first >= 0 ? first : 0;
        write_logprobs(b, i, x, row->params->logprobs);
    }
    return PB_OK;
}

static const pb_sampler table = {.struct_size = sizeof table, .sample = sample};
static const pb_component component = {.struct_size = sizeof component,
                                       .param_stride = sizeof(pb_param),
                                       .revision = PB_SAMPLER_REVISION,
                                       .kind = PB_SAMPLER,
                                       .name = "kept_c",
                                       .version = "1.0.0",
                                       .summary = "the most likely token",
                                       .create = create_plain,
                                       .destroy = destroy_plain,
                                       .vtable = &table};
EXPORT_ONE(component)
