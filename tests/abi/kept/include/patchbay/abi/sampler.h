/* patchbay/abi/sampler.h - which token a row of logits becomes.
 * A sampled token is a pure function of the row's logits, parameters, history and noise (seed, position): never of
 * the batch it came in. Speculation, preemption and swaps rest on that. */
#ifndef PATCHBAY_ABI_SAMPLER_H
#define PATCHBAY_ABI_SAMPLER_H
#include "patchbay/abi.h"
#include "patchbay/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PB_SAMPLER "patchbay.sampler/1"
#define PB_SAMPLER_REVISION 2 /* released: it stays. What is below is promised, see docs/plugins/compatibility.md */

typedef struct pb_logit_bias { /* closed: a pair of numbers */
    int32_t token;
    float   bias;
} pb_logit_bias;

typedef struct pb_sampling_params { /* [step] one request's; meanings as in OpenAI's and vLLM's APIs */
    uint32_t struct_size;
    int32_t  top_k;              /* ≤ 0: off                                    */
    float    temperature;        /* 0: greedy                                   */
    float    top_p;              /* 1: off                                      */
    float    min_p;              /* 0: off                                      */
    float    repetition_penalty; /* 1: off; over prompt and output              */
    float    presence_penalty;   /* 0: off; over output                         */
    float    frequency_penalty;  /* 0: off; over output                         */
    uint32_t logprobs;           /* 0: none; n + 1: the sampled token's and the n highest */
    uint32_t logit_bias_count;
    const pb_logit_bias *logit_bias;
    /* Further stages, each off at 0; docs/sampling.md says what they do and in what order they come */
    const int32_t *dry_breakers; /* ascending token ids: no repetition reaches across one         */
    uint32_t dry_breaker_count;
    float    dry_multiplier;     /* · dry_base^n is subtracted from a token's logit that would continue a repetition, */
    float    dry_base;           /* where n is by how much the repetition is longer than dry_allowed_length           */
    uint32_t dry_allowed_length;
    uint32_t dry_range;          /* tokens of prompt and output looked back at; 0: all            */
    float    top_n_sigma;        /* standard deviations below the highest logit                   */
    float    typical_p;          /* 1 and more: off, too                                          */
    float    xtc_probability;
    float    xtc_threshold;      /* of the tokens at least so probable only the least probable one stays */
    float    mirostat_tau;       /* bits                                                          */
    float    mirostat_eta;
    uint32_t reserved;
} pb_sampling_params;

typedef struct pb_sample_row { /* an element of rows */
    uint64_t        id;             /* of the sequence */
    uint64_t        seed;           /* Philox key: the request's seed, or one derived from the engine's */
    uint64_t        position;       /* of the token to be sampled, counted from the prompt's first       */
    const pb_sampling_params *params;
    const int32_t  *prompt;         /* prompt tokens */
    const int32_t  *output;         /* output tokens so far, accepted drafts of this step included */
    uint32_t        prompt_count, output_count;
    const uint32_t *allowed;        /* (vocab + 31) / 32 words; bit t % 32 of word t / 32 set: token t may be sampled.
                                     * NULL: all may */
    const float    *surprisal;       /* of each output token, as pb_sample_batch.surprisal gave it when it was sampled; NULL: the
                                     * row has no mirostat_tau. With one nothing is drafted */
} pb_sample_row;

typedef struct pb_sample_batch { /* [call] */
    uint32_t             struct_size;
    uint32_t             row_count;
    uint32_t             row_stride;    /* sizeof(pb_sample_row) at the host */
    uint32_t             max_logprobs;  /* room a row in top_tokens and top_logprobs */
    pb_tensor            logits;        /* (row_count, vocab) f32 in host memory, strides (any, 1); the sampler may write
                                         * into it */
    const pb_sample_row *rows;
    int32_t             *tokens;        /* out, row_count */
    float               *logprobs;      /* out, row_count: of the sampled token, where a row asks; log-softmax of the raw logits */
    int32_t             *top_tokens;    /* out, (row_count, max_logprobs), highest first; −1 past a row's number */
    float               *top_logprobs;  /* out, likewise */
    int32_t             *faults;        /* out, row_count, which come as 0: 1 for a row whose logits are all NaN or excluded. It
                                         * still gets an id in range, an allowed one if there is one. Of sample() only */
    float               *surprisal;      /* out, row_count, of rows with mirostat_tau: −log2 of the sampled token's probability
                                         * among those it was drawn from, which the host keeps with it. NULL: no row has */
} pb_sample_batch;

