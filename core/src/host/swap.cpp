#include "host/swap.hpp"

#include "base/refusals.hpp"

namespace patchbay::host {

std::string_view name_of(SwapState state) {
    static constexpr std::string_view kNames[] = {"ready", "posted", "on probation", "committed", "refused",
                                                  "rolled back"};
    return kNames[static_cast<size_t>(state)];
}

std::string SwapRecord::exchange() const {
    return kind + " " + (from.name.empty() ? "none" : from.name) + "→" + to.name;
}

std::string SwapRecord::text() const {
    std::string out = "swap " + exchange() + ": " + std::string(name_of(state));
    if (!phase.empty()) out += " in phase " + phase;
    if (!reason.empty()) out += ": " + reason;
    return out;
}

namespace {

// A call's failure names kind, component and call; so does the record that it goes into.
std::string bare(std::string text, const SwapRecord& r, const std::string& call) {
    for (const Identity* who : {&r.to, &r.from}) {
        const std::string subject = r.kind + " '" + who->name + "'";
        if (!text.starts_with(subject)) continue;
        text.erase(0, subject.size());
        for (const std::string& before : {": " + call + ": ", std::string(": "), std::string(" ")})
            if (text.starts_with(before)) return text.substr(before.size());
    }
    return text;
}

}  // namespace

void SwapRecord::end(SwapState how, const std::string& in_phase, const Failure& why) {
    state = how;
    phase = in_phase;
    reason = bare(why.text, *this, in_phase);
    code = why.code;
}

Swap::Swap(std::string kind, uint64_t transaction, Identity from, Identity to) {
    record_.kind = std::move(kind);
    record_.transaction = transaction;
    record_.from = std::move(from);
    record_.to = std::move(to);
}

// The step's thread takes this mutex no more once a swap is settled, so what was retired may take its time.
SwapRecord Swap::record() {
    const std::lock_guard lock(mutex_);
    retired_.reset();
    return record_;
}

void Swap::close() {
    update([&](SwapRecord& r) {
        if (r.state < SwapState::kOnProbation)
            r.end(SwapState::kRefused, "post", unavailable("its engine ended first"));
        closed_ = true;
        candidate_.reset();
        retired_.reset();
    });
    changed_.notify_all();
}

SwapRecord Swap::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return record_.settled() || closed_; });
    retired_.reset();
    return record_;
}

}  // namespace patchbay::host
