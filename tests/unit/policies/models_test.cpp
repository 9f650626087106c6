// What the model plugins refuse, and what they make of a config.json; their numbers are held by tests/golden.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/flat_string.hpp"
#include "unit/policies/loaded_model.hpp"
#include "weights/checkpoint.hpp"
#include "paths.hpp"

namespace patchbay::policies::models_test {
namespace {

TEST(Models, RefuseWhatTheyDoNotDoByKeyAndValue) {
    const auto error = [](const char* plugin, const char* architecture, const Config& changes) {
        return load(plugin, architecture, changes).error;
    };
    const char *qwen2 = "Qwen2ForCausalLM", *gpt2 = "GPT2LMHeadModel", *opt = "OPTForCausalLM",
               *phi3 = "Phi3ForCausalLM", *gemma2 = "Gemma2ForCausalLM", *bamba = "BambaForCausalLM";
    EXPECT_EQ(error("qwen", qwen2, {{"hidden_act", "gelu"}}), "hidden_act 'gelu' is not supported (supported: silu)");
    EXPECT_EQ(error("qwen", qwen2, {{"layer_types.0", "linear_attention"}}),
              "layer_types.0 'linear_attention' is not supported (supported: full_attention, sliding_attention)");
    EXPECT_EQ(error("qwen", qwen2, {{"layer_types.0", "full_attention"}, {"layer_types.1", "sliding_attention"}}),
              "layer 1 slides, but there is no sliding_window");
    EXPECT_EQ(error("gpt2", gpt2, {{"activation_function", "quick_gelu"}}),
              "activation_function 'quick_gelu' is not supported (supported: gelu, gelu_new, gelu_pytorch_tanh, "
              "gelu_fast, relu, silu, swish)");
    EXPECT_EQ(error("gpt2", gpt2, {{"add_cross_attention", "true"}}),
              "add_cross_attention 'true' is not supported (supported: false)");
    EXPECT_EQ(error("gpt2", gpt2, {{"n_head", "5"}}), "n_embd is not a multiple of n_head");
    EXPECT_EQ(error("opt", opt, {{"layer_norm_elementwise_affine", "false"}}),
              "layer_norm_elementwise_affine 'false' is not supported (supported: true)");
    EXPECT_EQ(error("opt", opt, {{"activation_function", "tanh"}}),
              "activation_function 'tanh' is not supported (supported: gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, "
              "relu, silu, swish)");
    EXPECT_EQ(error("phi3", phi3, {{"partial_rotary_factor", "0.2"}}),
              "partial_rotary_factor turns 3 elements of a head, expected an even number");
    EXPECT_EQ(error("phi3", phi3, {{"partial_rotary_factor", "1.5"}}), "partial_rotary_factor is out of range");
    EXPECT_EQ(error("mixtral", "MixtralForCausalLM", {{"num_experts_per_tok", "9"}}),
              "num_experts_per_tok is 9, but there are 8 experts");
    EXPECT_EQ(error("mixtral", "MixtralForCausalLM", {{"num_local_experts", "0"}}),
              "num_local_experts is 0, expected 1 to 4096");
    EXPECT_EQ(error("qwen3_moe", "Qwen3MoeForCausalLM", {{"mlp_only_layers.0", "6"}}),
              "mlp_only_layers.0 is 6, expected 0 to 5");
    Config twice;
    for (int i = 0; i < 7; ++i) twice["mlp_only_layers." + std::to_string(i)] = "0";
    EXPECT_EQ(error("qwen3_moe", "Qwen3MoeForCausalLM", twice),
              "mlp_only_layers has more values than there are layers, 6");
    EXPECT_EQ(error("bamba", bamba, {{"mamba_n_heads", "7"}}),
              "mamba_n_heads does not divide mamba_expand · hidden_size");
    EXPECT_EQ(error("bamba", bamba, {{"mamba_n_heads", "8"}, {"mamba_d_head", "32"}}),
              "mamba_d_head is 32, expected 16");
    EXPECT_EQ(error("bamba", bamba, {{"mamba_n_heads", "8"}, {"mamba_n_groups", "3"}}),
              "mamba_n_heads is not a multiple of mamba_n_groups");
    EXPECT_EQ(error("bamba", bamba, {{"mamba_n_heads", "8"}, {"attn_layer_indices.0", "6"}}),
              "attn_layer_indices.0 is 6, expected 0 to 5");
    EXPECT_EQ(error("gemma", gemma2, {{"hidden_activation", "relu"}}),
              "hidden_activation 'relu' is not supported (supported: gelu_pytorch_tanh, gelu)");
    EXPECT_EQ(error("gemma", gemma2, {{"use_bidirectional_attention", "true"}}),
              "use_bidirectional_attention 'true' is not supported (supported: false)");
    EXPECT_EQ(error("gemma", gemma2, {{"query_pre_attn_scalar", "0"}}),
              "query_pre_attn_scalar is 0.000000, expected more than 0");
}

TEST(Models, OfOtherFamiliesRefuseWhatTheyDoNotDo) {
    const auto error = [](const char* plugin, const char* architecture, const Config& changes) {
        return load(plugin, architecture, changes).error;
    };
    EXPECT_EQ(error("falcon", "FalconForCausalLM", {{"new_decoder_architecture", "true"}, {"parallel_attn", "false"}}),
              "parallel_attn false with new_decoder_architecture is not supported");
    EXPECT_EQ(error("stablelm", "StableLmForCausalLM", {{"qk_layernorm", "true"}}),
              "qk_layernorm 'true' is not supported (supported: false): norms of each head with weights of their own");
    EXPECT_EQ(error("phi", "PhiForCausalLM", {{"tie_word_embeddings", "true"}}),
              "tie_word_embeddings 'true' is not supported (supported: false): the head has a bias");
    EXPECT_EQ(error("cohere", "CohereForCausalLM", {{"use_qk_norm", "true"}}),
              "use_qk_norm 'true' is not supported (supported: false): norms of each head with weights of their own "
              "(Command R+)");
    EXPECT_EQ(error("gpt_neox", "GPTNeoXForCausalLM",
                    {{"num_key_value_heads", "null"}, {"partial_rotary_factor", "0.5"}}),
              "partial_rotary_factor is not rotary_pct");
    EXPECT_EQ(error("granite", "GraniteForCausalLM", {{"logits_scaling", "0"}}),
              "logits_scaling is 0.000000, expected more than 0");
    EXPECT_EQ(error("smollm3", "SmolLM3ForCausalLM", {{"no_rope_layers.0", "1"}}),
              "config.json has no 'no_rope_layers.1'");
    EXPECT_EQ(error("qwen2_moe", "Qwen2MoeForCausalLM", {{"mlp_only_layers.0", "6"}}),
              "mlp_only_layers.0 is 6, expected 0 to 5");
    EXPECT_EQ(error("gpt_oss", "GptOssForCausalLM", {{"swiglu_limit", "0"}}),
              "swiglu_limit is 0.000000, expected more than 0");
    EXPECT_EQ(error("gpt_oss", "GptOssForCausalLM", {}),
              "config.json has neither rope_scaling nor rope_parameters");
}

TEST(Models, GptOssHasSinksInEveryLayerAndAWindowInEverySecond) {
    Loaded l = load("gpt_oss", "GptOssForCausalLM",
                    {{"rope_parameters.rope_type", "default"}, {"num_experts", "5"}});
    ASSERT_EQ(l.error, "");
    for (uint32_t layer = 0; layer < l.facts.layer_count; ++layer) {
        EXPECT_EQ(l.kv(layer).sliding_window, layer % 2 == 0 ? 128u : 0u) << layer;
        pb_weight_spec sinks = patchbay::sized<pb_weight_spec>();
        ASSERT_EQ(l.model.table->weight(l.model.self(), l.kv(layer).sinks - 1, &sinks), PB_OK);
        EXPECT_EQ(sinks.parts[0].name, "model.layers." + std::to_string(layer) + ".self_attn.sinks");
        EXPECT_EQ(sinks.cols, l.kv(layer).heads);
    }
}

TEST(Models, FalconAddsByDistanceWhereItSaysSo) {
    EXPECT_EQ(load("falcon", "FalconForCausalLM", {}).kv(0).slopes, nullptr);
    Loaded l = load("falcon", "FalconForCausalLM", {{"alibi", "true"}, {"multi_query", "false"}});
    ASSERT_EQ(l.error, "");
    ASSERT_NE(l.kv(0).slopes, nullptr);
    EXPECT_FLOAT_EQ(l.kv(0).slopes[0], 0.25f * l.kv(0).scale); // of four heads: 2^-2, 2^-4, …
    EXPECT_FLOAT_EQ(l.kv(0).slopes[3], 0x1p-8f * l.kv(0).scale);
}

TEST(Models, QwenSlidesFromTheLayerThatIsGiven) {
    Loaded l = load("qwen", "Qwen2ForCausalLM",
                    {{"use_sliding_window", "true"}, {"sliding_window", "32"}, {"max_window_layers", "4"}});
    ASSERT_EQ(l.error, "");
    EXPECT_EQ(l.kv(3).sliding_window, 0u);
    EXPECT_EQ(l.kv(4).sliding_window, 32u);
    l = load("qwen", "Qwen2ForCausalLM",
             {{"use_sliding_window", "false"}, {"sliding_window", "32"}, {"max_window_layers", "4"}});
    EXPECT_EQ(l.kv(4).sliding_window, 0u);
}

TEST(Models, MixturesOfQwenTwoSlideInEveryOtherOfTheFirstLayers) {
    Loaded l = load("qwen2_moe", "Qwen2MoeForCausalLM",
                    {{"use_sliding_window", "true"}, {"sliding_window", "32"}, {"max_window_layers", "4"}});
    ASSERT_EQ(l.error, "");
    for (uint32_t layer = 0; layer < 6; ++layer)
        EXPECT_EQ(l.kv(layer).sliding_window, layer == 0 || layer == 2 ? 32u : 0u) << layer;
}

TEST(Models, SmolLmSlidesWhereItDoesNotTurn) {
    Config config = {{"use_sliding_window", "true"}, {"sliding_window", "32"}};
    Loaded fourth = load("smollm3", "SmolLM3ForCausalLM", config);
    ASSERT_EQ(fourth.error, "");
    for (uint32_t layer = 0; layer < 6; ++layer) {
        EXPECT_EQ(fourth.kv(layer).sliding_window, layer == 3 ? 32u : 0u) << layer;
        config["no_rope_layers." + std::to_string(layer)] = layer % 2 == 0 ? "1" : "0";
    }
    Loaded loaded = load("smollm3", "SmolLM3ForCausalLM", config);
    for (uint32_t layer = 0; layer < 6; ++layer)
        EXPECT_EQ(loaded.kv(layer).sliding_window, layer % 2 == 1 ? 32u : 0u) << layer;
    config["use_sliding_window"] = "false";
    EXPECT_EQ(load("smollm3", "SmolLM3ForCausalLM", config).kv(1).sliding_window, 0u);
    for (uint32_t layer = 0; layer < 6; ++layer)
        config["layer_types." + std::to_string(layer)] = layer == 1 ? "sliding_attention" : "full_attention";
    EXPECT_EQ(load("smollm3", "SmolLM3ForCausalLM", config).error, "layer 1 slides, but there is no sliding_window");
}

TEST(Models, QwenTwoHasABiasOnQueriesAndQwenThreeOnlyIfItSaysSo) {
    const std::string q = "model.layers.0.self_attn.q_proj.weight";
    EXPECT_STRNE(load("qwen", "Qwen2ForCausalLM", {}).weight(q).parts[0].bias, "");
    EXPECT_STREQ(load("qwen", "Qwen3ForCausalLM", {{"head_dim", "16"}}).weight(q).parts[0].bias, "");
    EXPECT_STRNE(
        load("qwen", "Qwen3ForCausalLM", {{"head_dim", "16"}, {"attention_bias", "true"}}).weight(q).parts[0].bias, "");
    EXPECT_EQ(load("qwen", "Qwen3ForCausalLM", {}).kv(0).head_dim, 128u);
}

TEST(Models, AMistralThatDoesNotSayHasAWindow) {
    EXPECT_EQ(load("llama", "MistralForCausalLM", {}).kv(0).sliding_window, 4096u);
    EXPECT_EQ(load("llama", "MistralForCausalLM", {{"sliding_window", "null"}}).kv(0).kind, PB_KV_FULL);
    EXPECT_EQ(load("llama", "LlamaForCausalLM", {}).kv(0).kind, PB_KV_FULL);
}

TEST(Models, GemmaAlternatesLocalAndGlobalLayers) {
    const Config scaled = {{"rope_scaling.rope_type", "linear"}, {"rope_scaling.factor", "8.0"}};
    EXPECT_EQ(load("gemma", "Gemma3ForCausalLM", scaled).facts.max_position, 256u) << "of the scaled positions";
    Loaded two = load("gemma", "Gemma2ForCausalLM", {{"sliding_window", "32"}});
    Loaded three = load("gemma", "Gemma3ForCausalLM", {{"sliding_window", "32"}});
    Loaded one = load("gemma", "GemmaForCausalLM", {});
    EXPECT_NE(load("gemma", "GemmaForCausalLM", {{"sliding_window", "32"}}).error, "");
    for (uint32_t layer = 0; layer < 6; ++layer) {
        EXPECT_EQ(two.kv(layer).sliding_window, layer % 2 == 0 ? 32u : 0u) << layer;
        EXPECT_EQ(three.kv(layer).sliding_window, layer < 5 ? 32u : 0u) << layer;
        EXPECT_EQ(one.kv(layer).sliding_window, 0u) << layer;
    }
    Config kinds = {{"sliding_window", "32"}};
    for (char layer = '0'; layer < '6'; ++layer)
        kinds[std::string("layer_types.") + layer] = layer == '5' ? "sliding_attention" : "full_attention";
    Loaded loaded = load("gemma", "Gemma3ForCausalLM", kinds);
    ASSERT_EQ(loaded.error, "");
    EXPECT_EQ(loaded.kv(0).sliding_window, 0u);
    EXPECT_EQ(loaded.kv(5).sliding_window, 32u);
}

TEST(Models, GemmaCapsUnlessItSaysNull) {
    Loaded l = load("gemma", "Gemma2ForCausalLM", {{"query_pre_attn_scalar", "16"}});
    EXPECT_EQ(l.kv(0).soft_cap, 50);
    EXPECT_EQ(l.kv(0).scale, 0.25f);
    EXPECT_EQ(load("gemma", "Gemma2ForCausalLM", {{"attn_logit_softcapping", "null"}}).kv(0).soft_cap, 0);
    EXPECT_EQ(load("gemma", "Gemma3ForCausalLM", {}).kv(0).soft_cap, 0);
    EXPECT_EQ(l.weight("model.norm.weight").offset, 1);
}

TEST(Models, PhiTakesItsThreePartsOfOneMatrix) {
    Loaded l = load("phi3", "Phi3ForCausalLM", {});
    const pb_weight_spec qkv = l.weight("model.layers.0.self_attn.qkv_proj.weight");
    ASSERT_EQ(qkv.part_count, 3u);
    EXPECT_EQ(qkv.parts[1].first_row, 64);
    EXPECT_EQ(qkv.parts[2].first_row, 96);
    EXPECT_EQ(qkv.parts[2].rows, 32);
    for (uint32_t p = 0; p < 3; ++p) EXPECT_EQ(qkv.parts[p].stored_rows, 128);
}

TEST(Models, QwenMixturesHaveDenseLayersWhereTheConfigSaysSo) {
    const auto count = [](const Config& changes) {
        Loaded l = load("qwen3_moe", "Qwen3MoeForCausalLM", changes);
        EXPECT_EQ(l.error, "");
        return l.model.table->weight_count(l.model.self());
    };
    const Config small = {{"num_experts", "4"}, {"num_experts_per_tok", "2"}};
    Config some = small, second = small;
    some["mlp_only_layers.0"] = "1";
    second["decoder_sparse_step"] = "2";
    EXPECT_EQ(count(small), 2u + 6 * (6 + 1 + 2 * 4) + 2); // router, and two matrices an expert
    EXPECT_EQ(count(some), 2u + 5 * (6 + 1 + 2 * 4) + (6 + 2) + 2);
    EXPECT_EQ(count(second), 2u + 3 * (6 + 1 + 2 * 4) + 3 * (6 + 2) + 2);
}

TEST(Models, BambaKeepsAStateWhereItDoesNotAttend) {
    Loaded l = load("bamba", "BambaForCausalLM",
                    {{"mamba_n_heads", "8"}, {"mamba_d_head", "auto"}, {"mamba_d_state", "16"},
                     {"attn_layer_indices.0", "1"}, {"attn_layer_indices.1", "4"}});
    ASSERT_EQ(l.error, "");
    for (uint32_t layer = 0; layer < 6; ++layer) {
        const bool attends = layer == 1 || layer == 4;
        EXPECT_EQ(l.kv(layer).kind, attends ? PB_KV_FULL : PB_KV_RECURRENT) << layer;
        const uint64_t rows = 3 * (128 + 2 * 16), state = 8 * 16 * 16;
        EXPECT_EQ(l.kv(layer).state_bytes, attends ? 0 : 4 * (rows + state)) << layer;
    }
}

// Every key of every golden model's config.json, with values that make no sense: refused with a reason, or a model
// that still describes itself.
TEST(Models, SurviveAnyValueOfAnyKey) {
    namespace fs = std::filesystem;
    size_t tried = 0, refused = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(kSourceDir) / "tests/golden/models")) {
        std::ifstream in(entry.path() / "config.json");
        Config good;
        const nlohmann::json flat = nlohmann::json::parse(in).flatten();
        for (const auto& [pointer, value] : flat.items()) {
            std::string key = pointer.substr(1);
            std::replace(key.begin(), key.end(), '/', '.');
            good[key] = value.is_string() ? value.get<std::string>() : value.dump();
        }
        if (!good.contains("architectures.0")) continue; // a head's: its proposer knows it
        const std::string architecture = good.at("architectures.0"), plugin = must(registry().model_for(architecture));
        ASSERT_EQ(load_exactly(plugin, good).error, "") << entry.path();
        for (const auto& [key, value] : good)
            for (const char* bad :
                 {"-1", "0", "1", "3", "1e99", "nan", "99999999999999999999", "true", "null", "x", ""}) {
                Config config = good;
                config[key] = bad;
                Loaded l = load_exactly(plugin, config);
                tried += 1;
                if (!l.error.empty()) {
                    refused += 1;
                    continue;
                }
                EXPECT_GT(l.facts.layer_count, 0u) << key << " " << bad;
                const uint32_t last = l.model.table->weight_count(l.model.self()) - 1;
                pb_weight_spec spec = patchbay::sized<pb_weight_spec>();
                EXPECT_EQ(l.model.table->weight(l.model.self(), last, &spec), PB_OK) << key << " " << bad;
                const pb_kv_spec kv = l.kv(l.facts.layer_count - 1);
                if (kv.kind == PB_KV_RECURRENT) {
                    EXPECT_GT(kv.state_bytes, 0u) << key << " " << bad;
                    continue;
                }
                EXPECT_TRUE(kv.kv_heads > 0 && kv.heads % kv.kv_heads == 0 && kv.head_dim > 0) << key << " " << bad;
                EXPECT_TRUE(std::isfinite(kv.scale) && kv.scale > 0 && std::isfinite(kv.soft_cap)) << key << " " << bad;
            }
    }
    EXPECT_GT(tried, 5000u);
    EXPECT_GT(refused, 1000u);
}

