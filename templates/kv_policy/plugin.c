/* @name@ - a KV policy in C11: the page unused the longest is evicted first, pages that were found often after all
 * others (a segmented LRU). */
#include <stdlib.h>
#include <string.h>

#include "patchbay/abi/kv_policy.h"
#include "patchbay/plugin_names.h"

static const pb_param params[] = { /* the schema: what YAML may set */
    {"hit_worth", PB_PARAM_INT, PB_PARAM_HAS_MIN | PB_PARAM_HAS_MAX, "2", 1, 1e6, NULL, "hits",
     "from so many on a page is evicted after all others"},
};

typedef struct link {
    uint32_t next, before; /* of a page that is not cached: itself */
} link;

typedef struct @Class@ {
    uint32_t hit_worth, total; /* pages */
    link *links;               /* a ring a list, in the order of use: its head is at total + list */
} @Class@;

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    @Class@ *const made = calloc(1, sizeof *made);
    const pb_str value = config->items[0].value; /* every key of the schema is there, with a value in its range */
    char number[32] = "";
    (void)host;
    if (!made) return PB_FAILED;
    memcpy(number, value.data, value.size < sizeof number ? value.size : sizeof number - 1); /* it is not terminated */
    made->hit_worth = (uint32_t)strtoul(number, NULL, 10);
    *self = made;
    return PB_OK;
}
static void destroy(void *self) {
    free(((@Class@ *)self)->links);
    free(self);
}

static void take_out(link *links, uint32_t page) {
    links[links[page].before].next = links[page].next;
    links[links[page].next].before = links[page].before;
    links[page].next = links[page].before = page;
}
static void append(link *links, uint32_t head, uint32_t page) {
    take_out(links, page);
    links[page] = (link){head, links[head].before};
    links[links[head].before].next = page;
    links[head].before = page;
}

/* What happened since the last call, in order. */
static pb_status update(void *self, const pb_kv_pages *pages) {
    @Class@ *const me = self;
    for (uint32_t i = 0; i < pages->page_count; ++i) {
        const pb_kv_page *p = (const pb_kv_page *)((const char *)pages->pages + (size_t)i * pages->page_stride);
        if (p->change == PB_KV_CACHED) append(me->links, me->total + (p->hits >= me->hit_worth), p->page);
        else take_out(me->links, p->page); /* a sequence holds it again, or it is gone */
    }
    return PB_OK;
}

/* The first call, and later where it takes over from another policy: these pages are cached and no others. */
static pb_status adopt(void *self, const pb_kv_pages *pages) {
    @Class@ *const me = self;
    link *const links = realloc(me->links, ((size_t)pages->total_pages + 2) * sizeof *links);
    if (!links) return PB_EXHAUSTED;
    me->links = links;
    me->total = pages->total_pages;
    for (uint32_t i = 0; i < me->total + 2; ++i) links[i] = (link){i, i};
    return update(self, pages);
}

/* Names pages for eviction; they stay cached until an update says PB_KV_REMOVED. */
static pb_status choose(void *self, pb_kv_choice *choice) {
    const @Class@ *const me = self;
    choice->page_count = 0;
    for (uint32_t head = me->total; head < me->total + 2; ++head)
        for (uint32_t p = me->links[head].next; p != head && choice->page_count < choice->max_pages;
             p = me->links[p].next)
            choice->pages[choice->page_count++] = p;
    return PB_OK;
}

static const pb_kv_policy table = {sizeof table, 0, adopt, update, choose};
static const pb_component component = {
    .struct_size = sizeof component, .revision = PB_KV_POLICY_REVISION, .kind = PB_KV_POLICY,
    .name = "@name@", .version = "0.1.0", .summary = "the least recently used page first, with credit for hits",
    .params = params, .param_count = 1, .param_stride = sizeof params[0],
    .create = create, .destroy = destroy, .vtable = &table,
};
static const pb_component *const components[] = {&component};

__attribute__((visibility("default"))) const pb_plugin pb_plugin_v1 = {
    PB_MAGIC, PB_ABI_MAJOR, PB_ABI_MINOR, sizeof pb_plugin_v1, 1,
    PATCHBAY_PLUGIN_NAME, PATCHBAY_PLUGIN_VERSION, PATCHBAY_PLUGIN_BUILD, components};
