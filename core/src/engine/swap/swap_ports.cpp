#include "engine/swap/swap_ports.hpp"

#include "base/refusals.hpp"
#include "config/engine_config.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "engine/sampling/prompt_logprobs.hpp"
#include "engine/speculation/draft_model_offer.hpp"
#include "engine/speculation/draft_verification.hpp"
#include "engine/speculation/verification.hpp"

namespace patchbay::engine {

Result<std::unique_ptr<host::Component>> SwapPort::construct(std::shared_ptr<host::Library> library,
                                                             const pb_component& type, const host::Settings& settings,
                                                             const host::Services& services) {
    return host::Component::create(std::move(library), type, settings, services);
}

// ---- sampler ----

Result<> SamplerSwaps::takes_swaps() const {
    if (p_.executor.tokens() == execution::TokenSource::kModel) return {};
    return unsupported("no sampler is called where the device computes nothing");
}

Result<> SamplerSwaps::fits(host::Component& c) const {
    PB_CHECK(p_.executor.check_sampler(c));
    return check_verification(p_.speculation, c, p_.executor.tokens());
}

Result<> SamplerSwaps::serves() {
    for (const auto& [id, s] : p_.sequences.all()) {
        PB_CHECK(port_.serves(s->request->sampling));
        PB_CHECK(port_.accepts(s->sampling.params));
        if (const pb_sampling_params* const of_prompt = p_.prompt_logprobs.params_of(*s))
            PB_CHECK(port_.accepts(*of_prompt));
    }
    return {};
}

// ---- proposer ----

Result<> ProposerSwaps::takes_swaps() const {
    if (proposals_.any()) return {};
    return unsupported("the engine was started without one, and has no room for drafts in its steps (start it with "
                       "proposer: and engine.num_speculative_tokens)");
}

// It may draft with the model that is loaded, and with no other.
Result<std::unique_ptr<host::Component>> ProposerSwaps::construct(std::shared_ptr<host::Library> library,
                                                                  const pb_component& type,
                                                                  const host::Settings& settings,
                                                                  const host::Services& services) {
    DraftModel* const loaded = proposals_.draft_model();
    auto offer = std::make_shared<DraftModelOffer>(loaded);
    host::Services with_runner = services;
    with_runner.runner = &offer->service();
    PB_TRY(auto made, host::Component::create(std::move(library), type, settings, with_runner));
    if (loaded && !offer->taken())
        return unsupported("'" + std::string(type.name) + "' drafts without a model, and the engine was started with "
                           "one that is '" + loaded->opened().identity() + "', whose KV is kept up to date with the "
                           "target's (swap in a proposer that drafts with it)");
    made->keep(std::move(offer));
    return made;
}

// ---- kv_policy ----

Result<> KvPolicySwaps::takes_swaps() const {
    if (port_.slot().filled()) return {};
    return unsupported("the engine was started without one, and its cache keeps no record of cached pages for it "
                       "(start it with kv_policy: lru, which evicts in the same order)");
}

// Where nothing runs or waits, nothing waits for it either: adopt() does all of it.
Result<bool> KvPolicySwaps::warm_up(const host::Component& next) {
    if (sequences_.running().empty() && sequences_.waiting().empty()) return true;
    return port_.warm_up(next);
}

// It may be long before a page has to be evicted: what has changed it gets in each step of its probation.
SwapPort::StepCall KvPolicySwaps::call_of(const StepUse& use) {
    port_.update();
    const StepReport& report = context_.report;
    return {"choose", use.planned, report.calls.kv_update_ns + report.calls.kv_choose_ns};
}

}  // namespace patchbay::engine
