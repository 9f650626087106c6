// Attention and model of this rank's runner, as swaps exchange them.
#pragma once
#include <memory>
#include <string>

#include "execution/attention_exchange.hpp"
#include "execution/model_exchange.hpp"

namespace patchbay::execution {

class LocalAttention : public AttentionExchange {
  public:
    explicit LocalAttention(runner::ModelRunner& runner) : runner_(runner) {}
    std::unique_ptr<host::Component> give() override { return runner_.attention().give(); }
    Result<> check(host::Component& c) override { return runner_.attention().check(c); }
    Result<bool> use(const host::Component& c) override { return runner_.attention().use(c); }
    std::string layout() const override { return runner_.kv().layers().binding().layout_tag(); }
    void forget() override { runner_.attention().forget(); }
    void end() override { runner_.attention().end(); }

  protected:
    runner::ModelRunner& runner_;
};

class LocalModel : public ModelExchange {
  public:
    explicit LocalModel(runner::ModelRunner& runner) : runner_(runner) {}
    std::unique_ptr<host::Component> give() override { return runner_.model_swap().give(); }
    Result<> check(const host::Component& c, const ModelChoice& choice) const override {
        PB_CHECK(runner_.model_swap().read_like(c, choice.config));
        return {};
    }
    Result<std::unique_ptr<runner::LoadedWeights>> load(const host::Component& c, const ModelChoice& choice,
                                                        const WeightFiles&, const runner::BetweenSteps& run) override {
        return runner_.model_swap().load_beside(c, choice.config, choice.source, choice.weights, run);
    }
    Result<> use(const host::Component& c, runner::LoadedWeights& w) override {
        runner_.model_swap().use(c, w);
        return {};
    }
    void release(runner::LoadedWeights& w) override { runner_.model_swap().release(w); }

  protected:
    runner::ModelRunner& runner_;
};

}  // namespace patchbay::execution
