/* @name@ - a proposer in C11: drafts the tokens that followed the newest token where it occurred last. */
#include <stdlib.h>
#include <string.h>

#include "patchbay/abi/proposer.h"
#include "patchbay/plugin_names.h"

static const pb_param params[] = { /* the schema: what YAML may set */
    {"window", PB_PARAM_INT, PB_PARAM_HAS_MIN | PB_PARAM_HAS_MAX, "4096", 1, 1e7, NULL, "tokens",
     "how far back to look"},
};

typedef struct @Class@ {
    uint32_t window;
} @Class@;

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    @Class@ *const made = malloc(sizeof *made);
    char number[32] = "";
    (void)host;
    if (!made) return PB_FAILED;
    /* Every key of the schema is there, with a value in its range; texts are not terminated. */
    memcpy(number, config->items[0].value.data,
           config->items[0].value.size < sizeof number ? config->items[0].value.size : sizeof number - 1);
    made->window = (uint32_t)strtoul(number, NULL, 10);
    *self = made;
    return PB_OK;
}

static void destroy(void *self) { free(self); }

/* Once a step, for the sequences that decode. The engine verifies all drafts: a wrong one costs time, never a text. */
static pb_status propose(void *self, pb_propose_batch *batch) {
    const @Class@ *const me = self;
    for (uint32_t i = 0; i < batch->row_count; ++i) {
        const pb_propose_row *row = (const pb_propose_row *)((const char *)batch->rows + (size_t)i * batch->row_stride);
        const uint32_t newest = row->token_count - 1;
        const uint32_t first = row->token_count > me->window ? newest + 1 - me->window : 0;
        uint32_t at = newest; /* then where it occurred last before, plus one */
        batch->counts[i] = 0;
        while (at > first && row->tokens[at - 1] != row->tokens[newest]) --at;
        if (at == first) continue;
        for (uint32_t k = at; k <= newest && batch->counts[i] < row->max_drafts; ++k)
            batch->drafts[(size_t)i * batch->max_drafts + batch->counts[i]++] = row->tokens[k];
    }
    return PB_OK;
}

static const pb_proposer table = {.struct_size = sizeof table, .propose = propose};
static const pb_component component = {
    .struct_size = sizeof component, .revision = PB_PROPOSER_REVISION, .kind = PB_PROPOSER,
    .name = "@name@", .version = "0.1.0", .summary = "repeats what followed the newest token before",
    .params = params, .param_count = 1, .param_stride = sizeof params[0],
    .create = create, .destroy = destroy, .vtable = &table,
};
static const pb_component *const components[] = {&component};

__attribute__((visibility("default"))) const pb_plugin pb_plugin_v1 = {
    PB_MAGIC, PB_ABI_MAJOR, PB_ABI_MINOR, sizeof pb_plugin_v1, 1,
    PATCHBAY_PLUGIN_NAME, PATCHBAY_PLUGIN_VERSION, PATCHBAY_PLUGIN_BUILD, components};
