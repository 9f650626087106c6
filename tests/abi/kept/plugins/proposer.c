/* kept_c - proposes the newest token over and over, in plain C. It has a parameter, state and a metric. */
#include <stdio.h>

#include "patchbay/abi/proposer.h"
#include "patchbay/abi/services.h"
#include "plain.h"

struct repeat {
    const pb_host *host;
    const pb_metrics *metrics; /* NULL: the host has none of this revision */
    uint32_t drafts, batches;
};

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    struct repeat *const out = calloc(1, sizeof *out);
    if (!out) return refuse(host, PB_EXHAUSTED, "no memory");
    for (uint32_t i = 0; i < config->count; ++i) {
        char digits[16] = "";
        const pb_setting *const s = &config->items[i];
        if (s->key.size != 6 || memcmp(s->key.data, "drafts", 6) != 0) continue;
        memcpy(digits, s->value.data, s->value.size < 15 ? s->value.size : 15);
        out->drafts = (uint32_t)strtoul(digits, NULL, 10);
    }
    out->host = host;
    out->metrics = host->service(host->ctx, PB_SERVICE_METRICS);
    if (out->metrics && out->metrics->revision != PB_METRICS_REVISION) out->metrics = NULL;
    *self = out;
    return PB_OK;
}

static pb_status propose(void *self, pb_propose_batch *b) {
    struct repeat *const r = self;
    for (uint32_t i = 0; i < b->row_count; ++i) {
        const pb_propose_row *const row = (const pb_propose_row *)((const char *)b->rows + (size_t)i * b->row_stride);
        const uint32_t count = row->token_count == 0 ? 0 : row->max_drafts < r->drafts ? row->max_drafts : r->drafts;
        for (uint32_t k = 0; k < count; ++k)
            b->drafts[(size_t)i * b->max_drafts + k] = row->tokens[row->token_count - 1];
        b->counts[i] = count;
    }
    r->batches += 1;
    if (r->metrics) r->metrics->add(r->metrics->ctx, "batches", 1);
    return PB_OK;
}

static pb_status save(void *self, const pb_sink *sink) {
    char text[16];
    const int size = snprintf(text, sizeof text, "%u", ((const struct repeat *)self)->batches);
    sink->put(sink->ctx, text, (size_t)size);
    return PB_OK;
}

static pb_status load(void *self, const char *state, pb_str bytes) {
    char text[16] = "", *end = text;
    struct repeat *const r = self;
    if (strcmp(state, "kept_c/1") != 0 || bytes.size == 0 || bytes.size >= sizeof text)
        return refuse(r->host, PB_BAD_STATE, "this is no number of batches");
    memcpy(text, bytes.data, bytes.size);
    const unsigned long batches = strtoul(text, &end, 10);
    if (end != text + bytes.size) return refuse(r->host, PB_BAD_STATE, "this is no number of batches");
    r->batches = (uint32_t)batches;
    return PB_OK;
}

static const pb_param params[] = {{.name = "drafts",
                                   .type = PB_PARAM_INT,
                                   .flags = PB_PARAM_HAS_MIN | PB_PARAM_HAS_MAX,
                                   .default_value = "2",
                                   .min = 1,
                                   .max = 8,
                                   .unit = "tokens",
                                   .description = "how often the newest token is repeated"}};
static const pb_proposer table = {.struct_size = sizeof table, .propose = propose};
static const pb_component component = {.struct_size = sizeof component,
                                       .param_count = 1,
                                       .param_stride = sizeof(pb_param),
                                       .revision = PB_PROPOSER_REVISION,
                                       .kind = PB_PROPOSER,
                                       .name = "kept_c",
                                       .version = "1.0.0",
                                       .summary = "repeats the newest token",
                                       .state = "kept_c/1",
                                       .params = params,
                                       .create = create,
                                       .destroy = destroy_plain,
                                       .save = save,
                                       .load = load,
                                       .vtable = &table};
EXPORT_ONE(component)
