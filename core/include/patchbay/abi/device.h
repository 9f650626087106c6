/* patchbay/abi/device.h - memory, prepared weights, and the ops table that models are written over.
 * Ops return nothing; the device keeps one sticky error that end_step reports. On a device with computes = 0 (a
 * simulator) data pointers may be NULL, and ops charge the time that they would take. */
#ifndef PATCHBAY_ABI_DEVICE_H
#define PATCHBAY_ABI_DEVICE_H
#include "patchbay/abi.h"
#include "patchbay/abi/cost.h"
#include "patchbay/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_DEVICE "patchbay.device/1"
#define PB_DEVICE_REVISION 1 /* a draft: plugins of another revision are refused */

typedef struct pb_weight pb_weight; /* [load] opaque: a weight as this device wants it */
typedef struct pb_graph  pb_graph;  /* opaque: ops that were captured, to run again; lives until graph_free() */

typedef int32_t pb_weight_role;
enum {
    PB_WEIGHT_LINEAR    = 0, /* (out, in), for linear()                           */
    PB_WEIGHT_EMBEDDING = 1, /* (vocab, hidden), for embedding(); also linear()'s if the lm head is tied */
    PB_WEIGHT_VECTOR    = 2  /* (n), for norms and rope                           */
};

typedef struct pb_quant { /* [call] a matrix (rows, cols) as small numbers: w[r, c] = code[r, c] · scale + offset */
    uint32_t       struct_size;
    uint32_t       group;    /* columns, from 0 on, that share a scale: 16, 32, 64 or 128; the last may be fewer */
    const float   *scales;   /* (rows, ⌈cols / group⌉), each finite                         */
    const float   *offsets;  /* the same shape; NULL: all 0. Of FP8 NULL, and order, too     */
    const int32_t *order;    /* (cols): column c is multiplied with column order[c] of x, a permutation; NULL: c */
} pb_quant;

typedef struct pb_weight_source { /* [call] a weight in host memory, row-major */
    uint32_t        struct_size;
    pb_weight_role  role;
    pb_dtype        dtype;     /* of data: F32 or BF16 (F16 is converted by the host); with quant: I8, FP8 (e4m3, no NaN),
                                * or I4, whose rows take ⌈cols / 2⌉ bytes each: the even column in the low half, −8 … 7 */
    uint32_t        reserved;
    int64_t         rows, cols; /* a vector: rows = 1                                       */
    const void     *data;      /* NULL where the device computes nothing, which has scales and offsets NULL too */
    const void     *bias;      /* rows values of the same dtype, with quant: of F32; NULL: none. Zeros without data */
    uint64_t        uses;      /* bit set of 1 << role, for a weight that is used in two roles */
    const pb_quant *quant;     /* NULL: none. A device that does not take it refuses with PB_UNSUPPORTED */
} pb_weight_source;

typedef int32_t pb_gate; /* gated_mlp() knows the first two */
enum { PB_GATE_SILU = 0, PB_GATE_GELU_TANH = 1, PB_GATE_GELU_ERF = 2 };

typedef struct pb_state { /* [step] where a recurrent layer keeps the states of the batch's sequences */
    uint32_t  struct_size;
    uint32_t  page_count;
    void     *data;         /* page p begins at data + p · page_stride; 64-byte aligned. NULL if it computes nothing */
    uint64_t  page_stride;  /* bytes, a multiple of 64 */
    pb_tensor pages;        /* (S) i32: each sequence's page, no other's; −1: its rows are ignored */
    pb_tensor query_starts; /* (S + 1) i32: rows of sequence s are [starts[s], starts[s + 1]) */
    pb_tensor is_first_chunk; /* (S) i32, 1: the sequence begins here, and its state is zero whatever its page holds; else 0 */
} pb_state;

typedef struct pb_scan { /* [call] what ssm_scan() multiplies with: vectors (heads), and bounds of the step */
    uint32_t         struct_size;
    uint32_t         reserved;
    const pb_weight *a_log, *dt_bias, *skip;
    float            dt_min, dt_max;
} pb_scan;

