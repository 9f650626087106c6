#include "host/swap_line.hpp"

#include <algorithm>
#include <cassert>

#include "base/refusals.hpp"

namespace patchbay::host {

constexpr size_t kMaxReports = 64; // that wait for a step; more are only known to those who asked

SwapLine::~SwapLine() {
    for (const auto& weak : prepared_)
        if (const auto swap = weak.lock()) swap->close();
}

void SwapLine::sweep() {
    std::vector<std::shared_ptr<Swap>> gone; // what they hold is destroyed without the lock
    const std::lock_guard lock(mutex_);
    gone.swap(settled_);
    std::erase_if(prepared_, [](const auto& weak) { return weak.expired(); });
}

std::shared_ptr<Swap> SwapLine::prepare(std::unique_ptr<Component> candidate, Identity to, uint64_t transaction) {
    sweep();
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Swap> swap(new Swap(kind_, transaction, holder_, std::move(to)));
    if (candidate) swap->record_.settings = candidate->settings();
    swap->candidate_ = std::move(candidate);
    swap->state_.reserve(4096);
    prepared_.push_back(swap);
    return swap;
}

std::shared_ptr<Swap> SwapLine::refuse(Identity to, const std::string& phase, const Failure& why,
                                       uint64_t transaction) {
    sweep();
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Swap> swap(new Swap(kind_, transaction, holder_, std::move(to)));
    note(swap->update([&](SwapRecord& r) { r.end(SwapState::kRefused, phase, why); }));
    return swap;
}

void SwapLine::withdraw(const std::shared_ptr<Swap>& swap, const std::string& phase, const Failure& why) {
    std::unique_ptr<Component> candidate; // destroyed without the lock
    const std::lock_guard lock(mutex_);
    const bool was_in_line = std::erase_if(line_, [&](const InLine& l) { return l.swap == swap; }) > 0;
    bool withdrawn = false;
    const SwapRecord record = swap->update([&](SwapRecord& r) {
        withdrawn = r.state == SwapState::kReady || (r.state == SwapState::kPosted && was_in_line);
        if (!withdrawn) return;
        r.end(SwapState::kRefused, phase, why);
        candidate = std::move(swap->candidate_);
    });
    if (withdrawn) note(record);
}

void SwapLine::report(const SwapRecord& record) {
    const std::lock_guard lock(mutex_);
    note(record);
}

void SwapLine::note(const SwapRecord& record) {
    if (reports_.size() < kMaxReports) reports_.push_back(record);
    has_mail_ = true;
}

void SwapLine::post(const std::shared_ptr<Swap>& swap, uint64_t not_before_ns) {
    sweep();
    std::unique_ptr<Component> turned_away; // destroyed without the lock
    const std::lock_guard lock(mutex_);
    const bool ours = std::any_of(prepared_.begin(), prepared_.end(),
                                  [&](const std::weak_ptr<Swap>& weak) { return weak.lock() == swap; });
    std::optional<Failure> why;
    if (!ours) why = invalid("it was prepared for another engine");
    else if (line_.size() >= kMaxPendingSwaps)
        why = exhausted(std::to_string(kMaxPendingSwaps) + " swaps are in line already");
    bool in_line = false;
    const SwapRecord record = swap->update([&](SwapRecord& r) {
        if (r.state != SwapState::kReady) return; // posted once is enough
        in_line = !why;
        if (in_line) {
            r.state = SwapState::kPosted;
        } else {
            r.end(SwapState::kRefused, "post", *why);
            turned_away = std::move(swap->candidate_);
        }
    });
    if (in_line) {
        line_.push_back({swap, not_before_ns});
        has_mail_ = true;
    } else if (turned_away) {
        note(record);
    }
}

Identity SwapLine::replace_holder(Identity next) {
    const std::lock_guard lock(mutex_);
    std::swap(holder_, next);
    return next;
}

std::optional<uint64_t> SwapLine::due() const {
    if (!has_mail_) return std::nullopt;
    const std::lock_guard lock(mutex_);
    if (line_.empty() || line_.front().not_before_ns > clock_.now_ns()) return std::nullopt;
    return line_.front().swap->transaction();
}

std::shared_ptr<Swap> SwapLine::pop() {
    const std::lock_guard lock(mutex_);
    assert(!line_.empty());
    std::shared_ptr<Swap> first = std::move(line_.front().swap);
    line_.pop_front();
    has_mail_ = !line_.empty() || !reports_.empty();
    return first;
}

std::vector<SwapRecord> SwapLine::take_reports() {
    if (!has_mail_) return {};
    const std::lock_guard lock(mutex_);
    has_mail_ = !line_.empty();
    return std::exchange(reports_, {});
}

}  // namespace patchbay::host
