/* kept_c - evicts the page unused the longest, in plain C: the one with the least number. */
#include "patchbay/abi/kv_policy.h"
#include "plain.h"

struct oldest {
    const pb_host *host;
    uint32_t total;
    uint64_t next;
    uint64_t *numbers; /* of the pages, by id; 0: it is not cached */
};

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    struct oldest *const out = calloc(1, sizeof *out);
    (void)config;
    if (!out) return refuse(host, PB_EXHAUSTED, "no memory");
    out->host = host;
    *self = out;
    return PB_OK;
}
static void destroy(void *self) {
    free(((struct oldest *)self)->numbers);
    free(self);
}

static pb_status update(void *self, const pb_kv_pages *in) {
    struct oldest *const o = self;
    for (uint32_t i = 0; i < in->page_count; ++i) {
        const char *const at = (const char *)in->pages + (size_t)i * in->page_stride;
        const pb_kv_page *const p = (const pb_kv_page *)(const void *)at;
        if (p->page >= o->total) return refuse(o->host, PB_INVALID, "there is no such page");
        o->numbers[p->page] = p->change == PB_KV_CACHED ? ++o->next : 0;
    }
    return PB_OK;
}

static pb_status adopt(void *self, const pb_kv_pages *in) {
    struct oldest *const o = self;
    uint64_t *const numbers = calloc(in->total_pages + 1u, sizeof *numbers);
    if (!numbers) return refuse(o->host, PB_EXHAUSTED, "no memory");
    free(o->numbers);
    o->numbers = numbers;
    o->total = in->total_pages;
    o->next = 0;
    return update(self, in);
}

static pb_status choose(void *self, pb_kv_choice *choice) {
    const struct oldest *const o = self;
    uint64_t after = 0;
    for (uint32_t k = 0; k < choice->max_pages; ++k) {
        uint32_t found = o->total;
        for (uint32_t p = 0; p < o->total; ++p)
            if (o->numbers[p] > after && (found == o->total || o->numbers[p] < o->numbers[found])) found = p;
        if (found == o->total) break;
        after = o->numbers[found];
        choice->pages[choice->page_count++] = found;
    }
    return PB_OK;
}

static const pb_kv_policy table = {.struct_size = sizeof table, .adopt = adopt, .update = update, .choose = choose};
static const pb_component component = {.struct_size = sizeof component,
                                       .revision = PB_KV_POLICY_REVISION,
                                       .kind = PB_KV_POLICY,
                                       .name = "kept_c",
                                       .version = "1.0.0",
                                       .summary = "the page unused the longest is evicted first",
                                       .create = create,
                                       .destroy = destroy,
                                       .vtable = &table};
EXPORT_ONE(component)