typedef struct pb_ops { /* [load] ctx is the device's. All [step]. Shapes in comments; T tokens of the batch.
                         * Activations have the device's activation_dtype and unit inner stride; rows may be strided. */
    uint32_t struct_size;
    uint32_t reserved;
    void    *ctx;
    /* out (T, hidden) = rows ids (T) i32 of the table */
    void (*embedding)(void *ctx, const pb_tensor *out, const pb_weight *table, const pb_tensor *ids);
    /* out (T, rows) = x (T, cols) · wᵀ + bias. out may be F32 where the activation dtype is not (logits). x may be
       rounded to the weight's dtype, for a quantised weight to 8 bits in its groups of columns, or by one scale for all of
       a row where each row of the weight has the same scale in all groups; a row's result must not
       depend on the rows beside it, but for what info() says by batch_dependent. */
    void (*linear)(void *ctx, const pb_tensor *out, const pb_tensor *x, const pb_weight *w);
    /* out = x / sqrt(mean(x²) + eps) · w, over the last dimension; x (T, n) or (T, heads, n). out may be x. */
    void (*rms_norm)(void *ctx, const pb_tensor *out, const pb_tensor *x, const pb_weight *w, float eps);
    /* residual += x; out = rms_norm(residual). Shapes (T, n). NULL: composed by the SDK from add and rms_norm. */
    void (*add_rms_norm)(void *ctx, const pb_tensor *out, const pb_tensor *residual, const pb_tensor *x,
                         const pb_weight *w, float eps);
    /* In place, neox pairing (i, i + rot/2): x (T, heads, head_dim), positions (T) i32, inv_freq vector (rot/2),
     * rot ≤ head_dim. cos and sin are multiplied by scale. */
    void (*rope)(void *ctx, const pb_tensor *x, const pb_tensor *positions, const pb_weight *inv_freq, float scale);
    /* out (T, n) = silu(gate_up[:, :n]) · gate_up[:, n:] */
    void (*silu_mul)(void *ctx, const pb_tensor *out, const pb_tensor *gate_up);
    /* a += b, same shape */
    void (*add)(void *ctx, const pb_tensor *a, const pb_tensor *b);
    /* out (R, n) = x[rows[r]], rows (R) i32 */
    void (*gather_rows)(void *ctx, const pb_tensor *out, const pb_tensor *x, const pb_tensor *rows);
    /* Sum of x (T, n) over the ranks that are connected, in place: the same bits on every rank, and a row's does not depend
     * on the rows beside it. NULL: one rank. */
    void (*all_reduce)(void *ctx, const pb_tensor *x);
    /* Each of those below may be NULL; a model that calls one names it in pb_model.needs. x in place: (T, n). */
    /* out = (x − mean(x)) / sqrt(mean((x − mean(x))²) + eps) · w + b, over the last dimension; (T, n). out may be x. */
    void (*layer_norm)(void *ctx, const pb_tensor *out, const pb_tensor *x, const pb_weight *w, const pb_weight *b,
                       float eps);
    /* x = max(x, 0) */
    void (*relu)(void *ctx, const pb_tensor *x);
    /* x = x / 2 · (1 + tanh(sqrt(2 / π) · (x + 0.044715 x³))) */
    void (*gelu_tanh)(void *ctx, const pb_tensor *x);
    /* out (T, n) = gelu_tanh(gate_up[:, :n]) · gate_up[:, n:] */
    void (*gelu_tanh_mul)(void *ctx, const pb_tensor *out, const pb_tensor *gate_up);
    /* x *= factor */
    void (*scale)(void *ctx, const pb_tensor *x, float factor);
    /* x = cap · tanh(x / cap); x may be F32 where the activation dtype is not (logits) */
    void (*soft_cap)(void *ctx, const pb_tensor *x, float cap);
    /* ids (T, k) i32 and weights (T, k) f32: the k greatest of softmax(logits (T, n)), the greatest first, of equals the
     * lower index. normalise 1: the k weights of a row are divided by their sum. */
    void (*top_k)(void *ctx, const pb_tensor *ids, const pb_tensor *weights, const pb_tensor *logits,
                  uint32_t normalise);
    /* out (T, k, rows): out[t, j] = experts[ids[t, j]] · x[t, j] + bias; x (T, k, cols), or (T, 1, cols) for all j alike.
     * ids (T, k) i32; `count` experts of one shape. As linear's, a row's result must not depend on the rows beside it. */
    void (*expert_linear)(void *ctx, const pb_tensor *out, const pb_tensor *x, const pb_weight *const *experts,
                          uint32_t count, const pb_tensor *ids);
    /* out (T, n) = sum over j, ascending, of weights[t, j] · x[t, j]; x (T, k, n), weights (T, k) f32 */
    void (*weighted_sum)(void *ctx, const pb_tensor *out, const pb_tensor *x, const pb_tensor *weights);
    /* out (T, ranks · n) = x (T, n) of each rank, rank 0's at the left; x may be F32 where the activation dtype is not
     * (logits). NULL: one rank. */
    void (*all_gather)(void *ctx, const pb_tensor *out, const pb_tensor *x);
    /* out (T, hidden) = down · (f(gate) · up), gate and up the halves of gate_up · x; x (T, cols of gate_up), down
     * (hidden, n), gate_up (2n, cols). What lies between need not leave the device's caches, nor have the activation
     * dtype. NULL: composed by the SDK from linear and silu_mul or gelu_tanh_mul. */
    void (*gated_mlp)(void *ctx, const pb_tensor *out, const pb_tensor *x, const pb_weight *gate_up,
                      const pb_weight *down, pb_gate gate);
    /* Those of recurrent layers go through each sequence's rows in order, from its state on, and leave there the state
     * after its last row; a row's result must not depend on how the rows before it were split over steps. The state
     * is f32 at `offset` bytes into the page, a multiple of 4. */
    /* out (T, n) = silu(bias[c] + sum over j < width of w[c · width + j] · x[t − width + 1 + j, c]): by channel, over
     * time; w vector (n · width), bias vector (n) or NULL. State: the width − 1 rows of x before, (width − 1, n), the
     * oldest first. width 2 to 16. out may not be x. */
    void (*causal_conv_silu)(void *ctx, const pb_tensor *out, const pb_tensor *x, const pb_weight *w,
                             const pb_weight *bias, uint32_t width, const pb_state *state, uint64_t offset);
    /* A selective state-space scan, as of Mamba-2: x, out (T, heads, dim), dt (T, heads), b, c (T, groups, n); heads is a
     * multiple of groups, g = h / (heads / groups). With s = log(1 + exp(dt[t, h] + dt_bias[h])), not below dt_min nor
     * above dt_max: state[h, i, j] = exp(−exp(a_log[h]) · s) · state[h, i, j] + s · x[t, h, i] · b[t, g, j], then
     * out[t, h, i] = sum over j of state[h, i, j] · c[t, g, j] + skip[h] · x[t, h, i]. State: (heads, dim, n). out may be
     * x. */
    void (*ssm_scan)(void *ctx, const pb_tensor *out, const pb_tensor *x, const pb_tensor *dt, const pb_tensor *b,
                     const pb_tensor *c, const pb_scan *weights, const pb_state *state, uint64_t offset);
    /* In place: ids[t] = sampled[−1 − ids[t]] where ids[t] < 0; ids (T), sampled (R) i32. The host calls it between models,
     * never while it captures: ids that a step in flight samples. NULL: they must be seen by the host first. */
    void (*fill_placeholders)(void *ctx, const pb_tensor *ids, const pb_tensor *sampled);
    /* x = x / (1 + exp(−x)) */
    void (*silu)(void *ctx, const pb_tensor *x);
    /* x = x / 2 · (1 + erf(x / sqrt(2))) */
    void (*gelu_erf)(void *ctx, const pb_tensor *x);
    /* out (T, n) = gelu_erf(gate_up[:, :n]) · gate_up[:, n:] */
    void (*gelu_erf_mul)(void *ctx, const pb_tensor *out, const pb_tensor *gate_up);
    /* x (T, n) *= 1 / (1 + exp(−gate)); gate (T, n), or (T, 1) for all of a row alike */
    void (*sigmoid_mul)(void *ctx, const pb_tensor *x, const pb_tensor *gate);
    /* The clamped SwiGLU of gpt-oss: out (T, n) = (u + 1) · g / (1 + exp(−alpha · g)), g = gate_up[:, :n] not above limit,
     * u = gate_up[:, n:] neither above limit nor below −limit; limit > 0 */
    void (*swiglu_oai)(void *ctx, const pb_tensor *out, const pb_tensor *gate_up, float alpha, float limit);
} pb_ops;

