// Neighbours for parts of the engine that stand alone: sequences without an engine, and an executor without a model.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/request/sequence.hpp"
#include "engine/request/sequences.hpp"
#include "engine/request/validation.hpp"
#include "execution/executor.hpp"
#include "execution/pass_stats.hpp"

namespace patchbay::execution {
class AttentionExchange;
class ModelExchange;
}

namespace patchbay::engine::testing {

std::unique_ptr<Sequence> sequence(RequestId, uint32_t prompt_tokens, SamplingParams = {});
Request& request_of(const Sequence&); // of one that sequence() made, to change

// Gives tokens that a test chooses, and counts what it was asked to compute.
class FakeExecutor final : public execution::Executor {
  public:
    FakeExecutor();
    ~FakeExecutor() override;

    std::function<int32_t(const pb_sample_row&)> token; // its position, if a test says nothing else
    bool overlaps = false;       // steps can be in flight
    std::string fails, wait_fails; // the next submit() or wait() does, so
    double page_ns = 0;          // that a copy of a page takes
    execution::AttentionExchange* attention_exchange = nullptr;
    execution::ModelExchange* model_exchange = nullptr;
    execution::PassStats passed;
    execution::TokenSource source = execution::TokenSource::kMadeUp;
    size_t submitted = 0, max_in_flight = 0, cancels = 0;
    std::vector<uint32_t> tokens_of_steps;
    std::vector<kv::PageCopy> copied; // in all steps

    execution::TokenSource tokens() const override { return source; }
    std::string_view sync_reason() const override { return overlaps ? "" : "device"; }
    Result<> check_sampler(const host::Component&) const override { return {}; }
    Result<> submit(const execution::StepInput&) override;
    Result<execution::StepOutput> wait(std::span<const execution::RowPath>) override;
    void cancel() override;
    Result<runner::SampledRows> sample(std::span<const float>, const runner::SampleCall&) override;
    execution::ModelExchange* model() override { return model_exchange; }
    execution::AttentionExchange* attention() override { return attention_exchange; }
    execution::PassStats stats() const override { return passed; }
    double page_copy_ns() const override { return page_ns; }

  private:
    std::deque<std::vector<int32_t>> steps_;
    std::vector<int32_t> sampled_;
    std::vector<float> logprobs_;
};

}  // namespace patchbay::engine::testing
