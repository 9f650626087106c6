// Neighbours for parts of the engine that stand alone: sequences without an engine, and an executor without a model.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/request/sequence.hpp"
#include "engine/request/sequences.hpp"
#include "engine/request/validation.hpp"
#include "execution/executor.hpp"

namespace patchbay::execution {
class AttentionExchange;
class ModelExchange;
}

namespace patchbay::engine::testing {

inline std::unique_ptr<Sequence> sequence(RequestId id, uint32_t prompt_tokens, SamplingParams sampling = {}) {
    Request request;
    request.prompt.resize(prompt_tokens);
    std::iota(request.prompt.begin(), request.prompt.end(), static_cast<TokenId>(100 * id));
    request.sampling = std::move(sampling);
    auto out = std::make_unique<Sequence>(id, std::move(request));
    out->tokens = out->request.prompt;
    out->prompt_count = prompt_tokens;
    out->sampling.params = wire_params(out->request.sampling, out->sampling.bias);
    out->output.delta.id = id;
    return out;
}

// Gives tokens that a test chooses, and counts what it was asked to compute.
class FakeExecutor final : public execution::Executor {
  public:
    std::function<int32_t(const pb_sample_row&)> token = [](const pb_sample_row& row) {
        return static_cast<int32_t>(row.position);
    };
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
    Result<> submit(const execution::StepInput& in) override {
        if (!fails.empty()) return fail(std::exchange(fails, ""));
        const auto* rows = static_cast<const pb_sample_row*>(in.samples.rows);
        steps_.push_back({});
        for (uint32_t i = 0; i < in.samples.row_count; ++i) steps_.back().push_back(token(rows[i]));
        if (in.batch.tokens() > 0) tokens_of_steps.push_back(in.batch.tokens());
        copied.insert(copied.end(), in.copies.begin(), in.copies.end());
        submitted += 1;
        max_in_flight = std::max(max_in_flight, steps_.size());
        return {};
    }
    Result<execution::StepOutput> wait(std::span<const execution::RowPath>) override {
        if (!wait_fails.empty()) return fail(std::exchange(wait_fails, ""));
        sampled_ = std::move(steps_.front());
        steps_.pop_front();
        logprobs_.assign(sampled_.size(), 0);
        execution::StepOutput out;
        out.sampled = {sampled_, {}, logprobs_, {}, 0, 0};
        out.is_sampled = true;
        return out;
    }
    void cancel() override {
        steps_.clear();
        cancels += 1;
    }
    Result<runner::SampledRows> sample(std::span<const float>, const runner::SampleCall&) override {
        return fail("there are no logits");
    }
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
