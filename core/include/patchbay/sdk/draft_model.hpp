// patchbay/sdk/draft_model.hpp - a model that the host runs for a proposer: loaded in its constructor, asked for the
// next token in propose(). See patchbay.runner/1 in abi/services.h.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "patchbay/plugin.hpp"

namespace patchbay {

class DraftModel {
  public:
    // In a proposer's constructor only. `settings`: keys of the section `model:`; the acceptance as in pb_runner_load.
    // Throws Error where the model cannot be had, or the host offers none.
    DraftModel(const Context& context, const std::vector<pb_setting>& settings, double simulated_acceptance = -1)
        : runner_(static_cast<const pb_runner*>(context.host().service(context.host().ctx, PB_SERVICE_RUNNER))) {
        if (!runner_) throw Error(PB_UNAVAILABLE, "the host runs no models for proposers");
        const pb_runner_load load{sizeof(pb_runner_load), static_cast<uint32_t>(settings.size()), settings.data(),
                                  simulated_acceptance};
        facts_.struct_size = sizeof facts_;
        pb_str why{};
        const pb_status status = runner_->load(runner_->ctx, &load, &facts_, &why);
        if (status != PB_OK) throw Error(status, std::string(view(why)));
    }

    const pb_runner_facts& facts() const { return facts_; }

    // One pass over rows of the propose() under way. tokens[i]: what follows the drafts of rows[i]; −1: nothing more in
    // this step. logprobs: empty, or one a row; probs: empty, or (rows, vocab_size), see pb_runner_batch.
    void forward(std::span<const pb_runner_row> rows, std::span<int32_t> tokens, std::span<float> logprobs = {},
                 std::span<float> probs = {}) const {
        pb_runner_batch batch{};
        batch.struct_size = sizeof batch;
        batch.model = facts_.model;
        batch.row_count = static_cast<uint32_t>(rows.size());
        batch.row_stride = sizeof(pb_runner_row);
        batch.rows = rows.data();
        batch.tokens = tokens.data();
        batch.logprobs = logprobs.empty() ? nullptr : logprobs.data();
        batch.probs = probs.empty() ? nullptr : probs.data();
        forward(batch);
    }
    void forward(pb_runner_batch& batch) const { // all that the host can be asked
        pb_str why{};
        const pb_status status = runner_->forward(runner_->ctx, &batch, &why);
        if (status != PB_OK) throw Error(status, std::string(view(why)));
    }

  private:
    const pb_runner* runner_;
    pb_runner_facts facts_{};
};

}  // namespace patchbay
