// The sampling kernel against sorting in double, and how rows are packed for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "kernels/cuda_sampling.hpp"
#include "patchbay/sdk/philox.hpp"
#include "unit/cuda/values.hpp"

namespace patchbay::kernels::cuda::sampling_test {
namespace {

struct Case {
    Floats logits;
    SamplingRequest asked;
    std::vector<SamplingBias> bias;
    std::vector<int32_t> prompt, output;
    std::vector<uint32_t> allowed;
};

struct Sampled {
    Ints tokens, faults, top_tokens;
    Floats logprobs, top_logprobs;
};

Sampled sample(std::vector<Case> cases, int32_t max_top = 0) {
    const size_t rows = cases.size(), vocab = cases[0].logits.size(), stride = vocab + 3;
    SamplingInputs inputs;
    inputs.clear(int64_t(vocab));
    Floats logits(rows * stride, NAN), scratch;
    for (size_t r = 0; r < rows; ++r) {
        Case& c = cases[r];
        std::copy(c.logits.begin(), c.logits.end(), logits.begin() + long(r * stride));
        c.asked.bias = c.bias;
        c.asked.prompt = c.prompt;
        c.asked.output = c.output;
        c.asked.allowed = c.allowed.empty() ? nullptr : c.allowed.data();
        inputs.add(c.asked);
    }
    const auto packed = inputs.pack();
    Shared<uint64_t> there((packed.size() + 7) / 8);
    std::memcpy(there.data(), packed.data(), packed.size());
    scratch.assign(inputs.scratch_bytes() / 4, NAN);
    Sampled out{Ints(rows, -7), Ints(rows, -7), Ints(rows * size_t(max_top), -7), Floats(rows, NAN),
                Floats(rows * size_t(max_top), NAN)};
    sample_rows(nullptr, {logits.data(), int64_t(stride), int32_t(rows), max_top, there.data(), scratch.data(),
                          out.tokens.data(), out.faults.data(), out.top_tokens.data(), out.logprobs.data(),
                          out.top_logprobs.data()});
    finish();
    return out;
}

// What the sampler `standard` promises, by sorting. Rows have a token to choose.
int32_t expected(const Case& c) {
    const SamplingRequest& p = c.asked;
    std::vector<float> x(c.logits.begin(), c.logits.end());
    for (const SamplingBias& b : c.bias) x[size_t(b.token)] += b.bias;
    std::map<int32_t, int> counts;
    for (const int32_t t : c.prompt) counts.emplace(t, 0);
    for (const int32_t t : c.output) counts[t] += 1;
    for (const auto& [t, count] : counts) {
        float& v = x[size_t(t)];
        v = v > 0 ? v / p.repetition : v * p.repetition;
        if (count > 0) v -= p.presence + p.frequency * float(count);
    }
    std::vector<int32_t> left;
    for (size_t t = 0; t < x.size(); ++t)
        if (x[t] > -INFINITY && (c.allowed.empty() || (c.allowed[t / 32] >> (t % 32) & 1u))) left.push_back(int32_t(t));
    std::stable_sort(left.begin(), left.end(), [&](int32_t a, int32_t b) { return x[size_t(a)] > x[size_t(b)]; });
    if (p.temperature == 0) return left[0];
    const float max_logit = x[size_t(left[0])];
    const auto distance = [&](int32_t t) {
        return x[size_t(t)] == max_logit ? 0 : (x[size_t(t)] - max_logit) / p.temperature;
    };
    if (p.top_k > 0 && left.size() > size_t(p.top_k)) left.resize(size_t(p.top_k));
    if (p.top_p < 1) {
        double all = 0, sum = 0;
        for (const int32_t t : left) all += std::exp(double(distance(t)));
        size_t kept = 0;
        while (kept < left.size() && (kept == 0 || sum < double(p.top_p) * all))
            sum += std::exp(double(distance(left[kept++])));
        left.resize(kept);
    }
    int32_t token = -1;
    double best = -INFINITY;
    for (const int32_t t : left) {
        if (p.min_p > 0 && distance(t) < std::log(p.min_p)) continue;
        const double score = distance(t) + gumbel(p.seed, p.position, uint32_t(t));
        if (score > best || (score == best && t < token)) best = score, token = t;
    }
    return token;
}

Case random_case(uint64_t seed, size_t vocab) {
    std::mt19937_64 draw(seed);
    const auto real = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(draw); };
    const auto token = [&] { return int32_t(draw() % vocab); };
    Case c{noise(seed, vocab, -8, 8), {}, {}, {}, {}, {}};
    for (float& x : c.logits)
        if (draw() % 8 == 0) x = std::round(x); // equal ones
    c.asked.seed = draw();
    c.asked.position = draw() % 5000;
    c.asked.temperature = draw() % 4 == 0 ? 0 : real(0.2f, 2);
    if (draw() % 3 == 0) c.asked.top_k = 1 + int32_t(draw() % 60);
    if (draw() % 2 == 0) c.asked.top_p = real(0.05f, 1);
    if (draw() % 4 == 0) c.asked.min_p = real(0, 0.3f);
    if (draw() % 3 == 0) {
        c.asked.repetition = real(0.8f, 1.5f);
        c.asked.presence = real(-1, 1);
        c.asked.frequency = real(-1, 1);
        for (uint64_t i = draw() % 40; i > 0; --i) c.prompt.push_back(token());
        for (uint64_t i = draw() % 40; i > 0; --i) c.output.push_back(token());
    }
    if (draw() % 3 == 0) // engines name a token once
        for (int32_t i = 0; i < 5; ++i) c.bias.push_back({int32_t(vocab / 5) * i, real(-5, 5)});
    if (draw() % 3 == 0) {
        c.allowed.resize((vocab + 31) / 32);
        for (uint32_t& word : c.allowed) word = uint32_t(draw());
        c.allowed[0] |= 1u;
    }
    return c;
}

TEST(CudaSampling, DrawsWhatSortingDraws) {
    for (const size_t vocab : {5u, 203u, 2001u}) {
        std::vector<Case> cases;
        for (uint64_t i = 0; i < 60; ++i) cases.push_back(random_case(1000 * vocab + i, vocab));
        const Sampled got = sample(cases);
        for (size_t i = 0; i < cases.size(); ++i) {
            EXPECT_EQ(got.tokens[i], expected(cases[i])) << "row " << i << " of " << vocab;
            EXPECT_EQ(got.faults[i], 0);
        }
    }
}

// More tokens that are about equally likely than a bin has room for.
TEST(CudaSampling, DrawsWhatSortingDrawsAmongManyThatAreAlike) {
    std::vector<Case> cases;
    for (uint64_t i = 0; i < 6; ++i) {
        Case c{noise(900 + i, 6000, -0.04f, 0.04f), {}, {}, {}, {}, {}};
        c.asked.seed = i;
        c.asked.temperature = i % 2 == 0 ? 1.f : 0.01f; // spread out, too
        c.asked.top_p = 0.3f + 0.1f * float(i);
        if (i % 3 == 0) c.asked.top_k = 5000;
        c.asked.logprobs = 4;
        cases.push_back(c);
    }
    const Sampled got = sample(cases, 4);
    for (size_t i = 0; i < cases.size(); ++i) {
        EXPECT_EQ(got.tokens[i], expected(cases[i])) << "row " << i;
        const auto likeliest = std::max_element(cases[i].logits.begin(), cases[i].logits.end());
        EXPECT_EQ(got.top_tokens[i * 4], int32_t(likeliest - cases[i].logits.begin()));
    }
}

TEST(CudaSampling, DoesNotDependOnTheOrderOfThreadsNorOnOtherRows) {
    std::vector<Case> cases;
    for (uint64_t i = 0; i < 12; ++i) cases.push_back(random_case(77 + i, 700));
    for (Case& c : cases) c.asked.logprobs = 3;
    const Sampled together = sample(cases, 3);
    const Sampled turned = in_another_order([&] { return sample(cases, 3); });
    EXPECT_EQ(together.tokens, turned.tokens);
    EXPECT_EQ(together.logprobs, turned.logprobs);
    for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(sample({cases[i]}).tokens[0], together.tokens[i]) << i;
}

TEST(CudaSampling, GivesLogprobsOfTheRawLogits) {
    constexpr size_t kVocab = 300;
    std::vector<Case> cases;
    for (uint64_t i = 0; i < 9; ++i) {
        cases.push_back(random_case(500 + i, kVocab));
        cases.back().asked.logprobs = int32_t(i) - 1;
    }
    const Sampled got = sample(cases, 5);
    for (size_t i = 0; i < cases.size(); ++i) {
        const Floats& x = cases[i].logits;
        double sum = 0;
        for (const float v : x) sum += std::exp(double(v));
        const auto logprob = [&](int32_t t) { return x[size_t(t)] - std::log(sum); };
        if (i > 0) {
            EXPECT_NEAR(got.logprobs[i], logprob(got.tokens[i]), 1e-5);
        }
        std::vector<int32_t> order(kVocab);
        for (size_t t = 0; t < kVocab; ++t) order[t] = int32_t(t);
        std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return x[size_t(a)] > x[size_t(b)]; });
        for (int32_t k = 0; k < 5; ++k) {
            const size_t at = i * 5 + size_t(k);
            if (k >= cases[i].asked.logprobs) {
                EXPECT_EQ(got.top_tokens[at], -1) << "row " << i << ", place " << k;
            } else {
                EXPECT_EQ(got.top_tokens[at], order[size_t(k)]) << "row " << i << ", place " << k;
                EXPECT_NEAR(got.top_logprobs[at], logprob(order[size_t(k)]), 1e-5);
            }
        }
    }
}

