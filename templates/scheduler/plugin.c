/* @name@ - a scheduler in C11: the shortest prompt is admitted first; those who wait long count as shorter. */
#include <stdlib.h>
#include <string.h>

#include "patchbay/abi/scheduler.h"
#include "patchbay/plugin_names.h"

static const pb_param params[] = { /* the schema: what YAML may set */
    {"ageing", PB_PARAM_FLOAT, PB_PARAM_HAS_MIN | PB_PARAM_HAS_MAX, "100", 0, 1e9, NULL, "tokens/s",
     "how much shorter a prompt counts for each second"},
};

typedef struct @Class@ {
    double ageing;
} @Class@;

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    @Class@ *const made = malloc(sizeof *made);
    const pb_str value = config->items[0].value; /* every key of the schema is there, with a value in its range */
    char number[64] = "";
    (void)host;
    if (!made) return PB_FAILED;
    memcpy(number, value.data, value.size < sizeof number ? value.size : sizeof number - 1); /* it is not terminated */
    made->ageing = strtod(number, NULL);
    *self = made;
    return PB_OK;
}

static void destroy(void *self) { free(self); }

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t remaining(const pb_sequence *s) { /* tokens to compute; more than one: of the prompt, or drafts */
    return s->prompt_tokens + s->output_tokens + s->draft_tokens - s->computed_tokens - s->in_flight;
}
static uint32_t without_drafts(const pb_sequence *s) { return remaining(s) - s->draft_tokens; }
static int decoding(const pb_sequence *s) { return without_drafts(s) <= 1; } /* its prompt is computed */

/* An upper bound of the pages that n more tokens of s take. */
static uint64_t pages_for(const pb_scheduler_in *in, const pb_sequence *s, uint32_t n) {
    const uint64_t state = s->pages == 0 ? in->state_pages : 0;
    if (n <= s->tokens_until_next_page) return state;
    n -= s->tokens_until_next_page;
    return state + (uint64_t)in->kv_groups * ((n + in->block_size - 1) / in->block_size);
}

/* The plan of the step, and what is left of its budgets. The host gives pages in the order of the plan. */
typedef struct planned {
    const pb_scheduler_in *in;
    pb_scheduler_out *out;
    uint32_t tokens;
    uint64_t pages;
    uint32_t held_tokens; /* of these, for the own tokens of decodes that are still to be planned */
    uint64_t held_pages;  /* likewise */
} planned;

static const pb_sequence *at(const pb_scheduler_in *in, const pb_sequence *list, uint32_t i) {
    return (const pb_sequence *)((const char *)list + (size_t)i * in->sequence_stride);
}
static void run(planned *p, const pb_sequence *s, uint32_t n, uint64_t pages) {
    pb_plan_item *const item =
        (pb_plan_item *)((char *)p->out->items + (size_t)p->out->item_count++ * p->out->item_stride);
    item->id = s->id;
    item->tokens = n;
    p->tokens -= n;
    p->pages -= pages;
}
static void preempt(planned *p, const pb_sequence *s) {
    pb_preempt_item *const item =
        (pb_preempt_item *)((char *)p->out->preempts + (size_t)p->out->preempt_count++ * p->out->preempt_stride);
    item->id = s->id;
    item->how = PB_PREEMPT_RECOMPUTE;
    p->pages += s->pages_freed_if_preempted;
}
static void hold(planned *p, const pb_sequence *s) {
    p->held_tokens += without_drafts(s);
    p->held_pages += pages_for(p->in, s, without_drafts(s));
}
static void let_go(planned *p, const pb_sequence *s) { /* it is planned now, or not at all */
    p->held_tokens -= without_drafts(s);
    p->held_pages -= pages_for(p->in, s, without_drafts(s));
}
/* Tokens of a sequence in this step; only a prompt is kept in one piece, or to chunks of so many. */
static uint32_t chunk(const planned *p, const pb_sequence *s, uint32_t wanted) {
    const uint32_t threshold = p->in->long_prefill_token_threshold, own = least(without_drafts(s), p->tokens),
                   left = p->tokens - least(p->held_tokens, p->tokens);
    if (decoding(s)) return least(wanted, left > own ? left : own); /* drafts that do not fit are left out */
    if (!(p->in->flags & PB_STEP_CHUNKED_PREFILL) || s->flags & PB_SEQ_NO_CHUNK)
        return wanted > left ? 0 : wanted; /* in one piece, or not at all */
    return least(threshold > 0 ? least(wanted, threshold) : wanted, left);
}

