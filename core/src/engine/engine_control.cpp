#include "engine/engine_control.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "base/refusals.hpp"
#include "config/engine_config.hpp"
#include "config/slots.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/swap/swap_journal.hpp"
#include "host/slot.hpp"

namespace patchbay::engine {

std::shared_ptr<host::Swap> EngineControl::swap(const SwapRequest& request) {
    auto swap = swaps_.prepare(request);
    swaps_.post(swap);
    return swap;
}

std::vector<std::shared_ptr<host::Swap>> EngineControl::swap_together(const std::vector<SwapRequest>& requests) {
    auto ordered = swaps_.prepare_together(requests);
    swaps_.post_together(ordered);
    return ordered;
}

config::EngineConfig EngineControl::configuration() const {
    config::EngineConfig out = p_.swaps.config;
    for (const std::string& kind : plugin_slots()) {
        const host::Slot& in = slot(*swap_slot(kind));
        const config::SlotInfo* const key = config::find_slot(kind);
        if (!in.filled() || !key) continue;
        const config::PluginChoice now{in.current().type().name, in.current().settings()};
        if (key->choice) out.*(key->choice) = now;
        else out.*(key->optional_choice) = now;
    }
    return out;
}

Result<> EngineControl::configure(SwapSlot which, const host::Settings& changes) {
    host::Slot& changed = slot(which);
    if (!changed.filled()) return invalid("the engine has no " + std::string(name_of(which)));
    return changed.current().configure(changes);
}

host::Settings EngineControl::settings(SwapSlot which) const {
    const host::Slot& shown = slot(which);
    return shown.filled() ? shown.current().settings() : host::Settings{};
}

void EngineControl::take_over(uint64_t step, host::SwapRecord record) {
    p_.context.step = step;
    for (const auto state : {host::SwapState::kOnProbation, host::SwapState::kCommitted}) {
        record.state = state;
        record.end_step = record.settled() ? record.step : 0;
        p_.journal.note(record); // for the report of its first step
    }
}

void EngineControl::end_swaps_of(EngineControl& other) {
    constexpr const char* kPhase = "post";
    const Failure why = unavailable("the engine was replaced by one of another model");
    const uint64_t step = other.p_.context.step;
    for (const std::string_view kind : kSwapSlots) {
        const SwapSlot which = *swap_slot(kind);
        host::Slot& ending = other.slot(which);
        const auto report = [&](const host::SwapRecord& r) {
            if (which == SwapSlot::kModel) p_.journal.note_refusal(r); // before the model that this engine comes with
            else slot(which).line().report(r);
        };
        for (const host::SwapRecord& r : ending.line().take_reports()) report(r);
        if (ending.candidate()) report(ending.turn_away(step, kPhase, why));
        else if (ending.previous()) report(ending.commit(step));
        while (ending.line().due()) {
            ending.take();
            report(ending.turn_away(step, kPhase, why));
        }
    }
}

}  // namespace patchbay::engine
