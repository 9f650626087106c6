// The same where other ranks compute too: each makes its own candidate before rank 0 lets one in, and all exchange it
// before the same step. Where one cannot, all keep what they had.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "execution/local_exchange.hpp"
#include "parallel/group.hpp"

namespace patchbay::execution {

class RankedAttention final : public LocalAttention {
  public:
    RankedAttention(runner::ModelRunner& runner, parallel::Group& group) : LocalAttention(runner), group_(group) {}
    Result<> check(host::Component&) override;
    Result<bool> use(const host::Component&) override;
    void forget() override;
    void end() override;

  private:
    uint64_t candidate_of(const host::Component&);
    void drop(const host::Component&);

    parallel::Group& group_;
    uint64_t current_ = 0; // what the engine was started with
    std::mutex mutex_;     // of what follows
    uint64_t candidates_ = 0;
    std::map<const host::Component*, uint64_t> numbers_;
};

class RankedModel final : public LocalModel {
  public:
    RankedModel(runner::ModelRunner& runner, parallel::Group& group) : LocalModel(runner), group_(group) {}
    Result<std::unique_ptr<runner::LoadedWeights>> load(const host::Component&, const ModelChoice&, const WeightFiles&,
                                                        const runner::BetweenSteps&) override;
    Result<> use(const host::Component&, runner::LoadedWeights&) override;
    void release(runner::LoadedWeights&) override;

  private:
    parallel::Group& group_;
    uint64_t current_ = 0;
    std::mutex mutex_;
    uint64_t candidates_ = 0;
    std::map<const runner::LoadedWeights*, uint64_t> numbers_; // of the model whose weights they are
};

}  // namespace patchbay::execution
