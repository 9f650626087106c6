// The sequences that wait, as the contiguous records that schedulers are shown: preempted ones and siblings in front,
// then by arrival. Taking one out costs the distance to the nearer end, not the length of the queue.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/ids.hpp"
#include "patchbay/abi/scheduler.h"

namespace patchbay::engine {

class WaitingQueue {
  public:
    QueueTicket push_back(const pb_sequence&);
    QueueTicket push_front(const pb_sequence&);
    void erase(QueueTicket);
    void replace(QueueTicket, const pb_sequence&);
    std::span<const pb_sequence> records() const { return {records_.data() + head_, records_.size() - head_}; }
    bool empty() const { return head_ == records_.size(); }
    size_t preempted() const { return preempted_; } // records of sequences that ran before
    uint64_t changes() const { return changes_; } // how often one came or left

  private:
    size_t index_of(QueueTicket) const;
    std::vector<pb_sequence> records_; // live from head_ on
    std::vector<QueueTicket> tickets_;      // beside them, ascending
    size_t head_ = 0;
    size_t preempted_ = 0;
    uint64_t changes_ = 0;
    QueueTicket next_ = 0, before_ = -1;
};

}  // namespace patchbay::engine
