#include "engine/request/sequence.hpp"

#include "engine/request/request.hpp"
#include "kv/cached_prefix.hpp"
#include "patchbay/abi/scheduler.h"

namespace patchbay::engine {

bool Sequence::is_beam() const { return request->sampling.beam_width > 0; }
bool Sequence::has_siblings() const { return sequences_of(request->sampling) > 1; }

pb_sequence record_of(const Sequence& s, kv::CachedPrefix hint, uint32_t block_size) {
    pb_sequence r{};
    r.id = s.id;
    r.group = s.group;
    r.arrival_us = s.request->arrival_ns / 1000;
    r.deadline_us = s.request->deadline_ns / 1000;
    r.priority = s.request->priority;
    r.tenant = s.request->tenant;
    r.prompt_tokens = s.prompt_count;
    r.output_tokens = s.outputs() + s.in_flight.placeholders;
    r.max_tokens = s.request->sampling.max_tokens;
    r.computed_tokens = s.computed;
    r.in_flight = s.in_flight.tokens;
    r.draft_tokens = s.drafts;
    r.pages = s.kv.table.held;
    r.tokens_until_next_page = s.kv.table.blocks * block_size - s.computed - s.in_flight.tokens;
    r.pages_freed_if_preempted = r.pages;
    if (s.idle) {
        r.computed_tokens = s.confirmed();
        r.tokens_until_next_page = 0;
    }
    r.cached_tokens = s.place == Place::kWaiting ? hint.tokens : s.record.cached_tokens;
    r.cached_pages_in_use = s.place == Place::kWaiting ? hint.pages_in_use : 0;
    r.beams = s.request->sampling.beam_width;
    r.flags = s.place == Place::kWaiting && s.record.preemptions > 0 ? uint32_t{PB_SEQ_PREEMPTED} : 0u;
    if (!s.kv.swapped.empty()) r.flags |= PB_SEQ_SWAPPED;
    r.preemptions = s.record.preemptions;
    r.expected_output_tokens = s.request->expected_output_tokens;
    return r;
}

}  // namespace patchbay::engine
