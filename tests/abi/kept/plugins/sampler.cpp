// kept_sdk - the most likely allowed token, over the SDK.
#include "grown.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace {

struct Kept {
    void sample(patchbay::SampleBatch& batch) {
        kept::expect_zero_growth(batch.raw, "pb_sample_batch");
        for (uint32_t i = 0; i < batch.size(); ++i) {
            kept::expect_zero_growth(batch.row(i), "pb_sample_row");
            kept::expect_zero_growth(*batch.row(i).params, "pb_sampling_params");
            int32_t best = patchbay::likeliest(batch.logits(i), batch.row(i));
            if (best < 0) best = batch.fault(i);
            batch.raw.tokens[i] = best;
            patchbay::write_logprobs(batch, i, best);
        }
    }
    void accepts(const pb_sampling_params& params) { kept::expect_zero_growth(params, "pb_sampling_params"); }
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::sampler<Kept>({.name = "kept_sdk", .version = "1.0.0", .summary = "the most likely token"}))
