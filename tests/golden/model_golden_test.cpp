// Logits and greedy ids of small random models against Hugging Face transformers; see README.md for the tolerances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/thread_pool.hpp"
#include "host/registry.hpp"
#include "kv/kv_cache.hpp"
#include "runner/model_runner.hpp"
#include "weights/loader.hpp"

namespace patchbay {
namespace {

using json = nlohmann::json;
const std::string kGolden = std::string(PATCHBAY_SOURCE_DIR) + "/tests/golden/";

template <class T>
T must(Result<T> r) {
    if (!r) throw std::runtime_error(r.error());
    return *std::move(r);
}

struct Setting {
    std::string name, attention, isa;
    pb_dtype kv;

    // All but bf16 weights at the best level, where linears may round activations, and bf16 KV.
    bool computes_in_f32() const { return kv == PB_F32 && (name != "llama_bf16" || isa != "auto"); }
};

class Golden {
  public:
    explicit Golden(const Setting& s) : pool_(2) {
        const host::Services services{&pool_.service(), nullptr, nullptr};
        const auto registry = must(host::Registry::open({std::string(PATCHBAY_BINARY_DIR) + "/lib/patchbay/plugins"}));
        const std::string folder = kGolden + "models/" + s.name;
        runner::RunnerSettings r;
        r.model_config = must(weights::read_model_config(folder));
        const auto source = must(weights::WeightSource::from_folder(folder));
        r.weights.dtype = must(source.native_dtype(r.model_config));
        r.kv_dtype = s.kv;
        r.block_size = kBlock;
        r.num_blocks = kBlocks;
        r.device = "cpu";
        const auto plugin = must(registry.model_for(r.model_config.at("architectures.0")));
        runner_ = must(runner::ModelRunner::create(
            must(registry.device("cpu", {{"isa", s.isa}}, services)), must(registry.model(plugin, {}, services)),
            must(registry.attention(s.attention, {}, services)), source, r, clock_));
    }

    // Logits of each of the tokens, computed at once.
    std::vector<float> logits(const std::vector<int32_t>& tokens) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "");
        kv::BlockTable table;
        return step(cache, table, tokens, 0, static_cast<uint32_t>(tokens.size()));
    }

    // The same of several prompts in one batch, one after the other; cut: the first computes so many tokens in a step
    // before.
    std::vector<float> logits_together(const std::vector<std::vector<int32_t>>& prompts, uint32_t cut) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "");
        std::vector<kv::BlockTable> tables(prompts.size());
        for (size_t i = 0; i < prompts.size(); ++i)
            EXPECT_TRUE(cache.grow(tables[i], static_cast<uint32_t>(prompts[i].size())));
        runner::Batch batch;
        batch.clear();
        batch.add({std::span(prompts[0]).first(cut), 0, cut, tables[0].blocks}, kBlock);
        batch.finish();
        const auto first = must(runner_->forward(batch));
        std::vector<float> out(first.begin(), first.end());
        batch.clear();
        for (size_t i = 0; i < prompts.size(); ++i) {
            const uint32_t done = i == 0 ? cut : 0;
            const auto rest = std::span(prompts[i]).subspan(done);
            batch.add({rest, done, static_cast<uint32_t>(rest.size()), tables[i].blocks}, kBlock);
        }
        batch.finish();
        const auto second = must(runner_->forward(batch));
        out.insert(out.end(), second.begin(), second.end());
        return out;
    }

    // The prompt at once, then a token a step, as an engine goes on.
    std::vector<int32_t> greedy(const std::vector<int32_t>& prompt, size_t count) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "");
        kv::BlockTable table;
        std::vector<int32_t> next = prompt, out;
        uint32_t computed = 0;
        while (out.size() < count) {
            const auto row = step(cache, table, next, computed, 1);
            computed += static_cast<uint32_t>(next.size());
            next = {static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin())};
            out.push_back(next[0]);
        }
        return out;
    }

  private:
    static constexpr uint32_t kBlocks = 32, kBlock = 16;

    // Computes the tokens after `computed` others; logits of the last `rows`.
    std::vector<float> step(kv::KvCache& cache, kv::BlockTable& table, const std::vector<int32_t>& tokens,
                            uint32_t computed, uint32_t rows) {
        EXPECT_TRUE(cache.grow(table, computed + static_cast<uint32_t>(tokens.size())));
        runner::Batch batch;
        batch.clear();
        batch.add({tokens, computed, rows, table.blocks}, kBlock);
        batch.finish();
        const auto out = must(runner_->forward(batch));
        return {out.begin(), out.end()};
    }

    ThreadPool pool_;
    VirtualClock clock_;
    std::unique_ptr<runner::ModelRunner> runner_;
};

