/* kept_c - first come, first served, in plain C: whoever runs goes on in order of admission, the latest gives way when
 * pages run out, and those who wait follow while there is room. */
#include "patchbay/abi/scheduler.h"
#include "plain.h"

static const pb_sequence *at(const pb_sequence *first, uint32_t i, const pb_scheduler_in *in) {
    return (const pb_sequence *)((const char *)first + (size_t)i * in->sequence_stride);
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint32_t remaining(const pb_sequence *s) {
    return s->prompt_tokens + s->output_tokens + s->draft_tokens - s->computed_tokens - s->in_flight;
}

/* Pages that n tokens more take at most. */
static uint32_t pages_for(const pb_scheduler_in *in, const pb_sequence *s, uint32_t n) {
    const uint32_t state = s->pages == 0 ? in->state_pages : 0;
    if (n <= s->tokens_until_next_page) return state;
    return state + (n - s->tokens_until_next_page + in->block_size - 1) / in->block_size * in->kv_groups;
}

/* Tokens, n at most, for which so many pages are sure to do. */
static uint32_t tokens_in(const pb_scheduler_in *in, const pb_sequence *s, uint32_t n, uint32_t pages) {
    const uint32_t state = s->pages == 0 ? in->state_pages : 0;
    if (pages < state) return 0;
    return least(n, s->tokens_until_next_page + (pages - state) / in->kv_groups * in->block_size);
}

static void run(pb_scheduler_out *out, const pb_sequence *s, uint32_t tokens) {
    pb_plan_item *const item = (pb_plan_item *)((char *)out->items + (size_t)out->item_count++ * out->item_stride);
    item->id = s->id;
    item->tokens = tokens;
}

static void preempt(pb_scheduler_out *out, const pb_sequence *s) {
    pb_preempt_item *const item =
        (pb_preempt_item *)((char *)out->preempts + (size_t)out->preempt_count++ * out->preempt_stride);
    item->id = s->id;
}

static uint32_t wanted(const pb_scheduler_in *in, uint32_t tokens, uint32_t budget) {
    if (in->long_prefill_token_threshold > 0) tokens = least(tokens, in->long_prefill_token_threshold);
    return least(tokens, budget);
}

struct room {
    uint32_t tokens, pages, seats;
};

static void keep_running(const pb_scheduler_in *in, pb_scheduler_out *out, struct room *room) {
    uint32_t end = in->running_count; /* from here on they are preempted */
    for (uint32_t i = 0; i < end && room->tokens > 0; ++i) {
        const pb_sequence *const s = at(in->running, i, in);
        uint32_t n = wanted(in, remaining(s), room->tokens);
        if (n == 0) continue;
        while (tokens_in(in, s, n, room->pages) == 0 && end > i + 1) {
            const pb_sequence *const last = at(in->running, --end, in);
            preempt(out, last);
            room->pages += last->pages_freed_if_preempted;
            room->seats += 1;
        }
        n = tokens_in(in, s, n, room->pages);
        if (n == 0) continue;
        room->tokens -= n;
        room->pages -= pages_for(in, s, n);
        run(out, s, n);
    }
}

static void admit(const pb_scheduler_in *in, pb_scheduler_out *out, struct room *room) {
    for (uint32_t i = 0; i < in->waiting_count && room->seats > 0 && room->tokens > 0; ++i) {
        const pb_sequence *const s = at(in->waiting, i, in);
        const uint32_t all = remaining(s), cached = least(s->cached_tokens, all - 1);
        const int splits = (in->flags & PB_STEP_CHUNKED_PREFILL) && !(s->flags & PB_SEQ_NO_CHUNK);
        uint32_t n = splits ? wanted(in, all - cached, room->tokens) : all - cached, fit;
        if (n > room->tokens) return;
        fit = tokens_in(in, s, n + cached, room->pages);
        if (fit <= cached || (!splits && fit < n + cached)) return;
        n = fit - cached;
        room->tokens -= n;
        room->pages -= pages_for(in, s, n + cached);
        room->seats -= 1;
        run(out, s, n);
    }
}

static pb_status plan(void *self, const pb_scheduler_in *in, pb_scheduler_out *out) {
    struct room room = {in->max_num_batched_tokens, in->free_pages, 0};
    (void)self;
    out->item_count = out->preempt_count = 0;
    if (in->running_count < in->max_num_seqs) room.seats = in->max_num_seqs - in->running_count;
    keep_running(in, out, &room);
    if (out->preempt_count == 0) admit(in, out, &room);
    return PB_OK;
}

static const pb_scheduler table = {.struct_size = sizeof table, .plan = plan};
static const pb_component component = {.struct_size = sizeof component,
                                       .param_stride = sizeof(pb_param),
                                       .revision = PB_SCHEDULER_REVISION,
                                       .kind = PB_SCHEDULER,
                                       .name = "kept_c",
                                       .version = "1.0.0",
                                       .summary = "first come, first served",
                                       .create = create_plain,
                                       .destroy = destroy_plain,
                                       .vtable = &table};
EXPORT_ONE(component)
