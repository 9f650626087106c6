#include "engine/swap/swap_journal.hpp"

#include <spdlog/spdlog.h>

namespace patchbay::engine {

void SwapJournal::note(host::SwapRecord r) {
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