/* Those that run, in order of admission; prompts and drafts leave the decodes after them a token each. The latest is
 * preempted where pages run out. */
static void keep_running(planned *p) {
    uint32_t end = p->in->running_count; /* those from here on are preempted */
    for (uint32_t i = 0; i < end; ++i)
        if (decoding(at(p->in, p->in->running, i))) hold(p, at(p->in, p->in->running, i));
    for (uint32_t i = 0; i < end && p->out->item_count < p->in->max_num_seqs; ++i) {
        const pb_sequence *const s = at(p->in, p->in->running, i);
        if (decoding(s)) let_go(p, s);
        uint32_t n = chunk(p, s, remaining(s));
        if (pages_for(p->in, s, n) + p->held_pages > p->pages)
            n = least(n, without_drafts(s)); /* drafts preempt none */
        while (end > i + 1 && pages_for(p->in, s, n) + p->held_pages > p->pages) {
            const pb_sequence *const latest = at(p->in, p->in->running, --end);
            if (decoding(latest)) let_go(p, latest);
            preempt(p, latest);
        }
        while (n > 1 && pages_for(p->in, s, n) > p->pages && p->in->flags & PB_STEP_CHUNKED_PREFILL) --n;
        if (pages_for(p->in, s, n) > p->pages) preempt(p, at(p->in, p->in->running, --end));
        else if (n > 0) run(p, s, n, pages_for(p->in, s, n));
    }
}

typedef struct candidate {
    double key;
    uint32_t index;
} candidate;

static int by_key(const void *a, const void *b) {
    const candidate *const x = a, *const y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : (x->index > y->index) - (x->index < y->index);
}

/* Those that wait, the lowest key first, until one does not fit. */
static void admit(planned *p, const candidate *order) {
    const pb_scheduler_in *const in = p->in;
    for (uint32_t i = 0; i < in->waiting_count && in->running_count + i < in->max_num_seqs; ++i) {
        const pb_sequence *const s = at(in, in->waiting, order[i].index);
        const int alone = in->running_count == 0 && p->out->item_count == 0; /* else a full cache could keep it out */
        const uint32_t cached = least(s->cached_tokens, remaining(s) - 1), whole = remaining(s) - cached;
        const uint64_t kept = alone ? 0 : in->watermark_pages;
        uint32_t n = chunk(p, s, whole);
        while (alone && n > 1 && pages_for(in, s, n + cached) > p->pages && in->flags & PB_STEP_CHUNKED_PREFILL) --n;
        if (n == 0 || pages_for(in, s, n + cached) + kept > p->pages) return;
        run(p, s, n, pages_for(in, s, n + cached));
    }
}

/* In each step. */
static pb_status plan(void *self, const pb_scheduler_in *in, pb_scheduler_out *out) {
    const @Class@ *const me = self;
    planned p = {in, out, in->max_num_batched_tokens, in->free_pages, 0, 0};
    candidate *const order = malloc((in->waiting_count + 1) * sizeof *order);
    if (!order) return PB_EXHAUSTED;
    for (uint32_t i = 0; i < in->waiting_count; ++i) {
        const pb_sequence *const s = at(in, in->waiting, i);
        order[i].key = remaining(s) - least(s->cached_tokens, remaining(s) - 1) -
                       me->ageing * 1e-6 * (double)(in->now_us - s->arrival_us);
        order[i].index = i;
    }
    qsort(order, in->waiting_count, sizeof *order, by_key);
    out->item_count = out->preempt_count = 0;
    keep_running(&p);
    if (out->preempt_count == 0) admit(&p, order); /* else it would take the pages that just came free */
    free(order);
    return PB_OK;
}

static const pb_scheduler table = {.struct_size = sizeof table, .plan = plan};
static const pb_component component = {
    .struct_size = sizeof component, .revision = PB_SCHEDULER_REVISION, .kind = PB_SCHEDULER,
    .name = "@name@", .version = "0.1.0", .summary = "the shortest prompt first, with ageing",
    .params = params, .param_count = 1, .param_stride = sizeof params[0],
    .create = create, .destroy = destroy, .vtable = &table,
};
static const pb_component *const components[] = {&component};

__attribute__((visibility("default"))) const pb_plugin pb_plugin_v1 = {
    PB_MAGIC, PB_ABI_MAJOR, PB_ABI_MINOR, sizeof pb_plugin_v1, 1,
    PATCHBAY_PLUGIN_NAME, PATCHBAY_PLUGIN_VERSION, PATCHBAY_PLUGIN_BUILD, components};
