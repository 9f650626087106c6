// The model on this rank, or on this and others that are sent each batch.
#pragma once
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "execution/draft_passes.hpp"
#include "execution/executor.hpp"
#include "execution/ranked_exchange.hpp"
#include "parallel/group.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::execution {

class LocalDraftPasses final : public DraftPasses {
  public:
    explicit LocalDraftPasses(runner::ModelRunner& draft) : runner_(draft) {}
    const runner::BatchForm& batch_form() const override { return runner_.kv().batch_form(); }
    uint32_t max_tokens() const override { return runner_.max_tokens(); }
    uint32_t max_head_passes() const override { return runner_.goes_on_from()->passes(); }
    uint32_t hidden_row(uint32_t pass) const override { return runner_.goes_on_from()->row_of_pass(pass); }
    Result<StepOutput> compute(const runner::Batch&, const runner::SampleCall*) override;

  private:
    runner::ModelRunner& runner_;
};

class LocalExecutor : public Executor {
  public:
    // ranks: that the runner was made with; null: it is alone.
    explicit LocalExecutor(std::unique_ptr<runner::ModelRunner> runner, std::unique_ptr<runner::Ranks> ranks = nullptr)
        : ranks_(std::move(ranks)), runner_(std::move(runner)), model_(*runner_), attention_(*runner_) {
        if (runner_->draft()) drafts_.emplace(*runner_->draft());
    }
    ~LocalExecutor() override { runner_->passes().abandon(); } // before a sampler goes whose kernels may be in flight

    const runner::ModelRunner& runner() const { return *runner_; }
    runner::ModelRunner& runner() { return *runner_; }

    TokenSource tokens() const override { return TokenSource::kModel; }
    std::string_view sync_reason() const override;
    Result<> check_sampler(const host::Component& c) const override {
        return runner::check_sampler(c, runner_->device().name, runner_->device().info);
    }
    uint32_t hidden_size() const override { return runner_->passes().hidden_size(); }
    Result<> submit(const StepInput&) override;
    Result<StepOutput> wait(std::span<const RowPath>) override;
    void cancel() override;
    Result<runner::SampledRows> sample(std::span<const float> logits, const runner::SampleCall&) override;
    DraftPasses* drafts() override { return drafts_ ? &*drafts_ : nullptr; }
    ModelExchange* model() override { return &model_; }
    AttentionExchange* attention() override { return &attention_; }
    PassStats stats() const override;
    double page_copy_ns() const override { return runner_->kv().host_pages().ns_a_page(); }

  private:
    Result<> begin(const StepInput&);
    Result<StepOutput> compute(const StepInput&);

    std::unique_ptr<runner::Ranks> ranks_;
    std::unique_ptr<runner::ModelRunner> runner_;
    LocalModel model_;
    LocalAttention attention_;
    std::optional<LocalDraftPasses> drafts_;
    std::optional<StepOutput> computed_; // of a step that does not overlap, until wait()
};

// Rank 0 of several, which all compute the same batches; it alone samples.
class RankedExecutor final : public LocalExecutor {
  public:
    RankedExecutor(std::unique_ptr<runner::ModelRunner> runner, std::unique_ptr<parallel::Group> group,
                   const Clock& clock)
        : RankedExecutor(std::move(runner), *group, group, clock) {}

    ModelExchange* model() override { return &model_; }
    AttentionExchange* attention() override { return &attention_; }
    Result<> submit(const StepInput&) override;
    Result<> check() const override { return group_.check(); }
    PassStats stats() const override;

  private:
    RankedExecutor(std::unique_ptr<runner::ModelRunner> runner, parallel::Group& group,
                   std::unique_ptr<parallel::Group>& owned, const Clock& clock)
        : LocalExecutor(std::move(runner), std::move(owned)), group_(group), clock_(clock),
          model_(this->runner(), group), attention_(this->runner(), group) {}

    Result<> give_up(Failure fault); // a step that failed; the failure says why

    parallel::Group& group_;
    const Clock& clock_;
    RankedModel model_;
    RankedAttention attention_;
};

}  // namespace patchbay::execution
