// Logits and greedy ids of small random models against Hugging Face transformers; see README.md for the tolerances.
#include <gtest/gtest.h>

#include <fstream>

#include "golden_model.hpp"

namespace patchbay::golden::model_golden_test {
namespace {

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
    "bamba",      "opt_projected",  "gpt2_gelu",     "gpt2_silu",         "gemma2_gelu", "llama_dynamic",
    "phi3_longrope_long", "gpt_neox", "gpt_neox_sequential", "falcon", "falcon_alibi", "falcon_grouped",
    "falcon_one_norm", "stablelm", "stablelm_parallel", "phi", "starcoder2", "cohere", "cohere2", "olmo2", "granite",
    "smollm3", "smollm3_windows", "qwen2_moe", "mistral3", "ministral", "gpt_oss"};

// The same models as llama.cpp's converter writes them (make_gguf_goldens.py).
class GgufGolden : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufGolden, AgreesWithTransformers) {
    Setting s{GetParam(), "paged", "auto", PB_F32, weights::WeightForm{PB_F32}};
    s.form = Setting::Form::kGguf;
    expect_agreement(s);
}

INSTANTIATE_TEST_SUITE_P(Models, GgufGolden,
                         ::testing::Values("gpt_neox", "falcon", "falcon_grouped", "falcon_one_norm", "stablelm",
                                           "stablelm_parallel", "phi", "starcoder2", "cohere", "cohere2", "olmo2",
                                           "granite", "smollm3", "qwen2_moe", "gpt_oss_mxfp4"),
                         [](const auto& test) { return std::string(test.param); });

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
                             std::erase(out, std::string_view("falcon_alibi")); // paged_cuda takes no slopes
                             return out;
                         }()),
                         [](const auto& test) { return std::string(test.param); });

std::vector<Setting> settings() {
    std::vector<Setting> out;
    for (const char* name : kModels)
        for (const char* attention : {"paged", "reference"}) out.push_back({name, attention, "auto", PB_F32});
    for (const char* name : {"llama_gqa_tied", "gpt2", "gemma2", "mixtral", "bamba", "gpt2_gelu", "gpt2_silu",
                             "gemma2_gelu", "falcon_alibi", "qwen2_moe", "gpt_oss"}) // whose ops are not each other's
        for (const char* isa : {"plain", "avx2"}) out.push_back({name, "paged", isa, PB_F32});
    out.push_back({"llama_bf16", "paged", "plain", PB_F32});
    for (const char* attention : {"paged", "reference"}) out.push_back({"llama_bf16", attention, "auto", PB_BF16});
    return out;
}

// Linears of AWQ and GPTQ checkpoints, experts in MXFP4: as real numbers they must give what transformers computes; as
// they are, with activations of 8 bits, about that, and of each greedy step the same id where no two are nearly alike.
constexpr const char* kPacked[] = {"llama_awq", "llama_gptq", "llama_gptq_act", "llama_gptq_int8",
                                   "llama_compressed_int4", "llama_compressed_zero", "llama_compressed_int8",
                                   "gpt_oss_mxfp4", "llama_fp8", "llama_compressed_fp8"};
constexpr const char* kFp8[] = {"llama_fp8", "llama_compressed_fp8"}; // of which nothing is rounded, except in tiles

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
        const auto greedy = prompt["greedy_ids"].get<std::vector<int32_t>>();
        const auto got = golden.greedy(ids, greedy.size(), &greedy);
        size_t compared = 0;
        for (size_t t = 0; t < greedy.size(); ++t) {
            if (gaps[t] < 2 * kTolerance) continue;
            EXPECT_EQ(got[t], greedy[t]) << "prompt " << i << ", token " << t;
            compared += 1;
        }
        EXPECT_GT(compared, 3u) << "prompt " << i;
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

INSTANTIATE_TEST_SUITE_P(AsStored, ModelGolden, ::testing::ValuesIn([] {
                             const weights::WeightForm stored{PB_F32, weights::Quantization::kAsStored};
                             std::vector<Setting> out;
                             for (const char* name : kFp8)
                                 for (const char* isa : {"plain", "avx2"})
                                     out.push_back({name, "paged", isa, PB_F32, stored});
                             return out;
                         }()),
                         [](const auto& test) { return test.param.name + "_" + test.param.isa; });

INSTANTIATE_TEST_SUITE_P(Models, ModelGolden, ::testing::ValuesIn(settings()), [](const auto& test) {
    return test.param.name + "_" + test.param.attention + "_" + test.param.isa +
           (test.param.kv == PB_BF16 ? "_bf16kv" : "");
});

}  // namespace
}  // namespace patchbay::golden::model_golden_test