TEST(CudaSampling, CountsRowsThatHaveNothingToChooseFrom) {
    constexpr size_t kVocab = 100;
    std::vector<Case> cases(6, Case{noise(1, kVocab), {}, {}, {}, {}, {}});
    for (Case& c : cases) c.asked.logprobs = 2;
    std::fill(cases[0].logits.begin(), cases[0].logits.end(), NAN);
    std::fill(cases[1].logits.begin(), cases[1].logits.end(), -INFINITY);
    cases[2].allowed.assign(4, 0);
    cases[2].allowed[2] = 1u << 5; // token 69
    cases[2].logits[69] = -INFINITY;
    cases[3].allowed.assign(4, 0);
    cases[4].logits[7] = INFINITY;
    for (size_t t = 0; t < kVocab; t += 2) cases[5].logits[t] = NAN;
    const Sampled got = sample(cases, 2);
    EXPECT_EQ(got.faults, (Ints{1, 1, 1, 1, 0, 0}));
    EXPECT_EQ(got.tokens[0], 0);
    EXPECT_EQ(got.tokens[2], 69) << "the first that is allowed";
    EXPECT_EQ(got.tokens[3], 0);
    EXPECT_EQ(got.tokens[4], 7) << "nothing wins over infinity";
    EXPECT_EQ(got.tokens[5] % 2, 1) << "NaN is never drawn";
}

