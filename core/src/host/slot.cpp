#include "host/slot.hpp"

#include <algorithm>
#include <cassert>

#include "host/library.hpp"

namespace patchbay::host {
namespace {

constexpr size_t kMaxReports = 64; // that wait for a step; more are only known to those who asked

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

template <class F>
SwapRecord Swap::update(F&& change) {
    const std::lock_guard lock(mutex_);
    change(record_);
    if (record_.settled()) changed_.notify_all();
    return record_;
}

Slot::Slot(std::string kind, UnreadState unread, const Clock& clock)
    : kind_(std::move(kind)), unread_(unread), clock_(clock) {}

Slot::~Slot() {
    for (const auto& weak : prepared_)
        if (const auto swap = weak.lock()) {
            swap->update([&](SwapRecord& r) {
                if (r.state < SwapState::kOnProbation) {
                    r.state = SwapState::kRefused;
                    r.phase = "post";
                    r.reason = "its engine ended first";
                }
                swap->closed_ = true;
                swap->candidate_.reset();
                swap->retired_.reset();
            });
            swap->changed_.notify_all();
        }
}

void Slot::install(std::unique_ptr<Component> first, Identity identity) {
    current_ = {std::move(first), std::move(identity)};
}

void Slot::sweep() {
    std::vector<std::shared_ptr<Swap>> gone; // what they hold is destroyed without the lock
    const std::lock_guard lock(mutex_);
    gone.swap(settled_);
    std::erase_if(prepared_, [](const auto& weak) { return weak.expired(); });
}

std::shared_ptr<Swap> Slot::prepare(std::unique_ptr<Component> candidate, Identity to, uint64_t transaction) {
    sweep();
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Swap> swap(new Swap(kind_, transaction, current_.identity, std::move(to)));
    swap->candidate_ = std::move(candidate);
    swap->state_.reserve(4096);
    prepared_.push_back(swap);
    return swap;
}

std::shared_ptr<Swap> Slot::refuse(Identity to, const std::string& phase, const std::string& reason,
                                   uint64_t transaction) {
    sweep();
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Swap> swap(new Swap(kind_, transaction, current_.identity, std::move(to)));
    note(swap->update([&](SwapRecord& r) {
        r.state = SwapState::kRefused;
        r.phase = phase;
        r.reason = bare(reason, r, phase);
    }));
    return swap;
}

void Slot::withdraw(const std::shared_ptr<Swap>& swap, const std::string& phase, const std::string& reason) {
    std::unique_ptr<Component> candidate; // destroyed without the lock
    const std::lock_guard lock(mutex_);
    const bool was_in_line = std::erase_if(line_, [&](const InLine& l) { return l.swap == swap; }) > 0;
    bool withdrawn = false;
    const SwapRecord record = swap->update([&](SwapRecord& r) {
        withdrawn = r.state == SwapState::kReady || (r.state == SwapState::kPosted && was_in_line);
        if (!withdrawn) return;
        r.state = SwapState::kRefused;
        r.phase = phase;
        r.reason = bare(reason, r, phase);
        candidate = std::move(swap->candidate_);
    });
    if (withdrawn) note(record);
}

void Slot::report(const SwapRecord& record) {
    const std::lock_guard lock(mutex_);
    note(record);
}

void Slot::note(const SwapRecord& record) {
    if (reports_.size() < kMaxReports) reports_.push_back(record);
    has_mail_ = true;
}

void Slot::post(const std::shared_ptr<Swap>& swap, uint64_t not_before_ns) {
    sweep();
    std::unique_ptr<Component> turned_away; // destroyed without the lock
    const std::lock_guard lock(mutex_);
    const bool ours = std::any_of(prepared_.begin(), prepared_.end(),
                                  [&](const std::weak_ptr<Swap>& weak) { return weak.lock() == swap; });
    std::string why;
    if (!ours) why = "it was prepared for another engine";
    else if (line_.size() >= kMaxPendingSwaps) why = std::to_string(kMaxPendingSwaps) + " swaps are in line already";
    bool in_line = false;
    const SwapRecord record = swap->update([&](SwapRecord& r) {
        if (r.state != SwapState::kReady) return; // posted once is enough
        in_line = why.empty();
        r.state = in_line ? SwapState::kPosted : SwapState::kRefused;
        if (in_line) return;
        r.phase = "post";
        r.reason = why;
        turned_away = std::move(swap->candidate_);
    });
    if (in_line) {
        line_.push_back({swap, not_before_ns});
        has_mail_ = true;
    } else if (turned_away) {
        note(record);
    }
}

std::vector<SwapRecord> Slot::take_reports() {
    if (!has_mail_) return {};
    const std::lock_guard lock(mutex_);
    has_mail_ = !line_.empty();
    return std::exchange(reports_, {});
}

std::optional<uint64_t> Slot::due() const {
    if (!has_mail_ || under_way_) return std::nullopt;
    const std::lock_guard lock(mutex_);
    if (line_.empty() || line_.front().not_before_ns > clock_.now_ns()) return std::nullopt;
    return line_.front().swap->record_.transaction; // which never changes
}

void Slot::take() {
    const std::lock_guard lock(mutex_);
    assert(!under_way_ && !line_.empty());
    under_way_ = std::move(line_.front().swap);
    line_.pop_front();
    has_mail_ = !line_.empty() || !reports_.empty();
}

uint64_t Slot::transaction() const { return under_way_ ? under_way_->record_.transaction : 0; }

// A call's failure names kind, component and call; so does the record that it goes into.
std::string Slot::bare(std::string text, const SwapRecord& r, const std::string& call) {
    for (const Identity* who : {&r.to, &r.from}) {
        const std::string subject = r.kind + " '" + who->name + "'";
        if (!text.starts_with(subject)) continue;
        text.erase(0, subject.size());
        for (const std::string& before : {": " + call + ": ", std::string(": "), std::string(" ")})
            if (text.starts_with(before)) return text.substr(before.size());
    }
    return text;
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
    const std::lock_guard lock(mutex_);
    settled_.push_back(std::move(under_way_)); // from here on another thread may let go of it
    Swap& swap = *settled_.back();
    return swap.update([&](SwapRecord& r) {
        r.from = current_.identity;
        r.state = SwapState::kRefused;
        r.phase = phase;
        r.reason = bare(reason, r, phase);
        r.end_step = step;
        swap.retired_ = std::move(swap.candidate_);
    });
}

void Slot::let_in() {
    const std::lock_guard lock(mutex_);
    previous_ = std::move(current_);
    current_ = {std::move(under_way_->candidate_), under_way_->record_.to};
}

SwapRecord Slot::begin_probation(uint64_t step, uint32_t steps, uint64_t since_ns) {
    steps_left_ = steps;
    return under_way_->update([&](SwapRecord& r) {
        r.from = previous_.identity;
        r.state = SwapState::kOnProbation;
        r.step = step;
        r.time_ns = since_ns;
        r.pause_ns = std::max(r.pause_ns, clock_.now_ns() - since_ns);
    });
}

std::optional<SwapRecord> Slot::exchange(uint64_t step, uint32_t probation_steps, const Greet& greet) {
    if (due() != uint64_t{0}) return std::nullopt;
    take();
    return enter(step, probation_steps, clock_.now_ns(), greet);
}

const Component* Slot::candidate() const { return under_way_ ? under_way_->candidate_.get() : nullptr; }

void Slot::note_pause(uint64_t ns) {
    under_way_->update([&](SwapRecord& r) { r.pause_ns = std::max(r.pause_ns, ns); });
}

SwapRecord Slot::enter(uint64_t step, uint32_t probation_steps, uint64_t since_ns, const Greet& greet) {
    std::string phase;
    if (const Result<> handed_over = hand_over(phase); !handed_over)
        return turn_away(step, phase, handed_over.error());
    let_in();
    greet(current());
    return begin_probation(step, probation_steps, since_ns);
}

std::optional<SwapRecord> Slot::pass(uint64_t step) {
    if (!under_way_) return std::nullopt;
    count_step();
    return steps_left_ > 0 ? std::nullopt : std::optional(commit(step));
}

SwapRecord Slot::commit(uint64_t step) {
    assert(under_way_);
    const std::lock_guard lock(mutex_);
    settled_.push_back(std::move(under_way_));
    Swap& swap = *settled_.back();
    return swap.update([&](SwapRecord& r) {
        r.state = SwapState::kCommitted;
        r.end_step = step;
        swap.retired_ = std::move(previous_.component);
    });
}

SwapRecord Slot::roll_back(uint64_t step, const std::string& phase, const std::string& reason) {
    assert(under_way_);
    const std::lock_guard lock(mutex_);
    settled_.push_back(std::move(under_way_));
    Swap& swap = *settled_.back();
    std::swap(current_, previous_);
    return swap.update([&](SwapRecord& r) {
        r.state = SwapState::kRolledBack;
        r.phase = phase;
        r.reason = bare(reason, r, phase);
        r.end_step = step;
        swap.retired_ = std::move(previous_.component);
    });
}

}  // namespace patchbay::host