typedef struct pb_group { /* the ranks that compute one model together, each with a device of its own; outlives connect() */
    uint32_t    struct_size;
    uint32_t    rank, size;  /* rank < size                                                          */
    uint32_t    timeout_ms;  /* that the connecting may take                                         */
    const char *address;     /* under which the other ranks reach this one: "10.0.0.2"               */
    void       *ctx;
    /* A store that the ranks share, for connect() only. Keys: 1 to 128 of a-z, A-Z, 0-9 and ./_-; values: 64 KiB at most.
     * set: once a key. get waits until some rank has set it; *bytes: room in `out`, then what the value takes. Both fail
     * when a rank does. NULL where the device has computes = 0: its other ranks are not there. [control] */
    pb_status (*set)(void *ctx, const char *key, const void *value, uint64_t bytes);
    pb_status (*get)(void *ctx, const char *key, void *out, uint64_t *bytes);
} pb_group;

typedef struct pb_device_info { /* filled by info() */
    uint32_t struct_size;
    uint32_t computes;         /* 0: charges time instead of computing                */
    pb_dtype activation_dtype; /* of every activation                                 */
    uint32_t reserved;
    uint64_t memory_total;     /* bytes; of host memory for a CPU                     */
    uint64_t memory_free;      /* bytes                                               */
    char     name[96];         /* "Intel Xeon … (avx512)": terminated                 */
    char     isa[32];          /* "avx512", "sm_90": terminated                       */
    uint32_t host_memory;      /* 1: its memory is the host's, no copies are needed   */
    uint32_t batch_dependent;  /* 1: low bits of a row of linear() may depend on how many rows there are */
    char     compatible_with[32];    /* "cpu": attention and samplers that serve that device serve this one too; empty: only those
                                * of its own name. Terminated */
    char     visible_by[32];   /* "CUDA_VISIBLE_DEVICES": ranks on one machine take a device each, those that a process sees are
                                * listed in this environment variable; empty: ranks share what there is. Terminated */
} pb_device_info;

