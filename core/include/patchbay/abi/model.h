/* patchbay/abi/model.h - an architecture: its weights' names and shapes, its KV a layer, and its layer graph.
 * Written once over the device's ops, so it runs wherever a device plugin does. */
#ifndef PATCHBAY_ABI_MODEL_H
#define PATCHBAY_ABI_MODEL_H
#include "patchbay/abi.h"
#include "patchbay/abi/device.h"
#include "patchbay/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_MODEL "patchbay.model/1"
#define PB_MODEL_REVISION 1 /* a draft: plugins of another revision are refused */

/* [call] The model folder's config.json, flattened: "rope_scaling.factor" → "8.0". An empty array is "[]", an empty object
 * "{}", and a string that would read as another type keeps its quotes. */
typedef struct pb_model_config {
    uint32_t          struct_size;
    uint32_t          count;
    const pb_setting *items;       /* scalars only, as JSON text without quotes; arrays as "key.0", "key.1" */
    uint32_t          tensor_parallel_size, rank;
    uint32_t          max_length;  /* tokens that sequences may reach, for positions that depend on it; 0: not said */
    uint32_t          reserved;
} pb_model_config;

typedef struct pb_model_facts { /* filled by load_config() */
    uint32_t struct_size;
    uint32_t vocab_size;
    uint32_t hidden_size;
    uint32_t layer_count;
    uint32_t max_position;   /* tokens that the architecture reaches */
    uint32_t flags;          /* PB_MODEL_… */
    uint32_t embedding, lm_head; /* with PB_MODEL_GIVES_HIDDEN: indices of the weights */
    uint32_t reserved;
} pb_model_facts;

/* GIVES_HIDDEN: forward() writes pb_forward.hidden where it is asked to; the token table's rows are what the first layer
 * gets, and logits are the lm head's of the hidden states and nothing more. Without it no head can be had for the model. */
enum { PB_MODEL_GIVES_HIDDEN = 1 };

typedef int32_t pb_shard;
enum { PB_SHARD_NONE = 0, PB_SHARD_ROWS = 1 /* output features */, PB_SHARD_COLS = 2 /* input features */ };

typedef int32_t pb_target_weight;
enum { PB_TARGET_NONE = 0, PB_TARGET_EMBEDDING = 1, PB_TARGET_LM_HEAD = 2 };

#define PB_MAX_FUSED 4

typedef struct pb_weight_part { /* one tensor of the checkpoint, or some rows of one. Closed: it lies inside of pb_weight_spec,
                               * which grows by arrays of its own */
    char     name[160];   /* "model.layers.0.self_attn.q_proj.weight" */
    char     bias[160];   /* empty: none */
    int64_t  rows;        /* before sharding */
    int64_t  shard_unit;  /* rows or cols are dealt in whole units (head_dim, say); 0: 1 */
    int64_t  first_row;   /* of the stored tensor (a fused qkv, say): these rows begin there, */
    int64_t  stored_rows; /* of so many; 0: as many as `rows`. Of a vector both count its numbers */
    uint32_t transposed;  /* 1: stored as (cols, stored_rows) */
    uint32_t reserved;
} pb_weight_part;

typedef struct pb_row_order { /* where the rows of a part lie in the stored tensor. Closed, as pb_weight_part */
    int64_t unit, stride; /* row r is row first_row + r / unit · stride + r % unit; unit 0: first_row + r */
    int64_t pairs;        /* n: before that, of every n rows r and r + n / 2 are rows 2·r and 2·r + 1; 0: in order */
} pb_row_order;

typedef struct pb_weight_spec { /* filled by weight(): one handle: one tensor, or several fused along rows (qkv, gate_up) */
    uint32_t       struct_size;
    pb_weight_role role;
    pb_shard       shard;
    int64_t        cols;         /* before sharding; of a vector: its length, with rows 1 */
    uint32_t       part_count;   /* 0: computed by the model, see `fill` */
    uint32_t       tied_to;      /* 1 + the index of the weight whose handle it is (tied embeddings), nothing is loaded; 0: none */
    uint64_t       uses;         /* as pb_weight_source.uses */
    float          offset;       /* of a vector: added to each value, in f32 (norms that are stored as w − 1) */
    uint32_t       exact;        /* 1: not rounded while loading (a router, whose choices turn on small differences) */
    pb_weight_part parts[PB_MAX_FUSED];
    /* Which tokens multiply by it, for estimates of a pass's work: of each of n experts of which k are chosen, k / n;
       0: every token does. */
    float          share;
    pb_target_weight of_target;  /* of a head: a weight of the target's, nothing is loaded; part_count is 0 */
    pb_row_order   orders[PB_MAX_FUSED]; /* of the parts; not of a vector's nor of a transposed one */
} pb_weight_spec;

typedef int32_t pb_kv_kind;
enum { PB_KV_FULL = 0, PB_KV_SLIDING = 1, PB_KV_RECURRENT = 2 };

typedef struct pb_kv_spec { /* filled by kv_spec(), of one layer */
    uint32_t   struct_size;
    pb_kv_kind kind;
    uint32_t   heads, kv_heads, head_dim; /* of this rank; 0 of a recurrent layer */
    uint32_t   sliding_window;
    float      scale, soft_cap;
    uint32_t   kv_source_layer;           /* 1 + the layer whose KV it attends over, an earlier one of the same kind, window,
                                           * kv_heads and head_dim: it keeps none itself. 0: its own */
    uint64_t   state_bytes;               /* of a recurrent layer: a sequence's state, of this rank */
    const float *slopes;                  /* [load] as pb_attention_spec.slopes */
    uint32_t   sinks;                     /* 1 + the index of a weight, a vector (heads): what attention gets as
                                           * pb_kv_view.sinks. 0: none */
    uint32_t   reserved;
} pb_kv_spec;

