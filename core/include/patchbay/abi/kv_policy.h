/* patchbay/abi/kv_policy.h - which cached page is evicted next. The policy decides, the host applies: it keeps what is
 * cached and who holds it, checks each page that the policy chooses, and where a choice is wrong or missing it evicts the
 * page unused the longest. A wrong policy causes prefix cache misses; it never fails a request.
 *
 * A page is cached from the time when its last sequence lets go of it until it is evicted, if its content can be found
 * by its tokens. Pages without such content are taken before any cached one; the policy never hears of them. No two
 * cached pages have the same content. */
#ifndef PATCHBAY_ABI_KV_POLICY_H
#define PATCHBAY_ABI_KV_POLICY_H
#include "patchbay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_KV_POLICY "patchbay.kv_policy/1"
#define PB_KV_POLICY_REVISION 1 /* a draft: plugins of another revision are refused */

typedef int32_t pb_kv_change;
enum {
    PB_KV_CACHED  = 0, /* no sequence holds the page any more: it may be evicted                        */
    PB_KV_USED    = 1, /* a sequence found it and holds it: not to be evicted until PB_KV_CACHED         */
    PB_KV_REMOVED = 2  /* its content is gone: evicted by any choice, overwritten or cleared. It may have been held,
                        * and it may be a page that has never been cached                                */
};

typedef struct pb_kv_page { /* an element of pages */
    uint32_t     page;     /* its id, below total_pages; of one content until PB_KV_REMOVED              */
    pb_kv_change change;
    uint64_t     block;    /* hash of its tokens and all before them. This and what follows: of PB_KV_CACHED only */
    uint64_t     used_us;  /* when the last sequence let go of it, on the engine's clock                 */
    uint32_t     parent;   /* page of the block before it, plus one; 0: it is the first of its sequence, or the
                              block before it is not in the cache                                        */
    uint32_t     position; /* of its first token in the sequence                                         */
    uint32_t     hits;     /* how many requests have found it in the cache when they were first admitted  */
    uint32_t     group;    /* of layers; parent and page are of the same group                           */
} pb_kv_page;

typedef struct pb_kv_pages { /* [call] */
    uint32_t          struct_size;
    uint32_t          page_stride; /* sizeof(pb_kv_page) at the host */
    uint32_t          page_count;
    uint32_t          total_pages; /* of the pool                    */
    uint32_t          block_size;  /* tokens a page                  */
    uint32_t          reserved;
    const pb_kv_page *pages;
} pb_kv_pages;

typedef struct pb_kv_choice { /* [call] */
    uint32_t  struct_size;
    uint32_t  max_pages;  /* that are to be evicted now; at most as many as are cached                   */
    uint32_t *pages;      /* out, (max_pages): ids of cached pages, each once, the first to be evicted first */
    uint32_t  page_count; /* out, 0 before: how many it has written. The host chooses what is missing, and counts
                             it as a fault                                                               */
    uint32_t  reserved;
    uint64_t  now_us;     /* on the engine's clock                                                       */
} pb_kv_choice;

typedef struct pb_kv_policy {
    uint32_t struct_size;
    uint32_t reserved;
    /* The first call, and later where the policy takes over from another: these pages are cached and no others, in the
     * order in which they came to be. What the policy knew of others is void. Before a swap the host may give none here
     * and all in updates, in the same order, before it asks anything: then no step waits for many pages. */
    pb_status (*adopt)(void *self, const pb_kv_pages *);  /* [step] */
    /* What happened since the last call, in order. */
    pb_status (*update)(void *self, const pb_kv_pages *); /* [step] */
    /* A question: what it names stays cached until an update says PB_KV_REMOVED. Every change up to now came before. */
    pb_status (*choose)(void *self, pb_kv_choice *);      /* [step] */
} pb_kv_policy;

#ifdef __cplusplus
}
#endif
#endif