typedef struct pb_limit { /* an element of what measure() fills: what the hardware does at best, measured and not quoted */
    char   name[32]; /* "memory_read", or "matmul_" and a dtype; a device may have others: terminated */
    char   unit[16]; /* "B/s", "FLOP/s" (a multiply-add is two), "OP/s": terminated                   */
    double value;
} pb_limit;

typedef struct pb_device {
    uint32_t struct_size;
    uint32_t reserved;
    pb_status (*info)(void *self, pb_device_info *);                                         /* [control] */
    pb_status (*alloc)(void *self, uint64_t bytes, void **out);                              /* [control] 64-byte aligned, zeroed */
    void (*free)(void *self, void *memory);                                                  /* [control] in order with ops: after the steps in flight */
    /* [step], [control] in order with ops; `from` may change when it returns. */
    pb_status (*to_device)(void *self, void *to, const void *from, uint64_t bytes);
    pb_status (*to_host)(void *self, void *to, const void *from, uint64_t bytes);            /* likewise; done on return */
    pb_status (*prepare)(void *self, const pb_weight_source *, pb_weight **out);             /* [control] copies or packs; source may go */
    void (*release)(void *self, pb_weight *);                                                /* [control] */
    uint64_t (*weight_bytes)(void *self, const pb_weight *);                                 /* [control] memory it takes */
    const pb_ops *(*ops)(void *self);                                                        /* [control] */
    pb_status (*begin_step)(void *self);                                                     /* [step] */
    pb_status (*end_step)(void *self);                                                       /* [step] waits; reports the sticky error and clears it */
    pb_status (*copy_page)(void *self, void *to, const void *from, uint64_t bytes);          /* [step] within the device, in order with ops */
    /* The queue that ops run in, for plugins that put kernels of their own in order with them: a cudaStream_t. The same
     * for the device's life. NULL: it has none. */
    void *(*queue)(void *self);                                                              /* [control] */
} pb_device;

/* ---- extensions ----------------------------------------------------------------------------- */

/* Graphs; not of a device whose memory is the host's. What is called between graph_begin() and graph_end() - ops, collectives among
 * them, and an attention's append_kv() and run() - is recorded and not run; the host copies nothing to or from the device,
 * takes no memory and calls no charge() in between, and has run the same shapes once before. Structs and arrays of an op's
 * arguments are [call] there too: the device keeps copies. graph_launch() runs it again in order with ops: the same addresses,
 * shapes and scalars, over what memory holds by then. The host keeps what lies at those addresses (weights, KV, workspace,
 * inputs) until graph_free(). Begin, end and launch inside one step each. */
#define PB_DEVICE_GRAPHS "patchbay.device.graphs/1"
#define PB_DEVICE_GRAPHS_REVISION 1
typedef struct pb_device_graphs {
    uint32_t struct_size;
    uint32_t reserved;
    pb_status (*graph_begin)(void *self);                          /* [step] */
    /* Recording has ended whatever it returns; if not PB_OK, there is no graph. */
    pb_status (*graph_end)(void *self, pb_graph **out);            /* [step] */
    pb_status (*graph_launch)(void *self, pb_graph *);             /* [step] */
    void (*graph_free)(void *self, pb_graph *);                    /* [step], between steps; one in flight still runs it */
    uint64_t (*graph_bytes)(void *self, const pb_graph *);         /* [step] of the device's memory; at least 1 */
} pb_device_graphs;

