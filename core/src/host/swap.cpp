#include "host/swap.hpp"

namespace patchbay::host {

std::string_view name_of(SwapState state) {
    static constexpr std::string_view kNames[] = {"ready", "posted", "on probation", "committed", "refused",
                                                  "rolled back"};
    return kNames[static_cast<size_t>(state)];
}

std::string SwapRecord::text() const {
    std::string out = "swap " + kind + " " + from.name + "→" + to.name + ": " + std::string(name_of(state));
    if (!phase.empty()) out += " in phase " + phase;
    if (!reason.empty()) out += ": " + reason;
    return out;
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

SwapRecord Swap::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return record_.settled() || closed_; });
    retired_.reset();
    return record_;
}

}  // namespace patchbay::host
