// Bitwise the same tokens and logits, every one of each row that a token came from, whatever else happens: batch,
// chunks, cache, preemption, speculation, threads. At each instruction set level and type of weights and KV.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "kernels/cpu_isa.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "unit/engine/recorded_rows.hpp"

namespace patchbay::engine::testing::invariance_test {
namespace {

struct Case {
    std::vector<TokenId> prompt;
    SamplingParams sampling;
};

// Greedy and seeded requests with repetition in their prompts, so that drafts are made and accepted.
std::vector<Case> cases(size_t count) {
    std::vector<Case> out;
    for (size_t i = 0; i < count; ++i) {
        auto prompt = random_prompt(i, 20 + static_cast<uint32_t>(i * 7 % 60));
        const std::vector<TokenId> head(prompt.begin(), prompt.begin() + 12);
        prompt.insert(prompt.end(), head.begin(), head.end());
        out.push_back({prompt, i % 2 ? seeded(100 + i, 24) : greedy(24)});
    }
    return out;
}

struct Expected {
    std::vector<TokenId> tokens;
    std::vector<Row> rows; // one a token
};

std::vector<Row> rows_of(const Rows& all, RequestId id, const Case& one, const std::vector<TokenId>& tokens) {
    std::vector<Row> out;
    for (size_t i = 0; i < tokens.size(); ++i) out.push_back(all.at({id, one.prompt.size() + i}));
    return out;
}

std::vector<Expected> alone(const std::vector<Case>& all, const config::EngineConfig& c) {
    std::vector<Expected> out;
    for (const Case& one : all) {
        Recorded r(c);
        const RequestId id = r.harness->add(one.prompt, one.sampling);
        const std::vector<TokenId> tokens = r.harness->run(id).tokens;
        out.push_back({tokens, rows_of(r.rows(), id, one, tokens)});
    }
    return out;
}

void expect_same(const Expected& expected, const std::vector<TokenId>& tokens, const std::vector<Row>& rows,
                 const std::string& what) {
    EXPECT_EQ(expected.tokens, tokens) << what;
    ASSERT_EQ(expected.rows.size(), rows.size()) << what;
    for (size_t i = 0; i < rows.size(); ++i) {
        const Row &a = expected.rows[i], &b = rows[i];
        ASSERT_EQ(a.size(), 300u) << what;
        ASSERT_EQ(a.size(), b.size()) << what;
        ASSERT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what << ", logits of token " << i;
    }
}

void expect_unchanged(const config::EngineConfig& base, const config::EngineConfig& changed,
                      const std::vector<Case>& all, const std::string& what, uint64_t* preemptions = nullptr,
                      uint64_t* accepted = nullptr) {
    const auto expected = alone(all, base);
    Recorded r(changed);
    Harness& h = *r.harness;
    std::vector<RequestId> ids;
    for (const Case& one : all) ids.push_back(h.add(one.prompt, one.sampling));
    h.run_all();
    const Rows rows = r.rows();
    for (size_t i = 0; i < all.size(); ++i) {
        const std::vector<TokenId>& tokens = h.outputs.at(ids[i]).tokens;
        const std::string which = what + ", request " + std::to_string(i);
        expect_same(expected[i], tokens, rows_of(rows, ids[i], all[i], tokens), which);
    }
    for (const StepReport& s : h.steps) {
        if (preemptions) *preemptions += s.preemption.preemptions;
        if (accepted) *accepted += s.drafts.accepted_tokens;
    }
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u) << what;
}

struct Variation {
    const char *attention, *isa;
    config::DType weights;
    config::KvDType kv;
};

std::string name_of(const Variation& v) {
    constexpr const char* kKvWords[] = {"auto", "f32", "bf16", "fp8", "int8"};
    return std::string(v.attention) + "_" + v.isa + (v.weights == config::DType::kBf16 ? "_bf16" : "_f32") + "_kv_" +
           kKvWords[int(v.kv)];
}

class Invariance : public ::testing::TestWithParam<Variation> {
  protected:
    Invariance() {
        const Variation& v = GetParam();
        base_.attention.plugin = v.attention;
        base_.device.settings = {{"isa", v.isa}};
        if (base_.attention.plugin == "paged") base_.attention.settings = base_.device.settings;
        base_.model.dtype = v.weights;
        base_.engine.kv_cache_dtype = v.kv;
        base_.engine.enable_prefix_caching = false;
    }
    void SetUp() override {
        for (const kernels::Isa isa : kernels::available_isas())
            if (kernels::isa_name(isa) == std::string(GetParam().isa)) return;
        GTEST_SKIP() << "this machine has no " << GetParam().isa;
    }
    config::EngineConfig base_ = tiny_model();
};

TEST_P(Invariance, InABatchOf32) { expect_unchanged(base_, base_, cases(32), "batch"); }

TEST_P(Invariance, InChunksOf1And7And64Tokens) {
    for (const uint32_t chunk : {1u, 7u, 64u}) {
        auto c = base_;
        c.engine.max_num_batched_tokens = chunk;
        c.engine.max_num_seqs = std::min(chunk, 8u);
        expect_unchanged(base_, c, cases(6), "chunks of " + std::to_string(chunk));
    }
}

TEST_P(Invariance, WithPrefixCaching) {
    auto c = base_;
    c.engine.enable_prefix_caching = true;
    auto all = cases(4);
    const auto again = all; // the same prompts twice: the second time they hit
    all.insert(all.end(), again.begin(), again.end());
    expect_unchanged(base_, c, all, "prefix caching");

    Harness h(c);
    h.run(h.add(all[0].prompt, all[0].sampling));
    const Output& hit = h.run(h.add(all[0].prompt, all[0].sampling));
    EXPECT_GT(hit.cached_tokens, 0u);
}

TEST_P(Invariance, AfterForcedPreemptions) {
    auto c = base_;
    c.engine.num_blocks = 30; // of 8 tokens, for 12 requests of up to 100
    c.engine.max_model_len = 128;
    uint64_t preemptions = 0;
    expect_unchanged(base_, c, cases(12), "preemption", &preemptions);
    EXPECT_GT(preemptions, 0u);
}

TEST_P(Invariance, WithNgramSpeculation) {
    auto c = base_;
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 4;
    uint64_t accepted = 0;
    expect_unchanged(base_, c, cases(12), "ngram", nullptr, &accepted);
    EXPECT_GT(accepted, 0u) << "no draft was ever accepted, so nothing was shown";
}

TEST_P(Invariance, WithSuffixSpeculation) {
    auto c = base_;
    c.proposer = config::PluginChoice{"suffix", {{"suffix_decoding_max_cached_requests", "8"}}};
    c.engine.num_speculative_tokens = 4;
    c.engine.num_blocks = 40; // preemptions too
    c.engine.max_model_len = 128;
    uint64_t accepted = 0;
    expect_unchanged(base_, c, cases(12), "suffix", nullptr, &accepted);
    EXPECT_GT(accepted, 0u) << "no draft was ever accepted, so nothing was shown";
}

TEST_P(Invariance, WithTwoThreads) {
    auto c = base_;
    c.engine.threads = 2;
    expect_unchanged(base_, c, cases(16), "two threads");
}

TEST_P(Invariance, WithEverythingAtOnce) {
    auto c = base_;
    c.engine.threads = 2;
    c.engine.enable_prefix_caching = true;
    c.engine.num_blocks = 30;
    c.engine.max_model_len = 128;
    c.engine.max_num_batched_tokens = 40;
    c.engine.max_num_seqs = 8;
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 3;
    for (const char* scheduler : {"fcfs", "priority", "sjf", "static"}) {
        c.scheduler.plugin = scheduler;
        expect_unchanged(base_, c, cases(16), scheduler);
    }
}

constexpr auto kF32 = config::DType::kF32, kBf16 = config::DType::kBf16;
using Kv = config::KvDType;
constexpr Variation kVariations[] = {
    {"paged", "plain", kF32, Kv::kF32},      {"paged", "plain", kBf16, Kv::kBf16},
    {"paged", "avx2", kF32, Kv::kF32},       {"paged", "avx2", kBf16, Kv::kBf16},
    {"paged", "avx512", kF32, Kv::kF32},     {"paged", "avx512", kBf16, Kv::kBf16},
    {"paged", "amx", kBf16, Kv::kBf16},      {"paged", "avx2", kBf16, Kv::kF32},
    {"paged", "avx2", kF32, Kv::kBf16},      {"reference", "plain", kF32, Kv::kF32},
    {"reference", "plain", kBf16, Kv::kBf16}, {"paged", "plain", kF32, Kv::kInt8},
    {"paged", "avx2", kF32, Kv::kFp8},       {"paged", "avx512", kF32, Kv::kInt8},
    {"paged", "avx512", kF32, Kv::kFp8},     {"paged", "amx", kBf16, Kv::kInt8},
    {"paged", "amx", kBf16, Kv::kFp8},       {"reference", "plain", kF32, Kv::kInt8}};

INSTANTIATE_TEST_SUITE_P(Engine, Invariance, ::testing::ValuesIn(kVariations),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace patchbay::engine::testing::invariance_test