/* Steps in flight. Without it end_step() is the only end of a step. */
#define PB_DEVICE_ASYNC "patchbay.device.async/1"
#define PB_DEVICE_ASYNC_REVISION 1
typedef struct pb_device_async {
    uint32_t struct_size;
    uint32_t reserved;
    /* Ends what begin_step() began without waiting for it, then the next may begin, which runs after it; at most two are
     * submitted and not waited for. */
    pb_status (*submit_step)(void *self);                    /* [step] */
    /* Waits for the oldest that was submitted, reports its sticky error and clears it. end_step() waits for its own step,
     * and so for those before it, which wait_step() is called for all the same. */
    pb_status (*wait_step)(void *self);                      /* [step] */
    /* to_host() that does not wait: `to` is written by the time that end_step() or wait_step() of this step returns, and
     * must stay until then. A few kilobytes a step. NULL: the host waits and then calls to_host(). */
    pb_status (*to_host_async)(void *self, void *to, const void *from, uint64_t bytes); /* [step] inside one */
} pb_device_async;

/* Several devices, a rank each, that compute one model together. Without it there is one rank. */
#define PB_DEVICE_COLLECTIVES "patchbay.device.collectives/1"
#define PB_DEVICE_COLLECTIVES_REVISION 1
typedef struct pb_device_collectives {
    uint32_t struct_size;
    uint32_t reserved;
    /* Before ops(), on every rank; on return the ranks can reach each other. And again, between two steps, after
     * disconnect() on every rank, since one of them failed in a step: what ops() gave stays. Keys that were set for
     * another connect() are not there. */
    pb_status (*connect)(void *self, const pb_group *);      /* [control] */
    /* Makes each collective that waits and each to come end its step with a fault; may be called during a step. */
    void (*disconnect)(void *self);                          /* [any] */
} pb_device_collectives;

/* Pages that lie in host memory while their sequence waits. Without it the host takes memory of its own, and waits in
 * to_host() and to_device(). The two copies are in order with ops and with each other, whatever step they belong to: what
 * page_to_host() wrote a later page_to_device() reads. page_to_host() has written `to` by the time that end_step() or
 * wait_step() of its step returns; `from` of page_to_device() may change then. A device with computes = 0 charges what they
 * take. */
#define PB_DEVICE_OFFLOAD "patchbay.device.offload/1"
#define PB_DEVICE_OFFLOAD_REVISION 1
typedef struct pb_device_offload {
    uint32_t struct_size;
    uint32_t reserved;
    /* Memory that this device copies to and from fast; 64-byte aligned; of a device with computes = 0 `out` may become
     * NULL. */
    pb_status (*host_alloc)(void *self, uint64_t bytes, void **out);                          /* [control] */
    void (*host_free)(void *self, void *memory);                                              /* [control] no step is in flight */
    pb_status (*page_to_host)(void *self, void *to, const void *from, uint64_t bytes);     /* [step] inside one */
    pb_status (*page_to_device)(void *self, void *to, const void *from, uint64_t bytes);   /* [step] inside one */
} pb_device_offload;

/* What the hardware does at best. */
#define PB_DEVICE_LIMITS "patchbay.device.limits/1"
#define PB_DEVICE_LIMITS_REVISION 1
typedef struct pb_device_limits {
    uint32_t struct_size;
    uint32_t reserved;
    /* Measures for a second or two, by the clock service; fills out[0, *count) and sets *count, at most what it was.
     * stride: sizeof(pb_limit) at the host. [control] */
    pb_status (*measure)(void *self, pb_limit *out, uint32_t stride, uint32_t *count);
} pb_device_limits;

/* Time that passes; of every device with computes = 0, and of no other. */
#define PB_DEVICE_SIMULATION "patchbay.device.simulation/1"
#define PB_DEVICE_SIMULATION_REVISION 1
typedef struct pb_device_simulation {
    uint32_t struct_size;
    uint32_t reserved;
    void (*charge)(void *self, const pb_cost *);             /* [step] for what is no op: attention */
    /* After end_step() or submit_step(): what the step's ops and charges take together; the host lets so much time pass. */
    uint64_t (*charged_ns)(void *self);                      /* [step] */
    /* May be NULL: what the host of the machine that it stands for takes for a step, which is no part of charged_ns() and
     * passes while a step in flight runs. */
    uint64_t (*host_ns)(void *self);                         /* [step] */
} pb_device_simulation;

#ifdef __cplusplus
}
#endif
#endif
