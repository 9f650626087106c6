// Logits and greedy ids of small random models against Hugging Face transformers; see README.md for the tolerances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/thread_pool.hpp"
#include "host/registry.hpp"
#include "kv/kv_cache.hpp"
#include "runner/model_runner.hpp"
#include "weights/loader.hpp"
#include "paths.hpp"

namespace patchbay {
namespace {

using json = nlohmann::json;
const std::string kGolden = std::string(kSourceDir) + "/tests/golden/";

template <class T>
T must(Result<T> r) {
    if (!r) throw std::runtime_error(r.error());
    return *std::move(r);
}

struct Setting {
    std::string name, attention, isa;
    pb_dtype kv;
    std::optional<weights::WeightForm> weights = std::nullopt; // none: as real as they are
    std::string device = "cpu";
    host::Settings device_settings() const {
        return device == "cpu" ? host::Settings{{"isa", isa}} : host::Settings{{"activation_dtype", "f32"}};
    }

    // All but bf16 weights at the best level, where linears may round activations, and bf16 KV.
    bool computes_in_f32() const { return kv == PB_F32 && (name != "llama_bf16" || isa != "auto"); }
};

host::Registry plugins() {
    return must(host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"}));
}

class Golden {
  public:
    explicit Golden(const Setting& s) : pool_(2) {
        const host::Services services{&pool_.service(), nullptr, nullptr};
        const host::Registry registry = plugins();
        const std::string folder = kGolden + "models/" + s.name;
        runner::RunnerSettings r;
        r.model_config = must(weights::read_model_config(folder));
        const auto source = must(weights::WeightSource::from_folder(folder));
        r.weights = s.weights.value_or(weights::WeightForm{must(source.native_dtype(r.model_config))});
        r.kv_dtypes.most = s.kv;
        r.block_size = kBlock;
        r.num_blocks = kBlocks;
        r.device = s.device;
        const auto plugin = must(registry.model_for(r.model_config.at("architectures.0")));
        runner_ = must(runner::ModelRunner::create(
            must(registry.device(s.device, s.device_settings(), services)), must(registry.model(plugin, {}, services)),
            must(registry.attention(s.attention, {}, services)), source, r, clock_));
    }

    // Logits of each of the tokens, computed at once.
    std::vector<float> logits(const std::vector<int32_t>& tokens) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "", runner_->grouping().groups);
        kv::BlockTable table;
        return step(cache, table, tokens, 0, static_cast<uint32_t>(tokens.size()));
    }

    // The same of several prompts in one batch, one after the other; cut: the first computes so many tokens in a step
    // before.
    std::vector<float> logits_together(const std::vector<std::vector<int32_t>>& prompts, uint32_t cut) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "", runner_->grouping().groups);
        std::vector<kv::BlockTable> tables(prompts.size());
        for (size_t i = 0; i < prompts.size(); ++i)
            EXPECT_TRUE(cache.grow(tables[i], static_cast<uint32_t>(prompts[i].size())));
        runner::Batch batch;
        batch.clear(runner_->batch_form());
        batch.add({std::span(prompts[0]).first(cut), 0, cut, tables[0]});
        batch.finish();
        const auto first = must(runner_->forward(batch));
        std::vector<float> out(first.begin(), first.end());
        batch.clear(runner_->batch_form());
        for (size_t i = 0; i < prompts.size(); ++i) {
            const uint32_t done = i == 0 ? cut : 0;
            const auto rest = std::span(prompts[i]).subspan(done);
            batch.add({rest, done, static_cast<uint32_t>(rest.size()), tables[i]});
        }
        batch.finish();
        const auto second = must(runner_->forward(batch));
        out.insert(out.end(), second.begin(), second.end());
        return out;
    }

    // The prompt at once, then a token a step, as an engine goes on.
    std::vector<int32_t> greedy(const std::vector<int32_t>& prompt, size_t count) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "", runner_->grouping().groups);
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
        cache.pass(table, computed);
        EXPECT_TRUE(cache.grow(table, computed + static_cast<uint32_t>(tokens.size())));
        runner::Batch batch;
        batch.clear(runner_->batch_form());
        batch.add({tokens, computed, rows, table});
        batch.finish();
        const auto out = must(runner_->forward(batch));
        return {out.begin(), out.end()};
    }

    ThreadPool pool_;
    VirtualClock clock_;
    std::unique_ptr<runner::ModelRunner> runner_;
};

std::vector<float> numbers(const weights::TensorView& view) { // f32
    std::vector<float> out(view.bytes / sizeof(float));
    std::memcpy(out.data(), view.data, view.bytes);
    return out;
}

// The largest difference over the range of the expected.
double worst_of(const std::vector<float>& got, const std::vector<float>& expected) {
    if (got.size() != expected.size()) return INFINITY;
    const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
    double worst = 0;
    for (size_t k = 0; k < got.size(); ++k)
        worst = std::max<double>(worst, std::isnan(got[k]) ? INFINITY : std::abs(got[k] - expected[k]));
    return worst / (*high - *low);
}

class ModelGolden : public ::testing::TestWithParam<Setting> {};

