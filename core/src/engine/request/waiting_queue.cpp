#include "engine/request/waiting_queue.hpp"

#include <algorithm>
#include <cassert>

namespace patchbay::engine {
namespace {

size_t is_preempted(const pb_sequence& record) { return record.flags & PB_SEQ_PREEMPTED ? 1 : 0; }

}  // namespace

QueueTicket WaitingQueue::push_back(const pb_sequence& record) {
    changes_ += 1;
    preempted_ += is_preempted(record);
    records_.push_back(record);
    tickets_.push_back(next_);
    return next_++;
}

QueueTicket WaitingQueue::push_front(const pb_sequence& record) {
    changes_ += 1;
    preempted_ += is_preempted(record);
    if (head_ == 0) { // open a gap as long as the queue, so that this stays cheap on average
        const size_t gap = std::max<size_t>(records_.size(), 16);
        records_.insert(records_.begin(), gap, pb_sequence{});
        tickets_.insert(tickets_.begin(), gap, QueueTicket{});
        head_ = gap;
    }
    head_ -= 1;
    records_[head_] = record;
    tickets_[head_] = before_;
    return before_--;
}

size_t WaitingQueue::index_of(QueueTicket ticket) const {
    const auto at = std::lower_bound(tickets_.begin() + static_cast<ptrdiff_t>(head_), tickets_.end(), ticket);
    assert(at != tickets_.end() && *at == ticket);
    return static_cast<size_t>(at - tickets_.begin());
}

void WaitingQueue::replace(QueueTicket ticket, const pb_sequence& record) {
    pb_sequence& shown = records_[index_of(ticket)];
    preempted_ -= is_preempted(shown);
    preempted_ += is_preempted(record);
    shown = record;
}

void WaitingQueue::erase(QueueTicket ticket) {
    changes_ += 1;
    const size_t i = index_of(ticket);
    preempted_ -= is_preempted(records_[i]);
    const auto shift = [&](auto& v) {
        const auto first = v.begin() + static_cast<ptrdiff_t>(head_), at = v.begin() + static_cast<ptrdiff_t>(i);
        if (i - head_ <= v.size() - 1 - i) std::move_backward(first, at, at + 1);
        else v.erase(at);
    };
    const bool from_front = i - head_ <= records_.size() - 1 - i;
    shift(records_);
    shift(tickets_);
    if (from_front) head_ += 1;
    if (empty()) {
        records_.clear();
        tickets_.clear();
        head_ = 0;
    } else if (head_ > 64 && head_ > 3 * (records_.size() - head_)) { // give the gap back
        records_.erase(records_.begin(), records_.begin() + static_cast<ptrdiff_t>(head_));
        tickets_.erase(tickets_.begin(), tickets_.begin() + static_cast<ptrdiff_t>(head_));
        head_ = 0;
    }
}

}  // namespace patchbay::engine
