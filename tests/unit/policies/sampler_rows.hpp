// Rows for samplers, and whether what they draw has the probabilities that it should have.
#pragma once
#include <algorithm>
#include <cmath>

#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/sampler.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "unit/policies/plugins_fixture.hpp"

namespace patchbay::policies {

inline constexpr size_t kVocab = 12;

struct Row {
    std::vector<float> logits = {0.1f, 2.0f, -1.0f, 1.2f, 0.7f, -3.0f, 1.9f, 0.0f, 0.5f, -0.4f, 1.0f, 0.3f};
    pb_sampling_params params = plain_params();
    std::vector<int32_t> prompt, output, breakers;
    std::vector<float> surprisal;
    std::vector<pb_logit_bias> bias;
    std::vector<uint32_t> mask;
    uint64_t seed = 1, position = 0;
};

struct Sampled {
    std::vector<int32_t> tokens, top;
    std::vector<float> logprobs, top_logprobs, processed, surprisal;
    uint64_t faults;
};

enum class Call { kSample, kProcess };

inline Sampled sample(const std::string& plugin, std::vector<Row> rows, Call what = Call::kSample) {
    static std::map<std::string, host::Sampler> samplers;
    if (!samplers.contains(plugin)) samplers.emplace(plugin, must(registry().sampler(plugin, {}, services())));
    const host::Sampler& sampler = samplers.at(plugin);
    std::vector<pb_sample_row> wire;
    Sampled out;
    for (Row& r : rows) {
        r.params.logit_bias = r.bias.data();
        r.params.logit_bias_count = static_cast<uint32_t>(r.bias.size());
        r.params.dry_breakers = r.breakers.data();
        r.params.dry_breaker_count = static_cast<uint32_t>(r.breakers.size());
        out.processed.insert(out.processed.end(), r.logits.begin(), r.logits.end());
        wire.push_back({wire.size(), r.seed, r.position, &r.params, r.prompt.data(), r.output.data(),
                        static_cast<uint32_t>(r.prompt.size()), static_cast<uint32_t>(r.output.size()),
                        r.mask.empty() ? nullptr : r.mask.data(),
                        r.surprisal.data()});
    }
    const size_t n = rows.size();
    out.tokens.resize(n);
    out.logprobs.resize(n);
    out.surprisal.assign(n, -1);
    out.top.resize(n * 3);
    out.top_logprobs.resize(n * 3);
    pb_sample_batch b{};
    b.struct_size = sizeof b;
    b.row_count = static_cast<uint32_t>(n);
    b.row_stride = sizeof(pb_sample_row);
    b.max_logprobs = 3;
    b.logits =
        tensor(out.processed.data(), PB_F32, {static_cast<int64_t>(n), static_cast<int64_t>(rows[0].logits.size())});
    b.rows = wire.data();
    b.tokens = out.tokens.data();
    b.logprobs = out.logprobs.data();
    b.top_tokens = out.top.data();
    b.top_logprobs = out.top_logprobs.data();
    b.surprisal = out.surprisal.data();
    std::vector<int32_t> faults(n, 0);
    if (what == Call::kSample) b.faults = faults.data();
    const auto call = what == Call::kProcess ? sampler.table->process : sampler.table->sample;
    const auto done = sampler.component->check(call(sampler.self(), &b), "sample");
    EXPECT_TRUE(done) << (done ? "" : done.error());
    out.faults = static_cast<uint64_t>(std::ranges::count(faults, 1));
    return out;
}

// Pearson's statistic over its degrees of freedom's 1 - 1e-6 quantile (Wilson and Hilferty): above 1 is a difference.
inline double chi_square(const std::vector<size_t>& counts, const std::vector<double>& p, size_t draws) {
    double x = 0, freedom = -1;
    for (size_t t = 0; t < p.size(); ++t) {
        const double expected = p[t] * static_cast<double>(draws), got = static_cast<double>(counts[t]);
        if (p[t] == 0) {
            if (counts[t] > 0) return INFINITY;
            continue;
        }
        x += (got - expected) * (got - expected) / expected;
        freedom += 1;
    }
    if (freedom == 0) return 0;
    const double z = 4.753, a = 2 / (9 * freedom);
    return x / (freedom * std::pow(1 - a + z * std::sqrt(a), 3));
}

// Of `draws` positions.
inline std::vector<int32_t> draw_many(const Row& row, size_t draws) {
    std::vector<int32_t> out;
    std::vector<Row> rows(1000, row);
    while (out.size() < draws) {
        for (size_t i = 0; i < rows.size(); ++i) rows[i].position = out.size() + i;
        const auto some = sample("standard", rows).tokens;
        out.insert(out.end(), some.begin(), some.end());
    }
    return out;
}

// That draws are of p; and that the same test sees it where in 2 % of them a sampler takes the second likeliest token
// instead of its own.
inline void expect_drawn_from(const std::vector<double>& p, const std::vector<int32_t>& draws, const char* what) {
    std::vector<size_t> order(p.size()), counts(p.size()), biased(p.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] > p[b]; });
    for (size_t i = 0; i < draws.size(); ++i) {
        const auto token = static_cast<size_t>(draws[i]);
        counts[token] += 1;
        biased[uniform(draw(5, i, Stream::kTest, 0)[0]) < 0.02 ? order[1] : token] += 1;
    }
    EXPECT_LT(chi_square(counts, p, draws.size()), 1) << what;
    EXPECT_GT(chi_square(biased, p, draws.size()), 1) << what << ": a bias goes unseen";
}

}  // namespace patchbay::policies