typedef struct pb_forward { /* [step] everything one forward pass needs */
    uint32_t         struct_size;
    uint32_t         token_count;
    const pb_ops    *ops;
    pb_weight *const *weights;    /* by the index of their spec */
    pb_tensor        ids;         /* (T) i32 */
    pb_tensor        positions;   /* (T) i32 */
    pb_tensor        logit_rows;  /* (R) i32: rows of the batch whose logits are wanted */
    pb_tensor        logits;      /* (R, vocab) f32, out */
    pb_dtype         activation_dtype;
    uint32_t         draft_step;  /* of a head without layers: its rows predict the token so many after the next one */
    void            *ctx;         /* for the calls below */
    /* A temporary tensor from the step's workspace, contiguous; data is not zeroed. Lives until the step ends. */
    pb_tensor (*temp)(void *ctx, pb_dtype, int32_t rank, const int64_t *shape);
    /* Appends k and v to the layer's KV and attends: q, out (T, heads, head_dim), k, v (T, kv_heads, head_dim).
     * Of a layer that shares another's KV, k and v are NULL. */
    void (*attend)(void *ctx, uint32_t layer, const pb_tensor *out, const pb_tensor *q, const pb_tensor *k,
                   const pb_tensor *v);
    /* Of a recurrent layer, for the ops that carry states on. */
    void (*state)(void *ctx, uint32_t layer, pb_state *out);
    /* (T, hidden), out: what the lm head makes logits of, for every row. Rank 0: not wanted. Of a head with layers: what
     * stands in for the target's, for the tokens after. */
    pb_tensor        hidden;
    /* Of a head: row feature_rows[t] of features (N, hidden) is the hidden state of the token at positions[t], from the
     * target, or from the head itself where the target has not got so far. `ids` are the tokens one further. */
    pb_tensor        features;
    pb_tensor        feature_rows; /* (T) i32 */
} pb_forward;

typedef struct pb_model {
    uint32_t           struct_size;
    uint32_t           reserved;
    const char *const *architectures; /* NULL-terminated: the names in config.json that it serves */
    const char *const *needs;         /* NULL-terminated: ops that a device may lack and forward() calls; NULL: none */
    /* Reads the hyperparameters; refuses with a reason what it does not do. Before all others. */
    pb_status (*load_config)(void *self, const pb_model_config *, pb_model_facts *);                 /* [control] */
    uint32_t (*weight_count)(void *self);                                                            /* [control] */
    pb_status (*weight)(void *self, uint32_t index, pb_weight_spec *);                               /* [control] */
    /* Values of a weight with part_count 0, cols f32 values (rope frequencies, say). */
    pb_status (*fill)(void *self, uint32_t index, float *out);                                       /* [control] */
    pb_status (*kv_spec)(void *self, uint32_t layer, pb_kv_spec *);                                  /* [control] */
    pb_status (*forward)(void *self, const pb_forward *);                                            /* [step]    */
} pb_model;

/* ---- extension: a draft head ---------------------------------------------------------------- */

/* The model drafts for another one, its target, from whose hidden states it goes on (EAGLE, Medusa). It runs for proposers
 * only, and its config.json comes with the target's, keys after "target.". */
#define PB_MODEL_DRAFT_HEAD "patchbay.model.draft_head/1"
#define PB_MODEL_DRAFT_HEAD_REVISION 1
typedef struct pb_draft_head {
    uint32_t struct_size;
    uint32_t reserved;
    /* After load_config(): tokens that a head without layers predicts one after the other; 0: it has layers. */
    uint32_t (*max_draft_depth)(void *self);                                                         /* [control] */
} pb_draft_head;

/* ---- extension: which keys of config.json it knows ------------------------------------------ */

#define PB_MODEL_CONFIG_KEYS "patchbay.model.config_keys/1"
#define PB_MODEL_CONFIG_KEYS_REVISION 1

typedef int32_t pb_key_use;
enum {
    PB_KEY_READ    = 0, /* it has the effect that it has in transformers                                    */
    PB_KEY_IGNORED = 1, /* it has no effect on logits; `values` not empty: warned about where it has others */
    PB_KEY_LIMITED = 2  /* only `values` and null are taken, anything else is refused; empty: none          */
};

typedef struct pb_config_key { /* [call] */
    uint32_t   struct_size;
    pb_key_use use;
    pb_str     name;   /* "rope_scaling": of an object or a list, with all that is in it */
    pb_str     values; /* by spaces                                                      */
    pb_str     note;   /* why; may be empty                                              */
} pb_config_key;

typedef struct pb_model_config_keys {
    uint32_t struct_size;
    uint32_t reserved;
    /* Calls put(ctx, key) for each key that it knows of this architecture, of which there are none if it serves others.
     * Before load_config() too. [control] */
    pb_status (*each)(void *self, pb_str architecture, void *ctx, void (*put)(void *ctx, const pb_config_key *));
} pb_model_config_keys;

#ifdef __cplusplus
}
#endif
#endif
