#include "engine/swap/swap_journal.hpp"

#include <spdlog/spdlog.h>

#include "base/crash_report.hpp"
#include "engine/loop/step_context.hpp"

namespace patchbay::engine {

// "slots: scheduler fcfs→sjf on probation (step 12), sampler …", the newest first, in what the message has room for.
void SwapJournal::keep(const host::SwapRecord& r) {
    constexpr size_t kMaxEvents = 6, kMaxNameBytes = 60; // of a checkpoint's path, its end
    const auto named = [](const std::string& name) {
        return name.size() <= kMaxNameBytes ? name : "…" + name.substr(name.size() - kMaxNameBytes);
    };
    history_.push_front(r.kind + " " + named(r.from.name) + "→" + named(r.to.name) + " " +
                        std::string(name_of(r.state)) + " (step " +
                        std::to_string(r.end_step ? r.end_step : r.step) + ")");
    if (history_.size() > kMaxEvents) history_.pop_back();
    std::string text = "slots: ";
    for (const std::string& event : history_) text += (&event == &history_.front() ? "" : ", ") + event;
    note_for_crashes(text);
}

void SwapJournal::note_refusal(host::SwapRecord r) { context_.report.swaps.push_back(std::move(r)); }

void SwapJournal::note(host::SwapRecord r) {
    keep(r);
    r.after_calls = after_calls_ && r.state == host::SwapState::kRolledBack;
    const bool well = r.state == host::SwapState::kOnProbation || r.state == host::SwapState::kCommitted;
    const uint64_t step = r.end_step ? r.end_step : r.step; // it ends later where it begins now
    spdlog::log(well ? spdlog::level::info : spdlog::level::warn, "{} (step {})", r.text(), step);
    for (host::Identity& p : plugins_) {
        if (p.kind != r.kind) continue;
        if (r.state == host::SwapState::kOnProbation) p = r.to;
        if (r.state == host::SwapState::kRolledBack) p = r.from;
    }
    context_.report.swaps.push_back(std::move(r));
}

}  // namespace patchbay::engine
