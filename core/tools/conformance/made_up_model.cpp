#include "conformance/made_up_model.hpp"

#include <algorithm>
#include <utility>

#include "host/runner_rules.hpp"
#include "patchbay/sdk/philox.hpp"
#include "patchbay/sizes.hpp"

namespace patchbay::conformance {
namespace {

constexpr uint32_t kModel = 3; // no plugin guesses it

}  // namespace

MadeUpModel::MadeUpModel() {
    service_ = {sizeof(pb_runner), PB_RUNNER_REVISION, this,
                [](void* ctx, const pb_runner_load* what, pb_runner_facts* facts, pb_str*) {
                    auto& self = *static_cast<MadeUpModel*>(ctx);
                    if (has_size(*what) && has_size(*facts)) return self.load(*Whole(what), *facts);
                    return self.note("it gives a struct without its struct_size"), pb_status{PB_INVALID};
                },
                [](void* ctx, pb_runner_batch* batch, pb_str*) {
                    auto& self = *static_cast<MadeUpModel*>(ctx);
                    if (!has_size(*batch))
                        return self.note("it gives a struct without its struct_size"), pb_status{PB_INVALID};
                    WholeInOut whole(batch);
                    return self.forward(*whole);
                }};
}

void MadeUpModel::enter(Call call, std::unordered_map<uint64_t, uint32_t> max_drafts_by_id) {
    call_ = call;
    max_drafts_ = std::move(max_drafts_by_id);
}

void MadeUpModel::note(const std::string& breach) {
    if (breach_.empty()) breach_ = breach;
}

pb_status MadeUpModel::load(const pb_runner_load&, pb_runner_facts& facts) {
    if (call_ != Call::kCreate) note("it loads a model outside create()");
    loads_ += 1;
    copy_out(&facts, {sizeof(pb_runner_facts), kModel, kVocab, 32, 2, 96, 1, 0});
    return PB_OK;
}

// Now and then it has no token to give, as a model that lags.
pb_status MadeUpModel::forward(pb_runner_batch& batch) {
    if (call_ != Call::kPropose) note("it runs a model outside propose()");
    const auto known = [&](uint64_t id) -> std::optional<uint32_t> {
        const auto at = max_drafts_.find(id);
        return at == max_drafts_.end() ? std::nullopt : std::optional(at->second);
    };
    if (const auto allowed = host::check_batch(batch, {kModel, kVocab, known}); !allowed) note(allowed.error());
    if (!batch.rows || !batch.tokens) return PB_OK;
    for (uint32_t i = 0; i < batch.row_count; ++i) {
        const pb_runner_row& row = host::row_of(batch, i);
        const auto bits = draw(row.id, row.draft_count, Stream::kTest, 0);
        batch.tokens[i] = bits[0] % 8 == 0 ? -1 : static_cast<int32_t>(bits[1] % kVocab);
        if (batch.logprobs) batch.logprobs[i] = -static_cast<float>(bits[2] % 4);
        if (float* probs = host::probs_of(batch, i, kVocab)) std::fill_n(probs, kVocab, 1.0f / kVocab);
        for (uint32_t t = 0; t < batch.top_count && batch.top_tokens && batch.top_logprobs; ++t) {
            batch.top_tokens[size_t{i} * batch.top_count + t] = static_cast<int32_t>((bits[1] + t) % kVocab);
            batch.top_logprobs[size_t{i} * batch.top_count + t] = -static_cast<float>(t + 1);
        }
    }
    return PB_OK;
}

}  // namespace patchbay::conformance
