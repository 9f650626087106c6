// Samplers against exact probabilities and a naive reference in double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "unit/policies/plugins_fixture.hpp"

namespace patchbay::policies {
namespace {

constexpr size_t kVocab = 12;

struct Row {
    std::vector<float> logits = {0.1f, 2.0f, -1.0f, 1.2f, 0.7f, -3.0f, 1.9f, 0.0f, 0.5f, -0.4f, 1.0f, 0.3f};
    pb_sampling_params params{sizeof(pb_sampling_params), 0, 1, 1, 0, 1, 0, 0, -1, 0, nullptr};
    std::vector<int32_t> prompt, output;
    std::vector<pb_logit_bias> bias;
    std::vector<uint32_t> mask;
    uint64_t seed = 1, position = 0;
};

struct Sampled {
    std::vector<int32_t> tokens, top;
    std::vector<float> logprobs, top_logprobs, processed;
    uint64_t faults;
};

Sampled sample(const std::string& plugin, std::vector<Row> rows, bool process = false) {
    const auto sampler = must(registry().sampler(plugin, {}, services()));
    std::vector<pb_sample_row> wire;
    Sampled out;
    for (Row& r : rows) {
        r.params.logit_bias = r.bias.data();
        r.params.logit_bias_count = static_cast<uint32_t>(r.bias.size());
        out.processed.insert(out.processed.end(), r.logits.begin(), r.logits.end());
        wire.push_back({wire.size(), r.seed, r.position, &r.params, r.prompt.data(), r.output.data(),
                        static_cast<uint32_t>(r.prompt.size()), static_cast<uint32_t>(r.output.size()),
                        r.mask.empty() ? nullptr : r.mask.data()});
    }
    const size_t n = rows.size();
    out.tokens.resize(n);
    out.logprobs.resize(n);
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
    const auto call = process ? sampler.table->process : sampler.table->sample;
    const auto done = sampler.component->check(call(sampler.self(), &b), "sample");
    EXPECT_TRUE(done) << (done ? "" : done.error());
    out.faults = b.fault_count;
    return out;
}

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

// Pearson's statistic over its degrees of freedom's 1 - 1e-6 quantile (Wilson and Hilferty): above 1 is a difference.
double chi_square(const std::vector<size_t>& counts, const std::vector<double>& p, size_t draws) {
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

std::vector<size_t> draw_many(const Row& row, size_t draws) {
    std::vector<size_t> counts(row.logits.size());
    std::vector<Row> rows(1000, row);
    for (size_t done = 0; done < draws; done += rows.size()) {
        for (size_t i = 0; i < rows.size(); ++i) rows[i].position = done + i;
        for (const int32_t t : sample("standard", rows).tokens) counts[static_cast<size_t>(t)] += 1;
    }
    return counts;
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
    constexpr size_t kDraws = 100000;
    for (const Named& d : distributions()) {
        const auto counts = draw_many(d.row, kDraws);
        auto p = exact(d.row);
        EXPECT_LT(chi_square(counts, p, kDraws), 1) << d.name;
        // The same test must see a bias of 2 % of the first token's share.
        const auto most = static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin());
        size_t other = most;
        for (size_t t = 0; t < p.size(); ++t)
            if (t != most && p[t] > 0 && (other == most || p[t] > p[other])) other = t;
        p[most] -= 0.02;
        p[other] += 0.02;
        EXPECT_GT(chi_square(counts, p, kDraws), 1) << d.name << ": a bias goes unseen";
    }
}

TEST(StandardSampler, ProcessGivesTheFinalLogProbabilities) {
    for (const Named& d : distributions()) {
        const auto got = sample("standard", {d.row}, true).processed;
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
        EXPECT_EQ(sample("standard", {rows[0]}, true).processed[1], 0) << temperature;
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
    const auto got = sample("standard", {r}, true).processed;
    for (const size_t t : {0, 1, 700}) EXPECT_GT(got[t], -INFINITY) << t;
    EXPECT_EQ(std::count(got.begin(), got.end(), -INFINITY), 997);
}

TEST(Samplers, LogprobsAreOfTheRawLogitsHighestFirst) {
    for (const char* plugin : {"standard", "greedy"}) {
        Row r;
        r.params.temperature = 0;
        r.params.logprobs = 3;
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
    const auto got = sample("standard", {r}, true).processed;
    for (size_t t = 0; t < p.size(); ++t) ASSERT_NEAR(std::exp(got[t]), p[t], 1e-6) << t;
}

}  // namespace
}  // namespace patchbay::policies
