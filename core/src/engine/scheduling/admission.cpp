#include "engine/scheduling/admission.hpp"

#include <algorithm>
#include <utility>

#include "engine/loop/step_context.hpp"
#include "engine/request/sequence.hpp"
#include "engine/request/sequences.hpp"
#include "engine/scheduling/prefix_hints.hpp"
#include "engine/scheduling/scheduler_port.hpp"

namespace patchbay::engine {

Admission::Admission(Sequences& sequences, PrefixHints& hints, SchedulerPort& scheduler, const StepContext& context,
                     uint32_t max_waiting)
    : sequences_(sequences), hints_(hints), scheduler_(scheduler), context_(context), max_waiting_(max_waiting) {}

void Admission::admit() {
    while (Sequence* s = sequences_.next_arrived(context_.now_ns)) {
        if (is_full()) refused_.push_back(s->id);
        else put_last(*s);
    }
}

std::vector<RequestId> Admission::take_refused() { return std::exchange(refused_, {}); }

size_t Admission::room() const {
    const WaitingQueue& queue = sequences_.waiting();
    const size_t taken = queue.records().size() - queue.preempted();
    return max_waiting_ - std::min<size_t>(taken, max_waiting_);
}

bool Admission::is_full() const { return max_waiting_ > 0 && room() == 0; }

bool Admission::is_full_by(uint64_t now_ns) const {
    return max_waiting_ > 0 && sequences_.arrived_by(now_ns, room()) == room();
}

std::string Admission::full_queue() const {
    return "the queue is full: max_waiting is " + std::to_string(max_waiting_);
}

void Admission::put_last(Sequence& s) {
    s.place = Place::kWaiting;
    const pb_sequence record = hints_.record(s);
    sequences_.wait_last(s, record);
    announce(s, record);
}

void Admission::put_first(Sequence& s) {
    s.place = Place::kWaiting;
    const pb_sequence record = hints_.record(s);
    sequences_.wait_first(s, record);
    announce(s, record);
}

void Admission::announce(Sequence& s, const pb_sequence& record) {
    if (!std::exchange(s.announced, true)) scheduler_.arrived(record);
}

void Admission::leave(Sequence& s) {
    hints_.forget(s);
    sequences_.leave(s);
}

}  // namespace patchbay::engine
