// Samplers against exact probabilities and a naive reference in double.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "patchbay/sdk/philox.hpp"
#include "unit/policies/sampler_rows.hpp"

namespace patchbay::policies::samplers_test {
namespace {

// Exact probabilities of a row, written as directly as possible.
std::vector<double> exact(const Row& r) {
    std::vector<double> x(r.logits.begin(), r.logits.end());
    for (const auto& [token, bias] : r.bias) x[static_cast<size_t>(token)] += bias;
    for (size_t t = 0; t < x.size(); ++t) {
        const auto count = static_cast<double>(std::count(r.output.begin(), r.output.end(), static_cast<int32_t>(t)));
        if (count > 0 || std::count(r.prompt.begin(), r.prompt.end(), static_cast<int32_t>(t)) > 0)
            x[t] = x[t] > 0 ? x[t] / r.params.repetition_penalty : x[t] * r.params.repetition_penalty;
        if (count > 0) x[t] -= r.params.presence_penalty + r.params.frequency_penalty * count;
        x[t] /= r.params.temperature;
        if (!r.mask.empty() && !(r.mask[t / 32] >> (t % 32) & 1)) x[t] = -INFINITY;
    }
    std::vector<size_t> order(x.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
    const auto softmax = [&] {
        std::vector<double> p;
        double sum = 0;
        for (const double v : x) sum += std::exp(v - x[order[0]]);
        for (const double v : x) p.push_back(std::exp(v - x[order[0]]) / sum);
        return p;
    };
    if (r.params.top_k > 0)
        for (size_t i = static_cast<size_t>(r.params.top_k); i < order.size(); ++i) x[order[i]] = -INFINITY;
    auto p = softmax();
    double sum = 0;
    for (const size_t t : order) {
        if (sum >= r.params.top_p) x[t] = -INFINITY;
        sum += p[t];
    }
    p = softmax();
    for (size_t t = 0; t < x.size(); ++t)
        if (p[t] < r.params.min_p * p[order[0]]) x[t] = -INFINITY;
    return softmax();
}

struct Named {
    const char* name;
    Row row;
};

std::vector<Named> distributions() {
    std::vector<Named> out(7);
    out[0].name = "plain";
    out[1].name = "temperature", out[1].row.params.temperature = 0.6f;
    out[2].name = "top_k", out[2].row.params.top_k = 4;
    out[3].name = "top_p", out[3].row.params.top_p = 0.7f;
    out[4].name = "min_p", out[4].row.params.min_p = 0.2f;
    out[5].name = "penalties";
    out[5].row.params.repetition_penalty = 1.3f, out[5].row.params.presence_penalty = 0.4f,
    out[5].row.params.frequency_penalty = 0.2f;
    out[5].row.prompt = {1, 5, 5}, out[5].row.output = {3, 3, 6};
    out[6].name = "all_at_once";
    out[6].row.params.temperature = 1.5f, out[6].row.params.top_k = 9, out[6].row.params.top_p = 0.9f,
    out[6].row.params.min_p = 0.05f;
    out[6].row.bias = {{2, 3.0f}, {1, -1.0f}}, out[6].row.mask = {0xfbf}, out[6].row.seed = 77;
    return out;
}

TEST(StandardSampler, DrawsFollowTheExactProbabilities) {
    for (const Named& d : distributions()) expect_drawn_from(exact(d.row), draw_many(d.row, 100'000), d.name);
}

TEST(StandardSampler, ProcessGivesTheFinalLogProbabilities) {
    for (const Named& d : distributions()) {
        const auto got = sample("standard", {d.row}, Call::kProcess).processed;
        const auto p = exact(d.row);
        for (size_t t = 0; t < kVocab; ++t) EXPECT_NEAR(std::exp(got[t]), p[t], 1e-6) << d.name << ", token " << t;
    }
}

TEST(StandardSampler, TemperatureZeroIsTheHighestLogitAfterPenalties) {
    Row r;
    r.params.temperature = 0;
    EXPECT_EQ(sample("standard", {r}).tokens[0], 1);
    r.params.presence_penalty = 1;
    r.output = {1};
    EXPECT_EQ(sample("standard", {r}).tokens[0], 6);
    r.bias = {{5, 9}};
    EXPECT_EQ(sample("standard", {r}).tokens[0], 5);
    r.mask = {0x1};
    EXPECT_EQ(sample("standard", {r}).tokens[0], 0);
}

TEST(StandardSampler, TowardsTemperatureZeroOnlyTheHighestLogitsAreLeft) {
    for (const float temperature : {1e-6f, 1e-38f, 1e-40f, std::numeric_limits<float>::denorm_min()}) {
        std::vector<Row> rows(300);
        for (size_t i = 0; i < rows.size(); ++i) {
            rows[i].params.temperature = temperature;
            rows[i].position = i;
            if (i % 3 == 1) rows[i].params.top_p = 0.9f;
            if (i % 3 == 2) rows[i].params.min_p = 0.1f;
        }
        const Sampled drawn = sample("standard", rows);
        EXPECT_EQ(drawn.tokens, std::vector<int32_t>(rows.size(), 1)) << temperature;
        EXPECT_EQ(drawn.faults, 0u);
        EXPECT_EQ(sample("standard", {rows[0]}, Call::kProcess).processed[1], 0) << temperature;
        for (Row& r : rows) r.logits[7] = r.logits[1];
        const auto tied = sample("standard", rows).tokens;
        EXPECT_EQ(std::set<int32_t>(tied.begin(), tied.end()), (std::set<int32_t>{1, 7})) << temperature;
    }
}

TEST(StandardSampler, ASeedRepeatsWhateverElseIsInTheBatch) {
    std::vector<Row> rows(50);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].seed = i;
    const auto first = sample("standard", rows).tokens;
    for (size_t i = 0; i < rows.size(); i += 7) EXPECT_EQ(sample("standard", {rows[i]}).tokens[0], first[i]);
    EXPECT_GT(std::set<int32_t>(first.begin(), first.end()).size(), 4u);
}

TEST(StandardSampler, ADrawIsTheHighestOfAllLogitsPlusTheirNoise) {
    std::vector<Row> rows(200);
    for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].position = i;
        rows[i].logits.resize(3000);
        for (uint32_t t = 0; t < 3000; ++t)
            rows[i].logits[t] = static_cast<float>(12 * uniform(draw(i, 0, Stream::kTest, t)[0]));
    }
    const auto got = sample("standard", rows).tokens;
    for (size_t i = 0; i < rows.size(); ++i) {
        double best = -INFINITY;
        int32_t token = -1;
        for (int32_t t = 0; t < 3000; ++t)
            if (const double x = rows[i].logits[static_cast<size_t>(t)] +
                                 gumbel(rows[i].seed, rows[i].position, static_cast<uint32_t>(t));
                x > best)
                best = x, token = t;
        EXPECT_EQ(got[i], token) << i;
    }
}

TEST(StandardSampler, TopKOfManyTakesTheFirstOfEqualLogits) {
    Row r;
    r.logits.assign(1000, 1.0f);
    r.logits[700] = 2;
    r.params.top_k = 3;
    const auto got = sample("standard", {r}, Call::kProcess).processed;
    for (const size_t t : {0, 1, 700}) EXPECT_GT(got[t], -INFINITY) << t;
    EXPECT_EQ(std::count(got.begin(), got.end(), -INFINITY), 997);
}

// What it keeps for the next step is by thread, not by row: no request makes it grow for good.
TEST(StandardSampler, ManyRowsLeaveNoMemoryForEach) {
    constexpr size_t kTokens = 20'000, kRows = 128;
    Row r;
    r.logits.assign(kTokens, 0);
    for (size_t t = 0; t < kTokens; ++t) r.logits[t] = static_cast<float>(t % 97) * 0.01f;
    r.params.typical_p = 0.9f;
    const auto in_use = [] {
        const struct mallinfo2 m = ::mallinfo2();
        return m.uordblks + m.hblkhd;
    };
    const size_t before = in_use();
    sample("standard", std::vector<Row>(kRows, r));
    const size_t after = in_use();
    EXPECT_LT(after, before + kRows * kTokens * sizeof(float)) << "bytes";
}

TEST(Samplers, LogprobsAreOfTheRawLogitsHighestFirst) {
    for (const char* plugin : {"standard", "greedy"}) {
        Row r;
        r.params.temperature = 0;
        r.params.logprobs = 4;
        r.bias = {{5, 9}}; // moves standard's choice, not the logprobs
        const auto got = sample(plugin, {r});
        Row raw;
        const auto p = exact(raw);
        EXPECT_NEAR(got.logprobs[0], std::log(p[static_cast<size_t>(got.tokens[0])]), 1e-5) << plugin;
        EXPECT_EQ(got.top, (std::vector<int32_t>{1, 6, 3})) << plugin;
        for (size_t k = 0; k < 3; ++k)
            EXPECT_NEAR(got.top_logprobs[k], std::log(p[static_cast<size_t>(got.top[k])]), 1e-5);
    }
}

TEST(Samplers, ARowWithoutNumbersGivesAnAllowedIdAndAFault) {
    for (const char* plugin : {"standard", "greedy"}) {
        Row r;
        r.logits.assign(kVocab, NAN);
        r.mask = {0x8};
        const auto got = sample(plugin, {r});
        EXPECT_EQ(got.tokens[0], 3) << plugin;
        EXPECT_EQ(got.faults, 1u) << plugin;
    }
}

TEST(StandardSampler, TopPOverALargeVocabularyNeedsNoFullSort) {
    Row r;
    r.logits.resize(5000);
    for (size_t t = 0; t < r.logits.size(); ++t)
        r.logits[t] = static_cast<float>((t * 7919) % 5000) * 0.001f;  // flat: thousands are kept
    r.params.top_p = 0.9f;
    const auto p = exact(r);
    const auto got = sample("standard", {r}, Call::kProcess).processed;
    for (size_t t = 0; t < p.size(); ++t) ASSERT_NEAR(std::exp(got[t]), p[t], 1e-6) << t;
}

}  // namespace
}  // namespace patchbay::policies::samplers_test
