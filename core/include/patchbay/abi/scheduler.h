/* patchbay/abi/scheduler.h - who runs in the next step, with how many tokens; who is preempted.
 * The scheduler decides, the host applies: it allocates the pages, trims in plan order what does not fit, and
 * counts what it trimmed. A plan is a breach (the step is refused) if it names an unknown or repeated id, or
 * exceeds max_num_batched_tokens or max_num_seqs.
 * The host calls plan() once in a step, or twice: where a plan preempts while a step is in flight, it may collect that
 * step and call again with the same in.step. It applies the last plan only. */
#ifndef PATCHBAY_ABI_SCHEDULER_H
#define PATCHBAY_ABI_SCHEDULER_H
#include "patchbay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_SCHEDULER "patchbay.scheduler/1"
#define PB_SCHEDULER_REVISION 2 /* released: it stays. What is below is promised, see docs/plugins/compatibility.md */

enum { /* pb_sequence.flags */
    PB_SEQ_PREEMPTED = 1u, /* waiting because it was preempted; its output tokens are kept            */
    PB_SEQ_NO_CHUNK  = 2u, /* all its remaining prompt tokens at once, or none. Reserved: this host does not set it */
    PB_SEQ_SWAPPED   = 4u  /* waiting; the KV of its cached_tokens lies in host memory and is copied back when the sequence
                            * is admitted. It needs as many pages as a sequence without any KV          */
};

typedef struct pb_sequence { /* an element of running and waiting: one sequence as a policy sees it */
    uint64_t id;             /* never reused                                                        */
    uint64_t group;          /* equal for the sequences of one request (n > 1, beams)               */
    uint64_t arrival_us;     /* on the engine's clock                                               */
    uint64_t deadline_us;    /* 0: none                                                             */
    int32_t  priority;       /* lower runs first                                                    */
    uint32_t tenant;         /* 0: none                                                             */
    uint32_t prompt_tokens;
    uint32_t output_tokens;  /* made so far; one that a step in flight makes counts, unless it is the last */
    uint32_t max_tokens;     /* output tokens after which it ends at the latest                     */
    uint32_t computed_tokens; /* whose KV is there; a waiting one has 0 until it is admitted        */
    uint32_t in_flight;      /* tokens of steps that are submitted and not yet back                 */
    uint32_t draft_tokens;   /* proposed for verification in the next step                          */
    uint32_t pages;          /* held                                                                */
    uint32_t tokens_until_next_page;   /* tokens that fit into the pages that it holds              */
    uint32_t pages_freed_if_preempted; /* pages that nothing else uses; where pages are plentiful all that it holds */
    uint32_t cached_tokens;  /* waiting: prefix tokens that are cached now, a hint: what counts is what the host
                              * finds when it applies the plan. Kept current for the first 128 that wait   */
    uint32_t flags;
    uint32_t preemptions;    /* how often so far                                                    */
    uint32_t expected_output_tokens; /* expected output length, as declared by the request; 0: unknown */
    uint32_t cached_pages_in_use; /* waiting: of the pages of its cached_tokens, those that running sequences hold.
                                   * Sharing them takes no free page. 0 where the hint is not kept current */
    uint32_t beams;          /* of its search, which are admitted and preempted together; 0: it is no beam    */
    uint32_t reserved;
} pb_sequence;

/* Tokens that still need computing: prompt_tokens + output_tokens + draft_tokens − computed_tokens − in_flight. */

