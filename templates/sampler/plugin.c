/* @name@ - a sampler in C11: draws among the tokens that are at least so likely, compared with the best one (min-p). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "patchbay/abi/sampler.h"
#include "patchbay/plugin_names.h"

static const pb_param params[] = { /* the schema: what YAML may set */
    {"floor", PB_PARAM_FLOAT, PB_PARAM_HAS_MIN | PB_PARAM_HAS_MAX, "0.05", 0, 1, NULL, NULL,
     "probability, relative to the likeliest token's, below which a token is not drawn"},
};

typedef struct @Class@ {
    double log_floor; /* -infinity: every token is drawn */
} @Class@;

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    @Class@ *const made = malloc(sizeof *made);
    const pb_str value = config->items[0].value; /* every key of the schema is there, with a value in its range */
    char number[64] = "";
    (void)host;
    if (!made) return PB_FAILED;
    memcpy(number, value.data, value.size < sizeof number ? value.size : sizeof number - 1); /* it is not terminated */
    made->log_floor = log(strtod(number, NULL));
    *self = made;
    return PB_OK;
}

static void destroy(void *self) { free(self); }

static int allowed(const pb_sample_row *row, int64_t t) {
    return !row->allowed || row->allowed[t / 32] >> (t % 32) & 1;
}

/* In (0, 1): noise of the request's own, a function of (seed, position) alone (splitmix64). */
static double uniform(uint64_t seed, uint64_t position) {
    uint64_t x = seed + 0x9E3779B97F4A7C15u * (position + 1);
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return ((double)((x ^ x >> 31) >> 11) + 0.5) * 0x1p-53;
}

/* The highest logit's token, of equal ones the lowest; -1: all are NaN or excluded. */
static int64_t likeliest(const pb_sample_row *row, const float *logits, int64_t vocab) {
    int64_t best = -1;
    for (int64_t t = 0; t < vocab; ++t)
        if (logits[t] > (best < 0 ? -INFINITY : logits[best]) && allowed(row, t)) best = t;
    return best;
}

/* Weight of a token in the draw; the likeliest has 1, one that is not drawn 0. */
static double weight(const @Class@ *me, const pb_sample_row *row, const float *logits, int64_t best, int64_t t) {
    const double relative = ((double)logits[t] - logits[best]) / row->params->temperature;
    return relative >= me->log_floor && allowed(row, t) ? exp(relative) : 0; /* of NaN: 0 */
}

static int64_t draw(const @Class@ *me, const pb_sample_row *row, const float *logits, int64_t vocab) {
    const int64_t best = likeliest(row, logits, vocab);
    int64_t chosen = best;
    double total = 0, rest;
    if (best < 0 || row->params->temperature <= 0) return best;
    for (int64_t t = 0; t < vocab; ++t) total += weight(me, row, logits, best, t);
    rest = total * uniform(row->seed, row->position);
    for (int64_t t = 0; t < vocab && rest >= 0; ++t) {
        const double w = weight(me, row, logits, best, t);
        if (w > 0) chosen = t;
        rest -= w;
    }
    return chosen;
}

/* Log-softmax of the raw logits: of the sampled token, and the highest ones. */
static void write_logprobs(pb_sample_batch *batch, uint32_t i, uint32_t wanted, const float *logits, int64_t vocab) {
    const size_t room = batch->max_logprobs;
    double highest = -INFINITY, sum = 0;
    for (int64_t t = 0; t < vocab; ++t) highest = fmax(highest, logits[t]);
    for (int64_t t = 0; t < vocab; ++t) sum += logits[t] == logits[t] ? exp(logits[t] - highest) : 0;
    batch->logprobs[i] = (float)(logits[batch->tokens[i]] - highest - log(sum));
    for (uint32_t k = 0; k + 1 < wanted && k < room && k < vocab; ++k) {
        int32_t *const top = batch->top_tokens + i * room;
        int64_t next = -1; /* the highest of those that come after the one before */
        for (int64_t t = 0; t < vocab; ++t) {
            const int after = k == 0 || logits[t] < logits[top[k - 1]] ||
                              (logits[t] == logits[top[k - 1]] && t > top[k - 1]);
            if (after && (next < 0 || logits[t] > logits[next])) next = t;
        }
        if (next < 0) return;
        top[k] = (int32_t)next;
        batch->top_logprobs[i * room + k] = (float)(logits[next] - highest - log(sum));
    }
}

/* Once a step. A token depends on its own row alone, never on the rows beside it. */
static pb_status sample(void *self, pb_sample_batch *batch) {
    const int64_t vocab = batch->logits.shape[1];
    for (uint32_t i = 0; i < batch->row_count; ++i) {
        const pb_sample_row *row = (const pb_sample_row *)((const char *)batch->rows + (size_t)i * batch->row_stride);
        const float *const logits = (const float *)batch->logits.data + i * batch->logits.strides[0];
        int64_t token = draw(self, row, logits, vocab);
        if (token < 0) batch->faults[i] = 1; /* it still gets an allowed token */
        for (int64_t t = 0; token < 0 && t < vocab; ++t)
            if (allowed(row, t) || t + 1 == vocab) token = t;
        batch->tokens[i] = (int32_t)token;
        if (row->params->logprobs > 0) write_logprobs(batch, i, row->params->logprobs, logits, vocab);
    }
    return PB_OK;
}

static const pb_sampler table = {.struct_size = sizeof table, .sample = sample};
static const pb_component component = {
    .struct_size = sizeof component, .revision = PB_SAMPLER_REVISION, .kind = PB_SAMPLER,
    .name = "@name@", .version = "0.1.0", .summary = "draws among the tokens above a relative floor",
    .params = params, .param_count = 1, .param_stride = sizeof params[0],
    .create = create, .destroy = destroy, .vtable = &table,
};
static const pb_component *const components[] = {&component};

__attribute__((visibility("default"))) const pb_plugin pb_plugin_v1 = {
    PB_MAGIC, PB_ABI_MAJOR, PB_ABI_MINOR, sizeof pb_plugin_v1, 1,
    PATCHBAY_PLUGIN_NAME, PATCHBAY_PLUGIN_VERSION, PATCHBAY_PLUGIN_BUILD, components};