typedef struct pb_sampler {
    uint32_t struct_size;
    uint32_t reserved;
    const char *device; /* NULL: the host copies logits to it, and it has sample(); else the device that it runs on, by the
                         * plugin's name or what that is compatible_with: it has the extension below, and no sample() */
    pb_status (*sample)(void *self, pb_sample_batch *);                                  /* [step] */
    /* Optional: the final log-probabilities (after penalties and truncation) of each row, written over the
     * logits. `rejection` verification needs it. Not of a sampler on a device. */
    pb_status (*process)(void *self, pb_sample_batch *);                                 /* [step] */
    /* Optional: PB_UNSUPPORTED and, as its error's text, which of these parameters it does not have. Such a request is
     * refused, and so is a swap to it while there is one. NULL: it takes all, and may ignore some. */
    pb_status (*accepts)(void *self, const pb_sampling_params *);                        /* [step] */
} pb_sampler;

/* ---- extension: sampling on a device -------------------------------------------------------- */

#define PB_SAMPLER_DEVICE "patchbay.sampler.device/1"
#define PB_SAMPLER_DEVICE_REVISION 1 /* a draft: components of another revision are refused */

typedef struct pb_sample_plan { /* filled by plan() */
    uint32_t    struct_size;
    uint32_t    reserved;
    const void *inputs;        /* the sampler's, in host memory, until its next plan(): parameters, masks, seeds, positions and
                                * what else of the rows its kernels read, laid out as they want it. The host sends it on */
    uint64_t    input_bytes;
    uint64_t    scratch_bytes; /* of device memory that the kernels work in */
} pb_sample_plan;

typedef struct pb_sample_work { /* [call] the batch of the latest plan(), on the device. Pointers are to its memory, 64-byte
                                 * aligned, which stays and which no other writes until end_step() or wait_step() of the
                                 * step has returned; tokens until that of the step after it, which may read them */
    uint32_t    struct_size;
    uint32_t    row_count;
    uint32_t    max_logprobs;
    uint32_t    reserved;
    void       *queue;        /* [load] pb_device.queue()'s; NULL: it has none, and what is called runs at once */
    pb_tensor   logits;       /* (row_count, vocab) f32; the sampler may write into it */
    const void *inputs;       /* what plan() gave */
    void       *scratch;      /* of any content */
    int32_t    *tokens;       /* out, row_count */
    int32_t    *faults;       /* out, row_count: 1 where sample() would count one, else 0 */
    float      *logprobs;     /* out, row_count: where a row asks, as sample() gives them; else anything */
    int32_t    *top_tokens;   /* out, (row_count, max_logprobs), −1 past a row's number */
    float      *top_logprobs; /* out, likewise; anything past a row's number */
} pb_sample_work;

typedef struct pb_sampler_device {
    uint32_t struct_size;
    uint32_t reserved;
    /* The batch's logits and outputs are NULL (their shapes are right); it reads all it needs of the rows. */
    pb_status (*plan)(void *self, const pb_sample_batch *, pb_sample_plan *out);         /* [step] */
    /* Starts the work in order with ops, waits for nothing and is never captured; once a plan(), inside the same step and
     * after what makes the logits. Where tokens of a step in flight are missing from a row's `output`, the row has no
     * parameter that looks at them. */
    pb_status (*enqueue)(void *self, const pb_sample_work *);                            /* [step] */
} pb_sampler_device;

#ifdef __cplusplus
}
#endif
#endif
