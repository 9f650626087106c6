#include "engine/scheduling/scheduler_view.hpp"

#include "config/engine_config.hpp"
#include "engine/groups/beam_room.hpp"
#include "engine/request/sequence.hpp"
#include "engine/scheduling/prefix_hints.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

SchedulerView::SchedulerView(const config::EngineSettings& settings, const Sequences& sequences, const kv::KvCache& kv,
                             PrefixHints& hints, BeamRoom& beams, const PressureMonitor& pressure)
    : settings_(settings), sequences_(sequences), kv_(kv), hints_(hints), beams_(beams), pressure_(pressure) {}

// Shared pages do not come free. Counting them costs the table's length, so only where it may decide: where preemption
// is near, and where one that waits needs pages for all its tokens.
bool SchedulerView::counts_shared_pages(bool any_waits) const {
    if (any_waits && settings_.reserve_full_sequence) return true;
    const size_t running = sequences_.running().size();
    const size_t groups = kv_.shape().windows().size() + kv_.shape().state_pages();
    const size_t soon = running * 2 + settings_.max_num_batched_tokens / kv_.shape().block_size();
    return kv_.pool().free() < soon * groups;
}

pb_scheduler_in SchedulerView::show(uint64_t step) {
    const kv::BlockPool& blocks = kv_.pool();
    hints_.update();
    const auto waiting = beams_.with_seats(sequences_.waiting().records());
    const bool counts = counts_shared_pages(!waiting.empty());
    running_.clear();
    for (const Sequence* s : sequences_.running()) {
        running_.push_back(record_of(*s, {}, kv_.shape().block_size()));
        if (counts) running_.back().pages_freed_if_preempted = kv_.tables().pages_freed_if_preempted(s->kv.table);
    }
    beams_.charge_copies(running_);
    beams_.limit_chunks(running_);
    pb_scheduler_in in{};
    in.struct_size = sizeof in;
    in.sequence_stride = sizeof(pb_sequence);
    in.step = step;
    in.max_num_batched_tokens = settings_.max_num_batched_tokens;
    in.max_num_seqs = settings_.max_num_seqs;
    in.block_size = kv_.shape().block_size();
    in.kv_groups = static_cast<uint32_t>(kv_.shape().windows().size());
    in.group_windows = kv_.shape().windows().data();
    in.state_pages = kv_.shape().state_pages();
    in.free_pages = blocks.free();
    in.total_pages = blocks.total();
    in.watermark_pages = static_cast<uint32_t>(pressure_.watermark() * blocks.total());
    in.flags = settings_.enable_chunked_prefill ? uint32_t{PB_STEP_CHUNKED_PREFILL} : 0u;
    if (settings_.reserve_full_sequence) in.flags |= PB_STEP_RESERVE_FULL;
    in.running = running_.data();
    in.running_count = static_cast<uint32_t>(running_.size());
    in.waiting = waiting.data();
    in.waiting_count = static_cast<uint32_t>(waiting.size());
    in.long_prefill_token_threshold = settings_.long_prefill_token_threshold;
    return in;
}

pb_scheduler_in SchedulerView::show_all(uint64_t step) {
    pb_scheduler_in in = show(step);
    const auto all = sequences_.waiting().records();
    in.waiting = all.data();
    in.waiting_count = static_cast<uint32_t>(all.size());
    return in;
}

}  // namespace patchbay::engine
