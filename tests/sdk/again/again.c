/* again - a proposer in C11 alone: guesses that the newest token comes again. */
#include <stdlib.h>

#include "patchbay/abi/proposer.h"

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    (void)host, (void)config;
    *self = malloc(1); /* two objects must not be one */
    return *self ? PB_OK : PB_FAILED;
}

static void destroy(void *self) { free(self); }

static pb_status propose(void *self, pb_propose_batch *batch) {
    (void)self;
    for (uint32_t i = 0; i < batch->row_count; ++i) {
        const pb_propose_row *row = (const pb_propose_row *)((const char *)batch->rows + (size_t)i * batch->row_stride);
        int32_t *drafts = batch->drafts + (size_t)i * batch->max_drafts;
        batch->counts[i] = row->token_count > 0 ? row->max_drafts : 0;
        for (uint32_t k = 0; k < batch->counts[i]; ++k) drafts[k] = row->tokens[row->token_count - 1];
    }
    return PB_OK;
}

static const pb_proposer table = {sizeof table, 0, propose, NULL, NULL};
static const pb_component again = {
    .struct_size = sizeof again,
    .revision = PB_PROPOSER_REVISION,
    .kind = PB_PROPOSER,
    .name = "again",
    .version = "1.0.0",
    .summary = "the newest token, once more",
    .create = create,
    .destroy = destroy,
    .vtable = &table,
};
static const pb_component *const components[] = {&again};

__attribute__((visibility("default"))) const pb_plugin pb_plugin_v1 = {
    PB_MAGIC, PB_ABI_MAJOR, PB_ABI_MINOR, sizeof pb_plugin_v1, 1, "again", "1.0.0", "C11", components};
