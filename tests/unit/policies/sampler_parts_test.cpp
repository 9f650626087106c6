// A sampler of the SDK's parts: bias and penalties, truncation and the draw give the tokens of the plugin `standard`.
#include "patchbay/sdk/gumbel_max.hpp"
#include "patchbay/sdk/logit_adjustments.hpp"
#include "patchbay/sdk/truncation.hpp"
#include "unit/policies/sampler_rows.hpp"

namespace patchbay::policies::sampler_parts_test {
namespace {

int32_t sample_by_parts(Row& r) {
    pb_sample_row row{};
    row.seed = r.seed, row.position = r.position;
    row.params = &r.params;
    row.prompt = r.prompt.data(), row.prompt_count = static_cast<uint32_t>(r.prompt.size());
    row.output = r.output.data(), row.output_count = static_cast<uint32_t>(r.output.size());
    r.params.logit_bias = r.bias.data(), r.params.logit_bias_count = static_cast<uint32_t>(r.bias.size());
    std::vector<float> logits = r.logits;
    adjust_logits(logits, row);
    std::vector<Candidate> kept, before;
    GumbelMax winner(row.seed, row.position);
    each_candidate(Distances(logits, row), r.params, kept, before,
                   [&](int32_t token, float x) { winner.offer(token, x); });
    return winner.token();
}

TEST(SamplerParts, GiveTheTokensOfStandard) {
    std::vector<Row> rows;
    for (uint64_t i = 0; i < 2000; ++i) {
        const auto bits = [&](uint32_t k) { return draw(i, k, Stream::kTest, 0); };
        Row r;
        for (size_t t = 0; t < r.logits.size(); ++t)
            r.logits[t] = static_cast<float>(6 * uniform(bits(static_cast<uint32_t>(t))[0]) - 3);
        r.params.temperature = static_cast<float>(0.2 + uniform(bits(20)[0]));
        if (bits(21)[0] % 2) r.params.top_k = 1 + static_cast<int32_t>(bits(22)[0] % 11);
        if (bits(23)[0] % 2) r.params.top_p = static_cast<float>(uniform(bits(24)[0]));
        if (bits(25)[0] % 2) r.params.min_p = static_cast<float>(0.3 * uniform(bits(26)[0]));
        if (bits(27)[0] % 2) {
            r.params.repetition_penalty = 1.4f, r.params.presence_penalty = 0.5f, r.params.frequency_penalty = 0.25f;
            r.prompt = {1, 5, 5}, r.output = {3, 3, static_cast<int32_t>(bits(28)[0] % kVocab)};
        }
        if (bits(29)[0] % 2) r.bias = {{static_cast<int32_t>(bits(30)[0] % kVocab), 1.5f}};
        r.seed = i, r.position = 7 * i;
        rows.push_back(r);
    }
    const std::vector<int32_t> expected = sample("standard", rows).tokens;
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(sample_by_parts(rows[i]), expected[i]) << "row " << i;
}

}  // namespace
}  // namespace patchbay::policies::sampler_parts_test
