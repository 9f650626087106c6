#include "runner/device_weights.hpp"

#include <algorithm>
#include <string>

namespace patchbay::runner {
namespace {

std::vector<AttentionWork> attention_of(std::span<const pb_kv_spec> layers) { // q·k and the sum of values
    std::vector<AttentionWork> out;
    for (const pb_kv_spec& kv : layers) {
        const uint64_t flop = uint64_t{4} * kv.heads * kv.head_dim;
        if (flop == 0) continue; // a recurrent layer
        const auto same = std::ranges::find(out, kv.sliding_window, &AttentionWork::window);
        (same == out.end() ? out.emplace_back(kv.sliding_window) : *same).flop += flop;
    }
    return out;
}

bool at_once(const std::function<void()>& f) {
    f();
    return true;
}

}  // namespace

Result<> DeviceWeights::load(const WeightsToLoad& wanted, std::span<const pb_kv_spec> layers) {
    in_use_.work.attention = attention_of(layers);
    return loader().load(wanted, in_use_, at_once);
}

Result<> DeviceWeights::share_target_weights(const DeviceWeights& target, const host::Component& model,
                                             const pb_model_facts& facts) {
    const std::vector<pb_weight*>& its = target.in_use_.by_spec;
    if (facts.embedding >= its.size() || facts.lm_head >= its.size())
        return fail(StatusCode::kInternal,
                    "model '" + std::string(model.type().name) + "' has " + std::to_string(its.size()) +
                    " weights, and says that its token table is number " + std::to_string(facts.embedding) +
                    " and its lm head number " + std::to_string(facts.lm_head));
    of_target_ = TargetWeights{nullptr, its[facts.embedding], its[facts.lm_head]};
    return {};
}

Result<std::unique_ptr<LoadedWeights>> DeviceWeights::load_beside(const WeightsToLoad& wanted,
                                                                  std::span<const pb_kv_spec> layers,
                                                                  const BetweenSteps& run) const {
    auto out = std::make_unique<LoadedWeights>();
    out->facts = wanted.facts;
    out->work.attention = attention_of(layers);
    const auto loaded = [&] {
        try {
            return loader().load(wanted, *out, run);
        } catch (...) {
            run([&] { release(*out); });
            throw;
        }
    }();
    if (loaded) return out;
    run([&] { release(*out); });
    return loaded.failure();
}

void DeviceWeights::release(LoadedWeights& weights) const {
    for (pb_weight* w : weights.owned) device_.plugin.call<&pb_device::release>(w);
    weights.sinks.release(device_.plugin);
    weights = {};
}

}  // namespace patchbay::runner