// A key is read if a word that makes no sense is refused; then so is each value of another type, there and in the place
// of the maps and lists around it.
TEST(Models, RefuseAnotherTypeOfAnyKeyThatTheyRead) {
    namespace fs = std::filesystem;
    size_t read = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(kSourceDir) / "tests/golden/models")) {
        const Config good = must(weights::read_model_config(entry.path()));
        if (!good.contains("architectures.0")) continue; // a head's: its proposer knows it
        const std::string plugin = must(registry().model_for(good.at("architectures.0")));
        ASSERT_EQ(load_exactly(plugin, good).error, "") << entry.path();
        const auto expect_refused = [&](const std::string& key, const std::string& under, const std::string& value) {
            Config config = good;
            std::erase_if(config,
                          [&](const auto& item) { return item.first == key || item.first.starts_with(key + "."); });
            config[key + under] = value;
            EXPECT_NE(load_exactly(plugin, config).error, "") << entry.path() << ": " << key + under << " = " << value;
        };
        for (const auto& [key, value] : good) {
            Config nonsense = good;
            nonsense[key] = "x";
            if (value == "null" || value == "[]" || value == "{}") continue; // are of the type that they stand for
            if (load_exactly(plugin, nonsense).error.empty()) continue;
            read += 1;
            for (const char* empty : {"[]", "{}"}) expect_refused(key, "", empty);
            for (const char* under : {".0", ".a"}) expect_refused(key, under, value);
            if (flat_string(value) != value) expect_refused(key, "", flat_string(value)); // "8" for 8
            for (size_t dot = key.find('.'); dot != key.npos; dot = key.find('.', dot + 1)) {
                const bool list = key[dot + 1] >= '0' && key[dot + 1] <= '9';
                for (const char* other : {"x", "5", "true", list ? "{}" : "[]"})
                    expect_refused(key.substr(0, dot), "", other);
                expect_refused(key.substr(0, dot), list ? ".a" : ".0", value);
            }
        }
    }
    EXPECT_GT(read, 200u);
}

