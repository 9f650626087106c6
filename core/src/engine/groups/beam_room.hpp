// Seats and pages for beam searches: whether one can come, and what schedulers, which see single sequences, are shown
// so that the beams of a search stay together. Used by SchedulerView, Placement and BeamSearches.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/groups/beam_group.hpp"
#include "engine/groups/beam_pages.hpp"
#include "engine/request/sequences.hpp"

namespace patchbay::config {
struct EngineSettings;
}

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

class DraftKvTable;

class BeamRoom {
  public:
    BeamRoom(const config::EngineSettings&, const Sequences&, const kv::KvCache&, const DraftKvTable&,
             const BeamGroups&);

    // Pages that a search takes at most, whenever it is preempted. tokens: of a whole sequence, with its prompt.
    uint64_t max_pages(uint64_t prompt, uint64_t tokens, uint64_t width) const;
    bool has_room(const Sequence&) const; // a seat; for a beam seats for all, and their blocks when they come back

    // ---- what schedulers are shown
    // Of the queue those that there are seats and blocks for.
    std::span<const pb_sequence> with_seats(std::span<const pb_sequence> waiting);
    // In records of the sequences that run, in their order.
    void charge_copies(std::span<pb_sequence> running) const;
    void limit_chunks(std::span<pb_sequence> running) const; // once copies are charged

  private:
    BeamPages pages_of_beams() const;
    uint64_t pages_to_come(const BeamGroup&) const;
    uint64_t pages_held(const BeamGroup&) const; // of all its beams, each once
    uint32_t max_chunk() const;

    const config::EngineSettings& settings_;
    const Sequences& sequences_;
    const kv::KvCache& kv_;
    const DraftKvTable& draft_kv_;
    const BeamGroups& groups_;
    std::vector<pb_sequence> with_seats_;
    const std::vector<uint32_t> no_windows_; // by group of tokens
};

}  // namespace patchbay::engine
