#include "host/slot.hpp"

#include <algorithm>
#include <cassert>

#include "host/library.hpp"

namespace patchbay::host {
namespace {

// "fcfs" of "fcfs/1": saved bytes are offered to components whose state has the same first word.
std::string_view family_of(const char* state) {
    const std::string_view text = state ? state : "";
    return text.substr(0, text.find('/'));
}

// Component::save() into a string that has its room, and no further than the limit.
Result<> save_bounded(const Component& c, std::string& bytes, size_t most) {
    struct Bounded {
        std::string& bytes;
        size_t most;
        bool full = false;
    } to{bytes, most};
    const pb_sink sink{sizeof(pb_sink), 0, &to, [](void* ctx, const void* data, size_t size) {
                           auto& b = *static_cast<Bounded*>(ctx);
                           b.full |= size > b.most - b.bytes.size();
                           if (!b.full) b.bytes.append(static_cast<const char*>(data), size);
                       }};
    const ComponentCall noted(c.label(), c.calls(), "save");
    PB_CHECK(c.check(c.type().save(c.self(), &sink), "save"));
    if (to.full) return fail("more than " + std::to_string(most) + " bytes of state");
    return {};
}

}  // namespace

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
    Swap& swap = *under_way_;
    const pb_component &from = current().type(), &to = swap.candidate_->type();
    if (!from.state) return {};
    phase = "load";
    if (family_of(from.state) != family_of(to.state)) {
        if (unread_ == UnreadState::kStartsEmpty) return {};
        return fail("cannot read state '" + std::string(from.state) + "'");
    }
    phase = "save";
    PB_CHECK(save_bounded(current(), swap.state_, kMaxState));
    phase = "load";
    return swap.candidate_->load(from.state, swap.state_);
}

SwapRecord Slot::turn_away(uint64_t step, const std::string& phase, const std::string& reason) {
    assert(under_way_);
    Swap& swap = *under_way_;
    return line_.settle(under_way_, [&](SwapRecord& r, const Identity& holder) {
        r.from = holder;
        r.end(SwapState::kRefused, phase, reason);
        r.end_step = step;
        swap.retired_ = std::move(swap.candidate_);
    });
}

void Slot::let_in() {
    previous_identity_ = line_.replace_holder(under_way_->record_.to);
    previous_ = std::move(current_);
    current_ = std::move(under_way_->candidate_);
}

SwapRecord Slot::begin_probation(uint64_t step, uint32_t steps, uint64_t since_ns) {
    steps_left_ = steps;
    return under_way_->update([&](SwapRecord& r) {
        r.from = previous_identity_;
        r.state = SwapState::kOnProbation;
        r.step = step;
        r.time_ns = since_ns;
        r.pause_ns = std::max(r.pause_ns, clock_.now_ns() - since_ns);
    });
}

SwapRecord Slot::enter(uint64_t step, uint32_t probation_steps, uint64_t since_ns, const Greet& greet) {
    std::string phase;
    if (const Result<> handed_over = hand_over(phase); !handed_over)
        return turn_away(step, phase, handed_over.error());
    let_in();
    greet(current());
    return begin_probation(step, probation_steps, since_ns);
}

SwapRecord Slot::commit(uint64_t step) {
    assert(under_way_);
    Swap& swap = *under_way_;
    return line_.settle(under_way_, [&](SwapRecord& r, const Identity&) {
        r.state = SwapState::kCommitted;
        r.end_step = step;
        swap.retired_ = std::move(previous_);
    });
}

SwapRecord Slot::roll_back(uint64_t step, const std::string& phase, const std::string& reason) {
    assert(under_way_);
    Swap& swap = *under_way_;
    return line_.settle(under_way_, [&](SwapRecord& r, Identity& holder) {
        std::swap(current_, previous_);
        std::swap(holder, previous_identity_);
        r.end(SwapState::kRolledBack, phase, reason);
        r.end_step = step;
        swap.retired_ = std::move(previous_);
    });
}

}  // namespace patchbay::host