TEST(Models, SayOfAWrongTypeWhatItIsAndWhatIsExpected) {
    const auto error = [](Config changes) {
        return load("llama", "LlamaForCausalLM", changes).error;
    };
    EXPECT_EQ(error({{"rope_theta", "[]"}}), "rope_theta is an empty list, expected one value");
    EXPECT_EQ(error({{"rope_theta.0", "1e4"}}), "rope_theta is a list, expected one value");
    EXPECT_EQ(error({{"rope_theta", "\"1e4\""}}), "rope_theta is '\"1e4\"', expected a number");
    EXPECT_EQ(error({{"rope_theta", "nan"}}), "rope_theta is 'nan', expected a number");
    EXPECT_EQ(error({{"rope_scaling", "x"}}), "rope_scaling is 'x', expected a map");
    EXPECT_EQ(error({{"rope_scaling", "[]"}}), "rope_scaling is an empty list, expected a map");
    EXPECT_EQ(error({{"rope_scaling.0", "1"}}), "rope_scaling is a list, expected a map");
    EXPECT_EQ(error({{"attention_bias", "1"}}), "attention_bias is '1', expected true or false");
    EXPECT_EQ(error({{"vocab_size.a", "16"}}), "vocab_size is a map, expected one value");
    EXPECT_EQ(error({{"hidden_act.0", "silu"}}), "hidden_act is a list, expected one value");
    EXPECT_EQ(error({{"hidden_act", std::string(100'000, 'a')}}).size(), std::string("hidden_act '…' is not supported "
                                                                                    "(supported: silu)").size() + 80);
    EXPECT_EQ(error({{"rope_scaling", "{}"}}), "");
    EXPECT_EQ(error({{"rope_scaling", "null"}}), "");
}

TEST(Models, SayWhichOpsTheyCallThatADeviceMayLack) {
    const auto needs = [](const char* plugin) {
        std::vector<std::string> out;
        const host::Model model = must(registry().model(plugin, {}, services()));
        for (const char* const* n = model.table->needs; n && *n; ++n) out.emplace_back(*n);
        return out;
    };
    EXPECT_EQ(needs("llama"), std::vector<std::string>());
    EXPECT_EQ(needs("opt"),
              (std::vector<std::string>{"layer_norm", "gelu_tanh", "gelu_erf", "relu", "silu", "scale"}));
    EXPECT_EQ(needs("bamba"), (std::vector<std::string>{"causal_conv_silu", "ssm_scan"}));
    EXPECT_EQ(needs("gemma"), (std::vector<std::string>{"gelu_tanh_mul", "gelu_erf_mul", "scale", "soft_cap"}));
}

}  // namespace
}  // namespace patchbay::policies::models_test
