/* patchbay/abi/services.h - what a component may ask of the host, by string id, through pb_host::service. A table begins with
 * struct_size and its revision; a plugin that was built for another revision is to treat it as absent. */
#ifndef PATCHBAY_ABI_SERVICES_H
#define PATCHBAY_ABI_SERVICES_H
#include "patchbay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The one thread pool of the process: no plugin starts a second one, nor uses OpenMP. */
#define PB_SERVICE_POOL "patchbay.pool/1"
#define PB_POOL_REVISION 1 /* released */
typedef struct pb_pool {
    uint32_t struct_size;
    uint32_t revision; /* PB_POOL_REVISION */
    uint32_t threads; /* how many run at once, the caller among them; at least 1 */
    uint32_t reserved;
    void    *ctx;
    /* Calls task(arg, i) for each i in [0, count), on up to `threads` threads, and returns when all are done.
     * Tasks must not throw and must not call run; callers take turns. [step], [control] */
    void (*run)(void *ctx, uint32_t count, void (*task)(void *arg, uint32_t index), void *arg);
} pb_pool;

/* Time. Real, or virtual in a simulation; no plugin reads another clock. */
#define PB_SERVICE_CLOCK "patchbay.clock/1"
#define PB_CLOCK_REVISION 1 /* released */
typedef struct pb_clock {
    uint32_t struct_size;
    uint32_t revision; /* PB_CLOCK_REVISION */
    void    *ctx;
    uint64_t (*now_ns)(void *ctx); /* [any] monotonic, from an arbitrary start */
} pb_clock;

/* A plugin's own metrics. They appear as patchbay_plugin_<name>{kind,plugin}, counters as …_total. Names are of a-z, 0-9
 * and _; at most 64 a component, more are dropped. */
#define PB_SERVICE_METRICS "patchbay.metrics/1"
#define PB_METRICS_REVISION 1 /* released */
typedef struct pb_metrics {
    uint32_t struct_size;
    uint32_t revision; /* PB_METRICS_REVISION */
    void    *ctx;
    void (*add)(void *ctx, const char *name, double amount); /* [any] a counter: amount ≥ 0 */
    void (*set)(void *ctx, const char *name, double value);  /* [any] a gauge               */
} pb_metrics;

/* Another device, for a device that wraps it: asked for in create() only. What it makes lives as long as the component
 * that asked, unless it is closed. Such a device cannot ask for one itself. Offered to devices. */
#define PB_SERVICE_DEVICES "patchbay.devices/1"
#define PB_DEVICES_REVISION 1 /* a draft */
struct pb_device;
typedef struct pb_devices {
    uint32_t struct_size;
    uint32_t revision; /* PB_DEVICES_REVISION */
    void    *ctx;
    /* settings: `count` of them; keys that are missing take their defaults. On failure *why [call] says why. [control] */
    pb_status (*open)(void *ctx, const char *name, const pb_setting *settings, uint32_t count,
                      const struct pb_device **table, void **self, pb_str *why);
    void (*close)(void *ctx, void *self);  /* [control]                                                           */
    pb_str (*why)(void *ctx, void *self);  /* why its latest call failed, until its next one; empty: it did not say.
                                              [step], [control] */
} pb_devices;

/* A model beside the target, for proposers that draft with one: opened in create(), run in propose(). The proposer says for
 * which rows and how far; weights, KV, passes and sampling are the host's. The model's KV lies in pages of the same sequences
 * and follows the target by itself: prompts, prefix hits, preemption and rejected drafts do not concern the
 * proposer. What is wrong with it costs time, never a text. Offered to proposers.
 * The model may be a head, which goes on from the target's hidden states (PB_MODEL_DRAFT_HEAD; key `plugin` of the settings): it
 * then gets those of the tokens that the target verified, and for drafts its own. So it drafts one token a pass: a row's
 * drafts but for the last are those of a row of an earlier pass in the same propose(), or its token is −1. All rows of a
 * pass of a head without layers have the same number of drafts. */
#define PB_SERVICE_RUNNER "patchbay.runner/1"
#define PB_RUNNER_REVISION 1 /* a draft */

typedef struct pb_runner_load { /* [call] */
    uint32_t          struct_size;
    uint32_t          setting_count;
    const pb_setting *settings;  /* keys of the section `model:` (path, dtype, quantization, …); those missing take their
                                    defaults */
    /* On a device that computes nothing it must be declared: how likely the target accepts a draft, given that it accepted
     * those before it. */
    double            simulated_acceptance;
    uint32_t          has_simulated_acceptance; /* 1: it is declared */
    uint32_t          reserved;
} pb_runner_load;

typedef struct pb_runner_facts { /* filled by load() */
    uint32_t struct_size;
    uint32_t model;        /* its number in the calls below */
    uint32_t vocab_size;   /* the target's too, else the engine is refused */
    uint32_t hidden_size, layer_count;
    uint32_t max_position; /* tokens that it reaches */
    uint32_t computes;     /* 0: tokens are made up, probabilities are 1 */
    uint32_t max_draft_depth;   /* drafts that it can chain; 0: any number */
} pb_runner_facts;

typedef struct pb_runner_row { /* [call] an element of rows */
    uint64_t       id;          /* of a row of the propose() under way, at most once a pass */
    const int32_t *drafts;      /* tokens after the sequence's own, as a chain */
    uint32_t       draft_count; /* less than the row's max_drafts: the pass adds one */
    uint32_t       flags;       /* 0 */
} pb_runner_row;

typedef struct pb_runner_batch { /* [call] */
    uint32_t             struct_size;
    uint32_t             model;
    uint32_t             row_count;
    uint32_t             row_stride;   /* sizeof(pb_runner_row) at the plugin */
    const pb_runner_row *rows;
    /* Out, row_count: the token that the engine's sampler draws from the model's logits, with the sequence's parameters and
     * the same noise as for the target's token at that position. −1: the model has not computed so far, and will not in
     * this step. */
    int32_t             *tokens;
    float               *logprobs;     /* out, row_count: of that token, log-softmax of the raw logits; NULL: not wanted */
    uint32_t             top_count;    /* the most likely ones, at most 100; 0: not wanted */
    uint32_t             reserved;
    int32_t             *top_tokens;   /* out, (row_count, top_count), highest first; −1: none */
    float               *top_logprobs; /* out, likewise */
    /* Out, (row_count, vocab_size): the distribution after the engine's parameters and truncations. With it tokens are
     * drawn from that with noise of their own, as verification by rejection wants it. NULL: not wanted. */
    float               *probs;
} pb_runner_batch;

typedef struct pb_runner {
    uint32_t struct_size;
    uint32_t revision; /* PB_RUNNER_REVISION */
    void    *ctx;
    /* In create() only, once. Weights are read after it. On failure *why [call] says why. [control] */
    pb_status (*load)(void *ctx, const pb_runner_load *, pb_runner_facts *, pb_str *why);
    /* One pass, in propose() only. What of a row's tokens the model has computed before is not computed again. A row that
     * breaks the rules above is PB_INVALID; *why [call] likewise. [step] */
    pb_status (*forward)(void *ctx, pb_runner_batch *, pb_str *why);
} pb_runner;

#ifdef __cplusplus
}
#endif
#endif
