/* patchbay/abi/attention.h - how KV lies in a page, and attention over it.
 * The host owns pages, block tables and slot mappings; the plugin says how many bytes a page of a layer takes and
 * what lies where inside. plan() runs once a step, append_kv() and run() once a layer. */
#ifndef PATCHBAY_ABI_ATTENTION_H
#define PATCHBAY_ABI_ATTENTION_H
#include "patchbay/abi.h"
#include "patchbay/abi/cost.h"
#include "patchbay/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_ATTENTION "patchbay.attention/1"
#define PB_ATTENTION_REVISION 2 /* a draft: plugins of another revision are refused */

typedef struct pb_attention_spec { /* [load] what the layers of one KV group need */
    uint32_t    struct_size;
    uint32_t    heads, kv_heads, head_dim; /* of this rank, as a config.json gives them: describe() refuses what is 0, and
                                            * heads that are no multiple of kv_heads */
    uint32_t    block_size;                /* tokens a page                                 */
    uint32_t    sliding_window;            /* 0: full; else a token sees this many, itself included */
    pb_dtype    activation_dtype;          /* of q, k, v, out                               */
    pb_dtype    kv_dtype;                  /* asked for: PB_F32, PB_BF16, PB_FP8 or PB_I8, see below */
    float       scale;                     /* of q·k                                        */
    float       soft_cap;                  /* 0: none                                       */
    const char *device;                    /* the device plugin's name: "cpu"               */
    uint32_t    max_seqs, max_tokens;      /* of a batch at most, padding included; 0: not known */
    uint32_t    max_seq_len;               /* likewise, of a sequence                       */
    uint32_t    simulated;                 /* 1: the device computes nothing, whatever its name: cost() is called in place of
                                            * append_kv() and run(), and nothing has an address */
    /* (heads) of this rank: head h adds slopes[h] · (position of the key − position of the query) to its scores, after
     * scale and soft_cap (ALiBi). NULL: none. Only of a plugin with PB_ATTENTION_SLOPES. */
    const float *slopes;
    uint32_t     sinks;     /* 1: pb_kv_view.sinks is there in every layer; only of a plugin with PB_ATTENTION_SINKS */
    uint32_t     reserved;
} pb_attention_spec;

enum { /* what it can do besides: */
    PB_ATTENTION_SLOPES = 1, /* reads pb_attention_spec.slopes */
    PB_ATTENTION_SINKS  = 2  /* reads pb_kv_view.sinks         */
};

/* KV of PB_FP8 and PB_I8 are codes: an element is its code times the scale of its token and head, keys and values
 * apart; a page holds both. The scale is the row's greatest magnitude over 448 or 127: what is kept of a token depends on
 * nothing else. A row with a NaN or an infinity reads back as NaN. */

typedef uint32_t pb_attention_graphs; /* which batches run() may be captured for */
enum {
    PB_GRAPHS_NONE   = 0,
    PB_GRAPHS_DECODE = 1, /* those in which no sequence has more than one query */
    PB_GRAPHS_ANY    = 2
};

typedef struct pb_attention_layout { /* filled by describe() */
    uint32_t struct_size;
    pb_attention_graphs graphs; /* what of it may be captured                             */
    uint64_t page_bytes;    /* of one layer: keys and values of block_size tokens         */
    uint64_t plan_bytes;    /* of the buffer that plan() writes, on the device; 0: none   */
    char     layout_tag[64]; /* equal tags: the bytes of a page mean the same. Terminated */
} pb_attention_layout;

typedef struct pb_attention_arrays { /* [step] a batch's metadata in the device's memory, for its kernels. Closed: pb_attention_batch grows in its place */
    const int32_t *query_starts; /* (seq_count + 1)                                                           */
    const int32_t *seq_lens;     /* (seq_count)                                                               */
    const int32_t *block_starts; /* (seq_count + 1)                                                           */
    const int32_t *blocks;       /* page ids                                                                  */
    const int64_t *slot_mapping; /* (token_count)                                                             */
    const int32_t *positions;    /* (token_count)                                                             */
} pb_attention_arrays;

/* A batch that fills a graph's bucket ends with padding sequences. Those of one token have position 0, seq_len 1, slot
 * −1 and a page that may be read: they are computed like any other, and what they give is dropped. With PB_GRAPHS_ANY
 * there may be others after them without a token, a page, and with seq_len 0. */
