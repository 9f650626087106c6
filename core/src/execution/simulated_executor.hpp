// A device that computes nothing: a step takes the time that the device charges, and its rows become synthetic tokens.
#pragma once
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "execution/local_executor.hpp"

namespace patchbay::execution {

class SimulatedExecutor : public LocalExecutor {
  public:
    SimulatedExecutor(std::unique_ptr<runner::ModelRunner> runner, std::unique_ptr<runner::Ranks> ranks,
                      std::vector<int32_t> eos)
        : LocalExecutor(std::move(runner), std::move(ranks)), eos_(std::move(eos)) {}

    TokenSource tokens() const override { return TokenSource::kMadeUp; }
    Result<> submit(const StepInput&) final;
    Result<StepOutput> wait(std::span<const RowPath>) final;
    void cancel() final;

  protected:
    void avoid(std::vector<int32_t> tokens) { avoided_ = std::move(tokens); } // no row becomes one of them
    // Before the tokens, by row, are given out; not of a step without rows, unless it overlapped.
    virtual void answer(std::span<const RowPath>, std::span<int32_t> tokens);

  private:
    struct Rows {
        std::vector<pb_sample_row> kept; // where it overlaps: the next step is built before it is back
        std::span<const pb_sample_row> rows;
        uint32_t max_logprobs = 0;
        bool overlapped = false;
    };
    void make(const Rows&, std::span<const RowPath>);
    void make_candidates(const pb_sample_row&, const RowPath&, size_t row);
    uint32_t vocab_size() const { return runner().model().facts().vocab_size; }

    std::vector<int32_t> eos_, avoided_;
    std::deque<Rows> submitted_; // the oldest first
    std::vector<int32_t> tokens_, top_tokens_;
    std::vector<float> logprobs_, top_logprobs_;
    uint32_t max_logprobs_ = 0;
};

}  // namespace patchbay::execution
