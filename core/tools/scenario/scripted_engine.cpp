#include "scenario/scripted_engine.hpp"

#include <utility>

#include "engine/placement/placed.hpp"
#include "engine/request/sequence.hpp"
#include "engine/substitutes.hpp"
#include "execution/scripted_executor.hpp"

namespace patchbay::scenario {

namespace {

class ShowsPlans final : public engine::StepObserver { // to a script
  public:
    explicit ShowsPlans(execution::Script& script) : script_(script) {}
    void on_placed(const std::vector<engine::Placed>& placed) override {
        std::vector<pb_plan_item> plan;
        for (const engine::Placed& item : placed) plan.push_back({item.sequence->id, item.tokens, 0});
        script_.planned(plan);
    }

  private:
    execution::Script& script_;
};

}  // namespace

Result<std::unique_ptr<engine::Engine>> create_scripted(const config::EngineConfig& config,
                                                        const host::Registry& registry, Clock& clock,
                                                        ScriptSetup setup) {
    engine::Substitutes in_place;
    in_place.executor = [&script = setup.script, vocabulary = setup.vocabulary](auto runner, auto ranks, auto eos) {
        return std::make_unique<execution::ScriptedExecutor>(std::move(runner), std::move(ranks), std::move(eos),
                                                             script, vocabulary.get());
    };
    in_place.tokenizer = std::move(setup.vocabulary);
    in_place.proposer = std::move(setup.proposer);
    in_place.observer = std::make_unique<ShowsPlans>(setup.script);
    return engine::Engine::create_with(config, registry, clock, std::move(in_place));
}

}  // namespace patchbay::scenario