void expect_agreement(const Setting& s) {
    const double tolerance = s.computes_in_f32() ? 1e-4 : 2e-2;
    std::ifstream in(kGolden + s.name + ".json");
    const json facts = json::parse(in);
    const auto file = must(weights::Checkpoint::open(kGolden + "logits/" + s.name));
    Golden golden(s);
    for (size_t i = 0; i < facts["prompts"].size(); ++i) {
        const auto ids = facts["prompts"][i]["ids"].get<std::vector<int32_t>>();
        const auto expected = numbers(must(file->tensor("prompt" + std::to_string(i) + ".logits")));
        EXPECT_LE(worst_of(golden.logits(ids), expected), tolerance) << "prompt " << i;
        if (s.computes_in_f32()) {
            EXPECT_EQ(golden.greedy(ids, 32), facts["prompts"][i]["greedy_ids"].get<std::vector<int32_t>>())
                << "prompt " << i;
        }
    }
}

TEST_P(ModelGolden, AgreesWithTransformers) { expect_agreement(GetParam()); }

constexpr const char* kModels[] = {
    "llama_mha",  "llama_gqa_tied", "llama3_rope",   "llama_linear_rope", "llama_yarn", "llama_head_dim", "llama_bias",
    "llama_bf16", "llama_sharded",  "mistral",       "mistral_window",    "qwen2",      "qwen2_window",   "qwen3",
    "gpt2",       "gpt2_scaled",    "opt",           "opt_post_norm",     "phi3",       "phi3_longrope",  "gemma",
    "gemma2",     "gemma3",         "gemma3_vision", "mixtral",           "qwen3_moe",  "qwen3_moe_mixed",
    "bamba"};

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

// scripts/gpu-check runs these on a machine with a GPU.
class CudaGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaGolden, AgreesWithTransformers) {
    const Setting s{GetParam(), "paged_cuda", "auto", PB_F32, std::nullopt, "cuda"};
    ThreadPool pool(1);
    const auto device = plugins().device(s.device, s.device_settings(), {&pool.service(), nullptr, nullptr});
    if (!device) GTEST_SKIP() << device.error();
    expect_agreement(s);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaGolden, ::testing::ValuesIn([] {
                             std::vector<const char*> out(std::begin(kModels), std::end(kModels));
                             std::erase(out, std::string_view("bamba")); // it has no ops for states
                             return out;
                         }()),
                         [](const auto& test) { return std::string(test.param); });

std::vector<Setting> settings() {
    std::vector<Setting> out;
    for (const char* name : kModels)
        for (const char* attention : {"paged", "reference"}) out.push_back({name, attention, "auto", PB_F32});
    for (const char* name : {"llama_gqa_tied", "gpt2", "gemma2", "mixtral", "bamba"}) // whose ops are not each other's
        for (const char* isa : {"plain", "avx2"}) out.push_back({name, "paged", isa, PB_F32});
    out.push_back({"llama_bf16", "paged", "plain", PB_F32});
    for (const char* attention : {"paged", "reference"}) out.push_back({"llama_bf16", attention, "auto", PB_BF16});
    return out;
}

// Linears of AWQ and GPTQ checkpoints: as real numbers they must give what transformers computes; as they are, with
// activations of 8 bits, about that, and its greedy ids until two are nearly alike.
constexpr const char* kPacked[] = {"llama_awq", "llama_gptq", "llama_gptq_act", "llama_gptq_int8"};

class PackedGolden : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(PackedGolden, StaysNearTransformersInItsOwnCodes) {
    const auto& [name, isa] = GetParam();
    std::ifstream in(kGolden + name + ".json");
    const json facts = json::parse(in);
    const auto file = must(weights::Checkpoint::open(kGolden + "logits/" + name));
    Golden golden({name, "paged", isa, PB_F32, weights::WeightForm{PB_F32, weights::Quantization::kAsStored}});
    constexpr double kTolerance = 4e-2; // of the range
    for (size_t i = 0; i < facts["prompts"].size(); ++i) {
        const json& prompt = facts["prompts"][i];
        const auto ids = prompt["ids"].get<std::vector<int32_t>>();
        const auto expected = numbers(must(file->tensor("prompt" + std::to_string(i) + ".logits")));
        EXPECT_LE(worst_of(golden.logits(ids), expected), kTolerance) << "prompt " << i;
        const auto gaps = prompt["gaps"].get<std::vector<double>>();
        const auto far = static_cast<size_t>(
            std::find_if(gaps.begin(), gaps.end(), [](double gap) { return gap < 2 * kTolerance; }) - gaps.begin());
        auto greedy = prompt["greedy_ids"].get<std::vector<int32_t>>();
        greedy.resize(far);
        EXPECT_EQ(golden.greedy(ids, far), greedy) << "prompt " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Models, PackedGolden,
                         ::testing::Combine(::testing::ValuesIn(kPacked), ::testing::Values("auto", "plain")),
                         [](const auto& test) {
                             return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param);
                         });

INSTANTIATE_TEST_SUITE_P(Packed, ModelGolden, ::testing::ValuesIn([] {
                             std::vector<Setting> out;
                             for (const char* name : kPacked)
                                 out.push_back({name, "paged", "auto", PB_F32, weights::WeightForm{PB_F32}});
                             return out;
                         }()),
                         [](const auto& test) { return test.param.name; });

INSTANTIATE_TEST_SUITE_P(Models, ModelGolden, ::testing::ValuesIn(settings()), [](const auto& test) {
    return test.param.name + "_" + test.param.attention + "_" + test.param.isa +
           (test.param.kv == PB_BF16 ? "_bf16kv" : "");
});

}  // namespace
}  // namespace patchbay
