/* patchbay/abi/proposer.h - guesses tokens for the host to verify. A wrong proposer is slow, never wrong: only where
 * drafts are verified by rejection must what it says about their probabilities be true. */
#ifndef PATCHBAY_ABI_PROPOSER_H
#define PATCHBAY_ABI_PROPOSER_H
#include "patchbay/abi.h"
#include "patchbay/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_PROPOSER "patchbay.proposer/1"
#define PB_PROPOSER_REVISION 1 /* a draft: plugins of another revision are refused */

typedef struct pb_propose_row { /* an element of rows */
    uint64_t       id;          /* of the sequence */
    const int32_t *tokens;      /* prompt and output, the newest last */
    uint32_t       token_count; /* at least 1 */
    uint32_t       max_drafts;  /* length of the longest path, at most                        */
    uint32_t       max_paths;   /* paths from the newest token to a draft that no other follows, at most; 1: a chain. A row has
                                   at most max_drafts · max_paths drafts, never more than the batch's max_drafts */
    uint32_t       reserved;
} pb_propose_row;

typedef struct pb_propose_batch { /* [call] */
    uint32_t              struct_size;
    uint32_t              row_count;
    uint32_t              row_stride;  /* sizeof(pb_propose_row) at the host */
    uint32_t              max_drafts;  /* room in each row: num_speculative_tokens · speculative.max_paths */
    const pb_propose_row *rows;
    int32_t              *drafts;      /* out, (row_count, max_drafts) */
    uint32_t             *counts;      /* out, row_count; 0: nothing to propose */
    /* In and out, (row_count, max_drafts): the index of each draft's parent in its row, which is less than its own; −1: the
     * newest token. It comes filled with a chain, index − 1. A draft with any other parent is cut and counted as a fault. The
     * host verifies paths in the order of their last drafts, as many as there is room for, so the likeliest path comes first.
     * NULL: chains only. */
    int32_t              *parents;
    /* Out, (row_count, max_drafts, vocab_size), for verification by rejection: the distribution that each draft was drawn
     * from. The host reads it only where `drawn` is 1. NULL: not wanted. */
    float                *probs;
    uint8_t              *drawn;       /* with probs, out, (row_count, max_drafts): 1 where the draft was drawn at random from
                                          its row of probs; 0 (initial value): chosen deterministically */
    uint32_t              vocab_size;  /* of the target; with probs */
    uint32_t              reserved;
} pb_propose_batch;

typedef struct pb_proposer {
    uint32_t struct_size;
    uint32_t reserved;
    pb_status (*propose)(void *self, pb_propose_batch *);                                     /* [step] */
    /* Optional: how many of the drafts of a sequence were accepted. */
    void (*observe)(void *self, uint64_t id, uint32_t proposed, uint32_t accepted);           /* [step] */
    void (*finished)(void *self, uint64_t id);                                                /* [step] */
} pb_proposer;

#ifdef __cplusplus
}
#endif
#endif
