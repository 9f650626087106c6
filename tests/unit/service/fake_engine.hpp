// An engine without a model: each step gives every request one token, always the same. For tests of what steps engines.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/refusals.hpp"
#include "engine/stepping.hpp"

namespace patchbay::service::testing {

class FakeEngine final : public engine::SteppingEngine {
  public:
    explicit FakeEngine(engine::TokenId token = 7) : token_(token) {}

    std::optional<Failure> refusal, step_fault, check_fault; // of all requests; of each step; of check()
    std::function<void()> after_step;
    uint64_t steps = 0; // so far

    Result<engine::RequestId> add_request(engine::Request r) override {
        if (refusal) return *refusal;
        requests_[++last_id_] = {std::move(r), 0};
        return last_id_;
    }
    void abort(engine::RequestId id) override {
        if (const auto at = requests_.find(id); at != requests_.end()) give(id, at->second, {}, Finish::kAbort);
    }
    bool has_unfinished() const override { return !requests_.empty(); }
    Result<> check() const override { return check_fault ? Result<>(*check_fault) : Result<>(); }
    Result<engine::StepReport> step() override {
        if (step_fault) return *step_fault;
        engine::StepReport report;
        report.step = ++steps;
        for (const auto& [id, before] : std::map(requests_)) {
            const auto at = requests_.find(id);
            if (at == requests_.end()) continue; // aborted by the callback of another one
            const bool last = ++at->second.tokens == at->second.given.sampling.max_tokens;
            give(id, at->second, {token_}, last ? Finish::kLength : Finish::kNone);
        }
        if (after_step) after_step();
        return report;
    }
    Clock& clock() override { return clock_; }

  private:
    using Finish = engine::FinishReason;
    struct Given {
        engine::Request given;
        uint32_t tokens = 0; // so far
    };
    void give(engine::RequestId id, const Given& to, std::vector<engine::TokenId> tokens, Finish finish) {
        const auto on_output = to.given.on_output;
        if (finish != Finish::kNone) requests_.erase(id);
        on_output({.id = id, .tokens = std::move(tokens), .finish = finish});
    }

    const engine::TokenId token_;
    VirtualClock clock_;
    std::map<engine::RequestId, Given> requests_; // unfinished
    engine::RequestId last_id_ = 0;
};

}  // namespace patchbay::service::testing
