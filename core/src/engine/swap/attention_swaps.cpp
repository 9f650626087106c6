#include "engine/swap/attention_swaps.hpp"

#include <spdlog/spdlog.h>

#include "base/refusals.hpp"
#include "engine/facts.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/swap/swap_journal.hpp"
#include "execution/executor.hpp"
#include "host/registry.hpp"

namespace patchbay::engine {

AttentionSwaps::AttentionSwaps(EngineFacts& facts, execution::Executor& executor, Recomputation& recomputation,
                               const Clock& clock, StepContext& context, SwapJournal& journal)
    : facts_(facts), exchange_(executor.attention()), recomputation_(recomputation), context_(context),
      journal_(journal), slot_("attention", host::UnreadState::kStartsEmpty, clock) {
    if (!exchange_) return;
    auto first = exchange_->give();
    const host::Identity identity = host::Registry::identity(*first);
    slot_.install(std::move(first), identity);
}

AttentionSwaps::~AttentionSwaps() {
    if (exchange_) exchange_->end();
}

Result<> AttentionSwaps::takes_swaps() const {
    if (exchange_) return {};
    return unsupported("what computes the steps has no attention to exchange");
}

void AttentionSwaps::enter() {
    const Result<bool> reads_pages = exchange_->use(slot_.current());
    bound_ = reads_pages ? Result<>() : reads_pages.failure();
    if (reads_pages && !*reads_pages) recompute_all();
}

// What it has written on probation may be wrong, if it could not compute.
bool AttentionSwaps::roll_back(const std::string& phase, const Failure& why) {
    if (!slot_.previous()) return false;
    if (bound_) {
        if (const auto back = exchange_->use(*slot_.previous()); !back) // of another rank, which ends the engine
            spdlog::error("attention: {}", back.error());
        exchange_->forget();
        recompute_all();
    }
    journal_.note(slot_.roll_back(context_.step, phase, why));
    return true;
}

void AttentionSwaps::recompute_all() {
    facts_.kv.layout = exchange_->layout();
    recomputation_.recompute_all();
}

SwapPort::StepCall AttentionSwaps::call_of(const StepUse& use) {
    const runner::CallTimes& times = context_.report.calls.forward;
    return {"attention", use.planned, times.attention_plan + times.attention_append + times.attention_run};
}

}  // namespace patchbay::engine
