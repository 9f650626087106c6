#include "host/slot.hpp"

#include <algorithm>
#include <cassert>

namespace patchbay::host {

Slot::Slot(std::string kind, UnreadState unread, const Clock& clock)
    : unread_(unread), clock_(clock), line_(std::move(kind), clock) {}

void Slot::install(std::unique_ptr<Component> first, Identity identity) {
    current_ = std::move(first);
    filled_ = true;
    line_.replace_holder(std::move(identity));
}

std::optional<uint64_t> Slot::due() const { return under_way_ ? std::nullopt : line_.due(); }

void Slot::take() {
    assert(!under_way_);
    under_way_ = line_.pop();
}

uint64_t Slot::transaction() const { return under_way_ ? under_way_->transaction() : 0; }
const Component* Slot::candidate() const { return under_way_ ? under_way_->candidate_.get() : nullptr; }

void Slot::note_pause(uint64_t ns) {
    under_way_->update([&](SwapRecord& r) { r.pause_ns = std::max(r.pause_ns, ns); });
}

Result<> Slot::hand_over(std::string& phase) {
    return transfer_state(current(), *under_way_->candidate_, unread_, under_way_->state_, phase);
}

SwapRecord Slot::turn_away(uint64_t step, const std::string& phase, const Failure& why) {
    assert(under_way_);
    Swap& swap = *under_way_;
    return line_.settle(under_way_, [&](SwapRecord& r, const Identity& holder) {
        r.from = holder;
        r.end(SwapState::kRefused, phase, why);
        r.end_step = step;
        swap.retired_ = std::move(swap.candidate_);
    });
}

void Slot::let_in() {
    probation_.replace(current_, std::move(under_way_->candidate_), line_.replace_holder(under_way_->record_.to));
}

SwapRecord Slot::begin_probation(uint64_t step, uint32_t steps, uint64_t since_ns) {
    probation_.begin(steps);
    return under_way_->update([&](SwapRecord& r) {
        r.from = probation_.identity();
        r.state = SwapState::kOnProbation;
        r.step = step;
        r.time_ns = since_ns;
        r.pause_ns = std::max(r.pause_ns, clock_.now_ns() - since_ns);
    });
}

SwapRecord Slot::commit(uint64_t step) {
    assert(under_way_);
    Swap& swap = *under_way_;
    return line_.settle(under_way_, [&](SwapRecord& r, const Identity&) {
        r.state = SwapState::kCommitted;
        r.end_step = step;
        swap.retired_ = probation_.commit();
    });
}

SwapRecord Slot::roll_back(uint64_t step, const std::string& phase, const Failure& why) {
    assert(under_way_);
    Swap& swap = *under_way_;
    return line_.settle(under_way_, [&](SwapRecord& r, Identity& holder) {
        swap.retired_ = probation_.roll_back(current_, holder);
        r.end(SwapState::kRolledBack, phase, why);
        r.end_step = step;
    });
}

SwapRecord enter(Slot& slot, uint64_t step, uint32_t probation_steps, uint64_t since_ns, const Greet& greet) {
    std::string phase;
    if (const Result<> handed_over = slot.hand_over(phase); !handed_over)
        return slot.turn_away(step, phase, handed_over.failure());
    slot.let_in();
    greet(slot.current());
    return slot.begin_probation(step, probation_steps, since_ns);
}

}  // namespace patchbay::host
