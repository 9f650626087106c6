/* A proposer that proposes ANSWER and nothing else: two builds of it are two versions of one plugin. */
#include <stdlib.h>

#include "patchbay/abi/proposer.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

static pb_status create(const pb_host* host, const pb_config* config, void** self) {
    (void)host, (void)config;
    *self = malloc(1);
    return *self ? PB_OK : PB_FAILED;
}
static void destroy(void* self) { free(self); }
static pb_status propose(void* self, pb_propose_batch* batch) {
    (void)self;
    for (uint32_t i = 0; i < batch->row_count; ++i) {
        const pb_propose_row* row = (const pb_propose_row*)((const char*)batch->rows + (size_t)i * batch->row_stride);
        batch->counts[i] = row->max_drafts > 0;
        if (batch->counts[i]) batch->drafts[(size_t)i * batch->max_drafts] = ANSWER;
    }
    return PB_OK;
}

static const pb_proposer table = {sizeof table, 0, propose, NULL, NULL};
static const pb_component answer = {
    .struct_size = sizeof answer,
    .revision = PB_PROPOSER_REVISION,
    .kind = PB_PROPOSER,
    .name = "answer",
    .version = TEXT(ANSWER) ".0.0",
    .summary = "always " TEXT(ANSWER),
    .create = create,
    .destroy = destroy,
    .vtable = &table,
};
static const pb_component* const components[] = {&answer};

__attribute__((visibility("default"))) extern const pb_plugin pb_plugin_v1;
const pb_plugin pb_plugin_v1 = {PB_MAGIC, PB_ABI_MAJOR,        PB_ABI_MINOR, sizeof pb_plugin_v1, 1,
                                "answer", TEXT(ANSWER) ".0.0", "C11",        components};
