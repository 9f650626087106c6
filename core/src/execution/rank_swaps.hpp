// A rank's part in swaps of attention and weights: it makes its own candidate while steps go on, and exchanges it when
// rank 0 says so, which comes in turn with the steps. The other side of execution/ranked_exchange.hpp.
#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "config/engine_config.hpp"
#include "host/registry.hpp"
#include "parallel/session.hpp"
#include "parallel/spoke.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::execution {

class RankSwaps {
  public:
    struct Parts { // which outlive it
        parallel::Spoke& spoke;
        uint32_t rank;
        const config::EngineConfig& config;
        const host::Registry& registry;
        const host::Services& services;
        runner::ModelRunner& runner;
    };
    explicit RankSwaps(const Parts&);
    ~RankSwaps(); // nothing is computed any more

    std::mutex& device() { return device_; } // held while a step is computed
    Result<> perform(std::string_view message); // between steps; a failure: of the message, not of a candidate

  private:
    struct Model {
        std::unique_ptr<host::Component> component; // null: the runner's own
        std::unique_ptr<runner::LoadedWeights> weights; // null: they are in use
    };

    void prepare_all(); // on its thread
    Result<> prepare(const parallel::RankSwap&);
    Result<std::unique_ptr<host::Component>> make(const parallel::RankSwap&, const char* kind) const;
    Result<> prepare_attention(const parallel::RankSwap&);
    Result<> prepare_model(const parallel::RankSwap&);
    Result<Model> load(const parallel::RankSwap&, const runner::BetweenSteps&);
    Result<> use(const parallel::RankSwap&);
    Result<> use_attention(uint64_t candidate);
    Result<> use_model(uint64_t candidate);
    void drop(const parallel::RankSwap&);
    void answer(const parallel::RankSwap&, const Result<>&);

    const Parts p_;
    const host::Component& first_attention_;
    const host::Component& first_model_;
    uint64_t current_attention_ = 0, current_model_ = 0;

    std::mutex device_;
    std::mutex mutex_; // of what follows
    std::map<uint64_t, std::unique_ptr<host::Component>> attentions_;
    std::map<uint64_t, Model> models_;
    std::condition_variable changed_;
    std::deque<parallel::RankSwap> to_prepare_;
    std::map<uint64_t, bool> loading_; // models on their way: whether rank 0 has given one up
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace patchbay::execution
