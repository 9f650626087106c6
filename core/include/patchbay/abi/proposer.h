/* patchbay/abi/proposer.h - guesses tokens for the host to verify. A wrong proposer is slow, never wrong: only where
 * drafts are verified by rejection must what it says about their probabilities be true. */
#ifndef PATCHBAY_ABI_PROPOSER_H
#define PATCHBAY_ABI_PROPOSER_H
#include "patchbay/abi.h"
#include "patchbay/abi/digests.h"
#include "patchbay/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_PROPOSER "patchbay.proposer/1-draft"

typedef struct pb_propose_row {
    uint64_t       id;          /* of the sequence */
    const int32_t *tokens;      /* prompt and output, the newest last */
    uint32_t       token_count;
    uint32_t       max_drafts;  /* at most this many for this sequence, ≤ the batch's */
} pb_propose_row;

typedef struct pb_propose_batch { /* [call] */
    uint32_t              struct_size;
    uint32_t              row_count;
    uint32_t              row_stride;  /* sizeof(pb_propose_row) at the host */
    uint32_t              max_drafts;  /* num_speculative_tokens */
    const pb_propose_row *rows;
    int32_t              *drafts;      /* out, (row_count, max_drafts) */
    uint32_t             *counts;      /* out, row_count; 0: nothing to propose */
    int32_t              *parents;     /* out, (row_count, max_drafts): index of each draft's parent, −1 the newest token;
                                          NULL: the host takes chains only */
    /* Where drafts are verified by rejection: the distribution that each draft was drawn from, (row_count, max_drafts,
     * vocab_size), any content before. Read only where `drawn` says so. NULL: not wanted. */
    float                *probs;
    uint8_t              *drawn;       /* out, (row_count, max_drafts), 0 before: 1 where the draft was drawn at random
                                          from its row of probs; 0: it follows from the tokens before it. With probs */
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