class ModelGolden : public ::testing::TestWithParam<Setting> {};

TEST_P(ModelGolden, AgreesWithTransformers) {
    const Setting& s = GetParam();
    const double tolerance = s.computes_in_f32() ? 1e-4 : 2e-2;
    std::ifstream in(kGolden + s.name + ".json");
    const json facts = json::parse(in);
    const auto file = must(weights::Checkpoint::open(kGolden + "logits/" + s.name));
    Golden golden(s);
    for (size_t i = 0; i < facts["prompts"].size(); ++i) {
        const auto ids = facts["prompts"][i]["ids"].get<std::vector<int32_t>>();
        const auto expected_view = must(file->tensor("prompt" + std::to_string(i) + ".logits"));
        std::vector<float> expected(expected_view.bytes / sizeof(float));
        std::memcpy(expected.data(), expected_view.data, expected_view.bytes);
        const auto got = golden.logits(ids);
        ASSERT_EQ(got.size(), expected.size());
        const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
        double worst = 0;
        for (size_t k = 0; k < got.size(); ++k) {
            worst = std::max<double>(worst, std::isnan(got[k]) ? 1e9 : std::abs(got[k] - expected[k]));
        }
        EXPECT_LE(worst, tolerance * (*high - *low)) << "prompt " << i;
        if (s.computes_in_f32()) {
            EXPECT_EQ(golden.greedy(ids, 32), facts["prompts"][i]["greedy_ids"].get<std::vector<int32_t>>())
                << "prompt " << i;
        }
    }
}

constexpr const char* kModels[] = {
    "llama_mha",  "llama_gqa_tied", "llama3_rope",   "llama_linear_rope", "llama_yarn", "llama_head_dim", "llama_bias",
    "llama_bf16", "llama_sharded",  "mistral",       "mistral_window",    "qwen2",      "qwen2_window",   "qwen3",
    "gpt2",       "gpt2_scaled",    "opt",           "opt_post_norm",     "phi3",       "phi3_longrope",  "gemma",
    "gemma2",     "gemma3",         "gemma3_vision", "mixtral",           "qwen3_moe",  "qwen3_moe_mixed"};

class ModelBatch : public ::testing::TestWithParam<const char*> {};

TEST_P(ModelBatch, GivesAPromptTheSameBitsAloneAndAmongOthersInTwoParts) {
    std::ifstream in(kGolden + GetParam() + ".json");
    const json facts = json::parse(in);
    std::vector<std::vector<int32_t>> prompts;
    for (size_t i = facts["prompts"].size(); i-- > 0;)
        prompts.push_back(facts["prompts"][i]["ids"].get<std::vector<int32_t>>());
    Golden golden({GetParam(), "paged", "auto", PB_F32});
    std::vector<float> alone;
    for (const auto& p : prompts) {
        const auto rows = golden.logits(p);
        alone.insert(alone.end(), rows.begin(), rows.end());
    }
    const auto together = golden.logits_together(prompts, 23);
    ASSERT_EQ(together.size(), alone.size());
    EXPECT_EQ(std::memcmp(together.data(), alone.data(), alone.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, ModelBatch, ::testing::ValuesIn(kModels),
                         [](const auto& test) { return std::string(test.param); });

std::vector<Setting> settings() {
    std::vector<Setting> out;
    for (const char* name : kModels)
        for (const char* attention : {"paged", "reference"}) out.push_back({name, attention, "auto", PB_F32});
    for (const char* name : {"llama_gqa_tied", "gpt2", "gemma2", "mixtral"}) // whose ops are not each other's
        for (const char* isa : {"plain", "avx2"}) out.push_back({name, "paged", isa, PB_F32});
    out.push_back({"llama_bf16", "paged", "plain", PB_F32});
    for (const char* attention : {"paged", "reference"}) out.push_back({"llama_bf16", attention, "auto", PB_BF16});
    return out;
}

INSTANTIATE_TEST_SUITE_P(Models, ModelGolden, ::testing::ValuesIn(settings()), [](const auto& test) {
    return test.param.name + "_" + test.param.attention + "_" + test.param.isa +
           (test.param.kv == PB_BF16 ? "_bf16kv" : "");
});

}  // namespace
}  // namespace patchbay