typedef struct pb_attention_batch { /* [step] one KV group's view of the step */
    uint32_t       struct_size;
    uint32_t       seq_count;
    uint32_t       token_count;      /* sum of the query lengths                                         */
    /* 1: append_kv() and run() are captured, or were, for such a batch. Which kernels they start, how large and with
     * which arguments may depend on seq_count, token_count, max_query_len and max_seq_len only, which all batches of a
     * graph share (the two maxima are bounds then); all else they read from `device` and from the plan buffer. */
    uint32_t       graph;
    const int32_t *query_starts; /* (seq_count + 1): rows of sequence s are [query_starts[s], query_starts[s + 1])   */
    const int32_t *seq_lens;     /* (seq_count): tokens with KV after this step                                      */
    /* The block table of sequence s, one page id for each block_size tokens of seq_lens[s], is
     * blocks[block_starts[s], block_starts[s + 1]); block_starts[0] need not be 0. −1: freed, no row sees it.       */
    const int32_t *block_starts; /* (seq_count + 1)                                                                  */
    const int32_t *blocks;
    const int64_t *slot_mapping; /* (token_count): page · block_size + offset; −1: do not write                      */
    const int32_t *positions;    /* (token_count): absolute, from 0                                                  */
    uint32_t       max_query_len, max_seq_len;
    pb_attention_arrays device; /* NULL each where memory is the host's or nothing is computed; of a graph: fixed */
    void *queue; /* the device's, see pb_device.queue: what reads or writes its memory goes there. NULL: it has none */
} pb_attention_batch;

typedef struct pb_kv_view { /* [step] where the pages of one layer are: page p begins at data + p · page_stride */
    uint32_t struct_size;
    uint32_t reserved;
    uint8_t *data;
    uint64_t page_stride; /* bytes; pages of all layers of a group lie in one page of the pool */
    uint32_t page_count;
    uint32_t layer;
    /* (heads) of this rank, in the device's memory: to the sum that a softmax of head h divides by is added e^sinks[h],
     * the weight of a key with that score and a value of 0. NULL: no sinks. */
    const float *sinks;
} pb_kv_view;

typedef struct pb_attention {
    uint32_t struct_size;
    uint32_t reserved;
    /* What it would do for such layers. PB_UNSUPPORTED with a reason: "head_dim 96 not in {64, 128}". */
    pb_status (*describe)(void *self, const pb_attention_spec *, pb_attention_layout *);                 /* [control] */
    /* Once a group at load, after describe() agreed. `bound` goes to the calls below. */
    pb_status (*bind)(void *self, const pb_attention_spec *, void **bound);                              /* [control] */
    void (*unbind)(void *self, void *bound);                                                             /* [control] */
    /* Once a step, before the model runs. The batch's arrays are in host memory and, on devices that have their own, also
     * there (`device`). It writes the plan buffer, in order with ops, also for a graph that is replayed: it is never
     * captured, its buffer stays where it is. */
    pb_status (*plan)(void *self, void *bound, const pb_attention_batch *, void *plan_buffer);           /* [step] */
    /* k, v (T, kv_heads, head_dim) into the slots of the batch. */
    void (*append_kv)(void *self, void *bound, const pb_attention_batch *, const pb_kv_view *,
                      const pb_tensor *k, const pb_tensor *v);                                           /* [step] */
    /* out (T, heads, head_dim) from q (T, heads, head_dim) over the pages; causal by absolute position. The KV of the
     * batch's own tokens has been appended. A row has the same bits whatever else the batch holds and whichever chunk
     * of its prompt it comes in, on any number of threads. */
    void (*run)(void *self, void *bound, const pb_attention_batch *, const pb_kv_view *,
                const pb_tensor *out, const pb_tensor *q);                                               /* [step] */
    /* What append_kv() and run() of one layer take, after plan(). Called in their place on a device that computes
     * nothing; NULL: it serves no such device. */
    pb_status (*cost)(void *self, void *bound, const pb_attention_batch *, pb_cost *out);                /* [step] */
    const char *device; /* [load] the device whose memory it works in, as in pb_attention_spec; NULL: the host's */
    uint32_t    capabilities; /* bit set of PB_ATTENTION_… */
    uint32_t    reserved2;
} pb_attention;

#ifdef __cplusplus
}
#endif
#endif