typedef struct pb_scheduler_in { /* [call] */
    uint32_t struct_size;
    uint32_t sequence_stride;        /* sizeof(pb_sequence) at the host                              */
    uint64_t step;
    uint64_t now_us;
    uint32_t max_num_batched_tokens; /* the token budget of a step                                   */
    uint32_t max_num_seqs;           /* sequences in a step, and running at once                     */
    uint32_t block_size;             /* tokens a page                                                */
    uint32_t kv_groups;              /* a block of tokens takes a page of each: pages_for() in the SDK */
    uint32_t free_pages;            /* cached but unused pages count as free                        */
    uint32_t total_pages;
    uint32_t watermark_pages;       /* keep so many free when admitting                             */
    uint32_t flags;                  /* PB_STEP_… */
    const pb_sequence *running;      /* in order of admission                                        */
    uint32_t running_count;
    uint32_t waiting_count;
    const pb_sequence *waiting;      /* in front preempted ones and further outputs of requests (id is not group), the
                                      * latest to come there first; after them the others in order of arrival */
    uint32_t long_prefill_token_threshold; /* 0: none; the most prompt tokens of one sequence a step */
    uint32_t state_pages;            /* that a sequence takes with its first token, whatever its length */
    const uint32_t *group_windows;   /* (kv_groups) tokens after which a group's pages come free while it goes on;
                                      * 0: none do. NULL: all 0                                      */
} pb_scheduler_in;

enum {
    PB_STEP_CHUNKED_PREFILL = 1u, /* prompts may be split */
    PB_STEP_RESERVE_FULL    = 2u  /* the host admits a sequence only if the free pages suffice for all its tokens and for
                                   * all that the running sequences still need, however few tokens the plan gives it */
};

typedef int32_t pb_preemption; /* the policy's wish; the host decides */
enum {
    PB_PREEMPT_RECOMPUTE = 0, /* no wish: preemption_mode says                                  */
    PB_PREEMPT_SWAP      = 1  /* to host memory, where preemption_mode is swap or auto and there is room */
};

typedef struct pb_plan_item { /* an element of items */
    uint64_t id;
    uint32_t tokens; /* at least 1; never more than it still needs */
    uint32_t reserved;
} pb_plan_item;

typedef struct pb_preempt_item { /* an element of preempts */
    uint64_t      id;
    pb_preemption how;
    uint32_t      reserved;
} pb_preempt_item;

typedef struct pb_scheduler_out { /* [call] buffers are the host's */
    uint32_t         struct_size;
    uint32_t         item_stride;   /* sizeof(pb_plan_item) at the host */
    uint32_t         item_capacity; /* max_num_seqs */
    uint32_t         preempt_stride; /* sizeof(pb_preempt_item) at the host */
    pb_plan_item    *items;         /* in the order in which pages are given */
    uint32_t         item_count;
    uint32_t         preempt_capacity; /* running_count */
    pb_preempt_item *preempts;      /* applied before any item */
    uint32_t         preempt_count;
    uint32_t         reserved;
} pb_scheduler_out;

typedef int32_t pb_finish_reason; /* values may be added; one that a policy does not know is neither STOP nor LENGTH */
enum {
    PB_FINISH_STOP   = 1, /* by itself: an end token, a stop string, a repetition */
    PB_FINISH_LENGTH = 2, /* max_tokens, or the end of the context               */
    PB_FINISH_ABORT  = 3, /* its client left: it would have made more            */
    PB_FINISH_ERROR  = 4  /* likewise                                            */
};

typedef struct pb_finished { /* [call] */
    uint32_t         struct_size;
    pb_finish_reason reason;
    uint64_t         id;
    uint32_t         output_tokens;
    uint32_t         reserved;
} pb_finished;

typedef struct pb_scheduler {
    uint32_t struct_size;
    uint32_t reserved;
    pb_status (*plan)(void *self, const pb_scheduler_in *, pb_scheduler_out *);  /* [step] */
    /* Optional, for policies that keep their own order and so stay O(scheduled): */
    void (*arrived)(void *self, const pb_sequence *, uint32_t size);             /* [step] size: sizeof(pb_sequence) at the host */
    void (*finished)(void *self, const pb_finished *);                           /* [step] */
    void (*resync)(void *self, const pb_scheduler_in *);                         /* [step] when it takes a slot over: the whole view */
} pb_scheduler;

#ifdef __cplusplus
}
#endif
#endif
