#include "engine/groups/beam_room.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "config/engine_config.hpp"
#include "engine/request/sequence.hpp"
#include "engine/speculation/draft_kv.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {
namespace {

uint32_t left_to_compute(const pb_sequence& r) { // as scheduler.h says
    return r.prompt_tokens + r.output_tokens + r.draft_tokens - r.computed_tokens - r.in_flight;
}

}  // namespace

BeamRoom::BeamRoom(const config::EngineSettings& settings, const Sequences& sequences, const kv::KvCache& kv,
                   const DraftKvTable& draft_kv, const BeamGroups& groups)
    : settings_(settings), sequences_(sequences), kv_(kv), draft_kv_(draft_kv), groups_(groups),
      no_windows_(kv.shape().windows().size(), 0) {}

uint64_t BeamRoom::max_pages(uint64_t prompt, uint64_t tokens, uint64_t width) const {
    // The last token is never computed, but for a draft model.
    const uint64_t computed = tokens - !draft_kv_.has_draft_model();
    return pages_of_beams().at_most(prompt, computed, width, settings_.enable_chunked_prefill);
}

// A draft model may lag, and pages stay until it has.
BeamPages BeamRoom::pages_of_beams() const {
    return {draft_kv_.has_draft_model() ? std::span<const uint32_t>(no_windows_) : kv_.shape().windows(),
            kv_.shape().block_size()};
}

// Pages that a search which comes back takes until each beam has its own again. At most max_pages().
uint64_t BeamRoom::pages_to_come(const BeamGroup& g) const {
    const BeamPages pages = pages_of_beams();
    const Sequence& first = *g.slots[0];
    const size_t width = g.search.open().size();
    uint64_t unlike = 0; // blocks of beams that differ from the first one
    for (size_t i = 1; i < width; ++i) {
        const Sequence& s = *g.slots[i];
        const bool is_back = s.kv.table.held > 0 && (s.idle || s.decoding());
        if (!is_back) unlike += pages.blocks(s.confirmed()) - g.shared_with_first(i) / kv_.shape().block_size();
    }
    if (unlike == 0) return 0;
    const uint32_t kept_from = std::min(g.needed_from(), first.confirmed() - 1);
    uint64_t all = 0, alone = 0;
    for (size_t group = 0; group < pages.groups(); ++group) {
        const uint64_t kept = pages.of_first(group, kept_from, first.confirmed());
        all += std::min(kept + unlike, pages.of_all(group, first.prompt_count, first.confirmed(), width));
        alone += settings_.enable_chunked_prefill ? kept : pages.blocks(first.confirmed());
    }
    const uint64_t max_pages = std::max(all, alone);
    return max_pages - std::min(max_pages, pages_held(g));
}

// For all beams of a search that comes back: after its first one those that differ from it compute what they have of
// their own. Without pages for that it would be preempted anew in the next step, and a policy that prefers prompts
// would let nothing else run between. At most max_pages(), so there are as many when nothing else runs.
bool BeamRoom::has_room(const Sequence& s) const {
    const size_t running = sequences_.running().size();
    const BeamGroup* const g = find_group(groups_, s);
    if (!g) return running < settings_.max_num_seqs;
    if (running + g->slots.size() > settings_.max_num_seqs) return false;
    if (g->search.open().size() < 2) return true;
    uint64_t pages = pages_to_come(*g);
    for (const auto& [id, other] : groups_) // that come back at this time: each is to have its own
        if (other.get() != g && other->slots[0]->place == Place::kRunning) pages += pages_to_come(*other);
    return pages <= kv_.pool().free();
}

// Beams short of seats or blocks are not shown: a scheduler, which sees one sequence, could plan them before all
// others, step by step, and nothing would run. Nor is what came later, or they might wait for ever.
std::span<const pb_sequence> BeamRoom::with_seats(std::span<const pb_sequence> waiting) {
    if (groups_.empty()) return waiting;
    with_seats_.clear();
    for (const pb_sequence& r : waiting) {
        const Sequence& s = *sequences_.find(r.id);
        if (s.is_beam() && !has_room(s)) break;
        with_seats_.push_back(r);
    }
    return with_seats_;
}

// A page that several running beams are about to write to is copied by all of them but one: room for it is to be
// counted as often.
void BeamRoom::charge_copies(std::span<pb_sequence> records) const {
    if (groups_.empty()) return;
    std::unordered_map<kv::BlockId, uint32_t> writers;
    for (size_t i = 0; i < records.size(); ++i) {
        const Sequence& s = *sequences_.running()[i];
        const uint32_t block = s.computed / kv_.shape().block_size();
        if (!s.is_beam() || s.idle || block >= s.kv.table.blocks) continue;
        const kv::BlockId page = s.kv.table.pages[0][block];
        if (++writers[page] < kv_.pool().references(page)) records[i].tokens_until_next_page = 0;
    }
}

// Windows free pages after a step only: beams that compute more than their newest token are shown with so many as there
// are pages for, at least those up to the end of a block. Of a sequence that lacked some, a scheduler would preempt
// others of its search, and so all of it, time and again. A prompt may drive out what is not of its search, so it gets
// what there is when nothing else runs: what is left of it decides in some schedulers who gives way.
void BeamRoom::limit_chunks(std::span<pb_sequence> records) const {
    if (groups_.empty()) return;
    const uint32_t size = kv_.shape().block_size();
    const uint64_t groups = kv_.shape().windows().size();
    uint64_t left = kv_.pool().free() / groups; // blocks that no sequence takes with its next token
    for (const pb_sequence& r : records)
        if (left_to_compute(r) > 0 && r.tokens_until_next_page == 0 && left > 0) left -= 1;
    for (pb_sequence& r : records) {
        const uint32_t tokens = std::min(left_to_compute(r), max_chunk());
        // A page that is to be copied ends with its block, too.
        const uint32_t near = r.tokens_until_next_page > 0 ? r.tokens_until_next_page : size - r.computed_tokens % size;
        const auto at = groups_.find(r.group);
        if (at == groups_.end() || tokens <= near) continue;
        const BeamGroup& g = *at->second;
        const uint64_t wanted = (tokens - near + size - 1) / size;
        uint64_t given = std::min(wanted, left);
        if (given < wanted && g.search.open().size() < 2) {
            const uint64_t alone = (kv_.pool().total() - pages_held(g)) / groups, first = r.tokens_until_next_page == 0;
            given = std::min(wanted, alone - std::min(alone, first));
        }
        left -= std::min(left, given);
        const uint64_t shown = std::min<uint64_t>(left_to_compute(r), near + given * size);
        if (given < wanted) r.computed_tokens += left_to_compute(r) - static_cast<uint32_t>(shown);
    }
}

// Of a prompt, or of what is computed anew, in a step.
uint32_t BeamRoom::max_chunk() const {
    if (!settings_.enable_chunked_prefill) return UINT32_MAX;
    const uint32_t threshold = settings_.long_prefill_token_threshold;
    return threshold > 0 ? std::min(threshold, settings_.max_num_batched_tokens) : settings_.max_num_batched_tokens;
}

uint64_t BeamRoom::pages_held(const BeamGroup& g) const {
    std::unordered_set<kv::BlockId> pages;
    for (const Sequence* s : g.slots) {
        const kv::BlockTable& t = s->kv.table;
        for (size_t group = 0; t.held > 0 && group < t.pages.size(); ++group)
            pages.insert(t.pages[group].begin() + t.freed_prefix[group], t.pages[group].end());
    }
    return pages.size();
}

}  // namespace patchbay::engine
