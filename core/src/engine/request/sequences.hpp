// All sequences of an engine and where each of them is: still to arrive, held, waiting in order, or running.
#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/request/ids.hpp"
#include "engine/request/waiting_queue.hpp"

namespace patchbay::kv {
struct BlockTable;
}

namespace patchbay::engine {

struct Sequence;

class Sequences {
  public:
    using Map = std::unordered_map<RequestId, std::unique_ptr<Sequence>>;
    using Arrivals = std::set<std::pair<uint64_t, RequestId>>; // by arrival_ns

    Sequences();
    ~Sequences();

    Sequence& add(std::unique_ptr<Sequence>); // by its place: pending, or held
    std::unique_ptr<Sequence> remove(RequestId); // that has left its place
    Sequence* find(RequestId) const;             // null: there is none
    const kv::BlockTable* table_of(RequestId) const; // null: there is none
    const Map& all() const { return all_; }
    bool empty() const { return all_.empty(); }

    const Arrivals& pending() const { return pending_; }
    size_t arrived_by(uint64_t now_ns, size_t max) const; // of those that are pending; it counts up to `max`
    Sequence* next_arrived(uint64_t now_ns);    // held from now on; null: none has arrived

    // ---- places: a sequence is in one at a time; drafts do not wait
    void wait_last(Sequence&, const pb_sequence& record);
    void wait_first(Sequence&, const pb_sequence& record);
    void show(const Sequence&, const pb_sequence& record); // of one that waits, from now on
    void run(Sequence&);
    void leave(Sequence&);                                 // held from now on

    const WaitingQueue& waiting() const { return waiting_; }
    uint64_t waiting_tokens() const { return waiting_tokens_; } // prompts and output to be computed anew
    std::span<Sequence* const> running() const { return running_; } // in order of admission

    // The records of those that wait or have arrived by then, in order; and of those that run.
    std::vector<pb_sequence> waiting_records(uint64_t now_ns, uint32_t block_size) const;
    std::vector<pb_sequence> running_records(uint32_t block_size) const;

  private:
    Map all_;
    Arrivals pending_;
    WaitingQueue waiting_;
    uint64_t waiting_tokens_ = 0;
    std::vector<Sequence*> running_;
};

}  // namespace patchbay::engine