TEST(CudaSampling, TopPWithoutRoomForOneKeepsTheLikeliest) {
    Case c{noise(3, 500), {}, {}, {}, {}, {}};
    c.asked.top_p = 1e-6f;
    c.asked.temperature = 5;
    const auto likeliest = std::max_element(c.logits.begin(), c.logits.end()) - c.logits.begin();
    EXPECT_EQ(sample({c}).tokens[0], likeliest);
}

TEST(CudaSampling, OfEqualLogitsTopKKeepsTheLowest) {
    Case c{Floats(400, 1.f), {}, {}, {}, {}, {}};
    c.asked.top_k = 3;
    for (uint64_t seed = 0; seed < 20; ++seed) {
        c.asked.seed = seed;
        EXPECT_LT(sample({c}).tokens[0], 3);
    }
}

TEST(CudaSampling, PacksWhatRowsAskForOnce) {
    SamplingInputs inputs;
    inputs.clear(70);
    const std::vector<SamplingBias> bias = {{5, 1}, {70, 9}, {-1, 9}};
    const std::vector<int32_t> prompt = {5, 6, 70, -1}, output = {6, 8, 6, 70};
    const std::vector<uint32_t> allowed = {1, 2, 3};
    SamplingRequest r;
    r.top_k = 70; // all of them: off
    r.min_p = 1;
    r.bias = bias;
    r.prompt = prompt;
    r.output = output;
    inputs.add(r);
    r.presence = 1;
    r.allowed = allowed.data();
    inputs.add(r);
    const auto packed = inputs.pack();
    const auto at = [&]<class T>(uint64_t place, T) { return reinterpret_cast<const T*>(packed.data() + place); };
    const SamplingHeader& header = *at(0, SamplingHeader{});
    const SamplingRow* const rows = at(header.rows_at, SamplingRow{});
    EXPECT_EQ(header.vocab, 70);
    EXPECT_EQ(header.weight_bits, 55) << "70 times the greatest weight stays below 1 << 63";
    EXPECT_EQ(rows[0].top_k, 0);
    EXPECT_EQ(rows[0].least, 0);
    EXPECT_EQ(rows[0].entry_count, 1u) << "without penalties only the bias, of tokens that there are";
    EXPECT_EQ(rows[0].mask, -1);
    EXPECT_EQ(rows[1].entry, 1u);
    ASSERT_EQ(rows[1].entry_count, 3u) << "no token is packed that has no logit";
    const SamplingEntry* const entries = at(header.entries_at, SamplingEntry{}) + rows[1].entry;
    EXPECT_EQ(entries[0].token, 5);
    EXPECT_EQ(entries[0].bias, 1);
    EXPECT_EQ(entries[0].count, 0);
    EXPECT_EQ(entries[1].token, 6);
    EXPECT_EQ(entries[1].count, 2);
    EXPECT_EQ(entries[2].token, 8);
    EXPECT_EQ(entries[2].count, 1);
    EXPECT_EQ(std::vector<uint32_t>(at(header.masks_at, 0u), at(header.masks_at, 0u) + 3), allowed);
    EXPECT_EQ(inputs.scratch_bytes(), 4 * sizeof(float));
}

}  // namespace
}  // namespace patchbay::kernels::cuda::sampling_test
