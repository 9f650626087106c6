// What the metadata of GGUF files says of a model: keys with values, positions, windows, and what is refused.
#include <gmock/gmock.h>

#include <span>

#include "unit/weights/gguf_fixture.hpp"
#include "unit/weights/safetensors_fixture.hpp"
#include "weights/checkpoint.hpp"
#include "weights/gguf_keys.hpp"

namespace patchbay::weights::gguf_config_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class GgufConfigs : public ModelFolder {
  protected:
    std::string config_error(const GgufBytes& bytes) const {
        write("m.gguf", bytes.with(std::string(2048, '\0')));
        const auto config = read_model_config(folder / "m.gguf");
        return config ? "(was read)" : config.error();
    }
};

TEST_F(GgufConfigs, say_which_key_has_which_value_and_what_was_expected) {
    EXPECT_EQ(config_error(tiny_llama()), "(was read)");
    const std::string at = (folder / "m.gguf").string() + ": ";
    EXPECT_EQ(config_error(GgufBytes().key("general.architecture", "mamba")),
              at + "general.architecture is 'mamba', of GGUF files these are supported: llama, qwen2, "
                   "qwen2moe, qwen3, qwen3moe, gpt2, gptneox, falcon, gemma, gemma2, gemma3, phi2, phi3, stablelm, "
                   "starcoder2, command-r, cohere2, olmo2, granite, smollm3, gpt-oss");
    EXPECT_EQ(config_error(GgufBytes().key("general.architecture", "llama")),
              at + "no matrix 'token_embd.weight' (is it a part of a model?)");
    EXPECT_EQ(config_error(GgufBytes().key("general.architecture", "qwen2").tensor("token_embd.weight", {32, 8}, 0, 0)),
              at + "qwen2.embedding_length is not there, expected a size");
    EXPECT_EQ(config_error(tiny_llama().key("llama.rope.dimension_count", 4u)),
              at + "llama.rope.dimension_count is 4, expected 8, the length of keys");
    EXPECT_EQ(config_error(tiny_llama().key("llama.expert_count", 8u)),
              at + "llama.expert_used_count is not there, expected a size");
    EXPECT_EQ(config_error(tiny_llama().key("llama.expert_count", 0u)), "(was read)");
    const auto mixture = [&] { return tiny_llama().key("llama.expert_count", 8u).key("llama.expert_used_count", 2u); };
    EXPECT_EQ(config_error(mixture()), "(was read)");
    EXPECT_EQ(config_error(mixture().key("llama.expert_gating_func", 2u)),
              at + "llama.expert_gating_func is 2, expected 1, softmax");
    EXPECT_THAT(config_error(mixture().tensor("blk.0.attn_q.bias", {32}, 0, 0)), HasSubstr("has no biases"));
    EXPECT_EQ(config_error(tiny_llama().key("llama.rope.scaling.type", "longrope")),
              at + "llama.rope.scaling.type is 'longrope', expected none, linear or yarn");
    EXPECT_EQ(config_error(tiny_llama().key("llama.rope.freq_base", "high")),
              at + "llama.rope.freq_base is 'high', expected a number");
    EXPECT_THAT(config_error(tiny_llama().tensor("rope_freqs.weight", {5}, 0, 0)),
                HasSubstr("tensor 'rope_freqs.weight' is not 4 f32 numbers"));
    EXPECT_EQ(read_model_config(folder / "none.gguf").error(),
              "cannot open " + (folder / "none.gguf").string() + ": No such file or directory");
}

TEST_F(GgufConfigs, whose_tokens_see_later_ones_are_refused) {
    const auto causal = [](char value) {
        return tiny_llama().key("llama.attention.causal", GgufType::kBool, std::string(1, value));
    };
    EXPECT_EQ(config_error(causal(1)), "(was read)");
    const std::string key = (folder / "m.gguf").string() + ": llama.attention.causal is ";
    EXPECT_EQ(config_error(causal(0)), key + "false, expected true: attention to later tokens is not supported");
    EXPECT_EQ(read_model_config(folder / "m.gguf").failure().code, StatusCode::kUnsupported);
    EXPECT_EQ(config_error(tiny_llama().key("llama.attention.causal", "no")), key + "'no', expected true or false");
}

TEST_F(GgufConfigs, of_other_families_name_what_is_wrong) {
    const auto family = [](const std::string& name) {
        GgufBytes out;
        out.key("general.architecture", name).key(name + ".context_length", 64u).key(name + ".embedding_length", 32u);
        out.key(name + ".block_count", 1u).key(name + ".feed_forward_length", 32u);
        out.key(name + ".attention.head_count", 4u).key(name + ".attention.layer_norm_epsilon", 1e-5f);
        return out.tensor("token_embd.weight", {32, 8}, 0, 0);
    };
    EXPECT_EQ(config_error(family("gptneox")), "(was read)");
    EXPECT_THAT(config_error(family("gptneox").key("gptneox.use_parallel_residual", "yes")),
                HasSubstr("gptneox.use_parallel_residual is 'yes', expected true or false"));
    EXPECT_THAT(config_error(family("phi2").key("phi2.rope.dimension_count", 9u)),
                HasSubstr("phi2.rope.dimension_count is 9, expected an even number to 8"));
    EXPECT_THAT(config_error(family("falcon")), HasSubstr("falcon.attention.head_count_kv is not there"));
    EXPECT_THAT(config_error(family("command-r").key("command-r.logit_scale", 0.5f).tensor("blk.0.attn_q_norm.weight",
                                                                                        {8, 4}, 0, 0)),
                HasSubstr("Command R+"));
    EXPECT_THAT(config_error(family("starcoder2").key("starcoder2.attention.key_length", 16u)),
                HasSubstr("starcoder2.attention.key_length is 16, expected 8"));
    EXPECT_THAT(config_error(family("granite").key("granite.attention.layer_norm_rms_epsilon", 1e-5f)),
                HasSubstr("granite.embedding_scale is not there"));
    EXPECT_THAT(config_error(family("olmo2")
                                 .key("olmo2.attention.layer_norm_rms_epsilon", 1e-5f)
                                 .key("olmo2.attention.sliding_window", 4096u)),
                HasSubstr("olmo2.attention.sliding_window is 4096, expected 0: windows of this architecture are not"));
}

TEST_F(GgufConfigs, of_older_qwen2moe_files_have_the_length_of_all_experts_of_a_token) {
    const auto moe = [](uint32_t used) {
        GgufBytes out;
        out.key("general.architecture", "qwen2moe").key("qwen2moe.context_length", 64u);
        out.key("qwen2moe.embedding_length", 32u).key("qwen2moe.block_count", 1u);
        out.key("qwen2moe.feed_forward_length", 96u).key("qwen2moe.attention.head_count", 4u);
        out.key("qwen2moe.attention.layer_norm_rms_epsilon", 1e-5f).key("qwen2moe.expert_count", 8u);
        return out.key("qwen2moe.expert_used_count", used).tensor("token_embd.weight", {32, 8}, 0, 0);
    };
    const auto sizes = [&](const GgufBytes& bytes) {
        EXPECT_EQ(config_error(bytes), "(was read)");
        const auto config = *read_model_config(folder / "m.gguf");
        return config.at("moe_intermediate_size") + " " + config.at("shared_expert_intermediate_size");
    };
    EXPECT_EQ(sizes(moe(4)), "24 96");
    EXPECT_EQ(sizes(moe(4).key("qwen2moe.expert_feed_forward_length", 16u)), "16 96");
    EXPECT_EQ(sizes(moe(4).key("qwen2moe.expert_shared_feed_forward_length", 48u)), "24 48");
    EXPECT_THAT(config_error(moe(0)), HasSubstr("qwen2moe.expert_used_count is 0, expected a number above 0"));
}

TEST_F(GgufConfigs, scale_positions_as_they_say) {
    write("m.gguf", tiny_llama()
                        .key("llama.rope.scaling.type", "yarn")
                        .key("llama.rope.scaling.factor", 4.0f)
                        .key("llama.rope.scaling.original_context_length", 16u)
                        .with(std::string(1024, '\0')));
    const auto config = *read_model_config(folder / "m.gguf");
    EXPECT_EQ(config.at("rope_scaling.rope_type"), "yarn");
    EXPECT_EQ(config.at("rope_scaling.factor"), "4");
    EXPECT_EQ(config.at("rope_scaling.original_max_position_embeddings"), "16");
    EXPECT_EQ(config.at("num_key_value_heads"), "4");  // those of q where the file has none
    EXPECT_EQ(config.at("rope_theta"), "10000");
    write("m.gguf", tiny_llama()
                        .key("llama.rope.scaling.type", "yarn")
                        .key("llama.rope.scaling.factor", 4.0f)
                        .key("llama.rope.scaling.yarn_beta_fast", 16.0f)
                        .key("llama.rope.scaling.yarn_beta_slow", 2.0f)
                        .key("llama.rope.scaling.yarn_attn_factor", 0.5f)
                        .with(std::string(1024, '\0')));
    const auto full = *read_model_config(folder / "m.gguf");
    EXPECT_EQ(full.at("rope_scaling.beta_fast"), "16");
    EXPECT_EQ(full.at("rope_scaling.beta_slow"), "2");
    EXPECT_EQ(full.at("rope_scaling.attention_factor"), "0.5");
    EXPECT_THAT(config_error(tiny_llama()
                                 .key("llama.rope.scaling.type", "linear")
                                 .tensor("rope_freqs.weight", {4}, 0, 0)),
                HasSubstr("type is 'linear', expected none, since rope_freqs.weight scales positions"));
}

TEST_F(GgufConfigs, of_impossible_sizes_are_refused_before_anything_is_made_of_them) {
    GgufBytes moe;
    moe.key("general.architecture", "qwen2moe").key("qwen2moe.block_count", 2147483647u);
    EXPECT_THAT(config_error(moe.tensor("token_embd.weight", {32, 8}, 0, 0)),
                HasSubstr("qwen2moe.block_count is 2147483647, expected at most 1024"));
    EXPECT_THAT(config_error(tiny_llama().key("llama.attention.key_length", 1u << 25)),
                HasSubstr("llama.attention.key_length is 33554432, expected at most 1024"));
}

TEST_F(GgufConfigs, of_gemma_say_what_its_layers_see_and_scale_queries_by) {
    const auto gemma = [](const std::string& generation, uint32_t layers) {
        const std::string own = "gemma" + generation + ".";
        GgufBytes out;
        out.key("general.architecture", "gemma" + generation).key(own + "context_length", 64u);
        out.key(own + "embedding_length", 36u).key(own + "block_count", layers).key(own + "feed_forward_length", 32u);
        out.key(own + "attention.head_count", 4u).key(own + "attention.layer_norm_rms_epsilon", 1e-5f);
        return out.key(own + "attention.key_length", 8u).tensor("token_embd.weight", {36, 8}, 0, 0);
    };
    const auto config = [&](const GgufBytes& bytes) {
        write("m.gguf", bytes.with(std::string(2048, '\0')));
        return *read_model_config(folder / "m.gguf");
    };
    EXPECT_EQ(config(gemma("", 18)).at("architectures.0"), "GemmaForCausalLM");
    EXPECT_FALSE(config(gemma("", 18)).contains("query_pre_attn_scalar"));
    EXPECT_EQ(config(gemma("2", 42)).at("query_pre_attn_scalar"), "8");
    EXPECT_EQ(config(gemma("2", 46)).at("query_pre_attn_scalar"), "9");  // 27B
    EXPECT_EQ(config(gemma("3", 46)).at("query_pre_attn_scalar"), "8");
    EXPECT_EQ(config(gemma("3", 62)).at("query_pre_attn_scalar"), "9");
    EXPECT_EQ(config(gemma("3", 2)).at("sliding_window_pattern"), "1");  // no window: every layer sees all
    EXPECT_FALSE(config(gemma("2", 2)).contains("sliding_window_pattern"));
    const char* const pattern = "attention.sliding_window_pattern";
    const auto windowed = [&] { return gemma("3", 2).key("gemma3.attention.sliding_window", 8u); };
    EXPECT_EQ(config(windowed().key(std::string("gemma3.") + pattern, 4u)).at("sliding_window_pattern"), "4");
    const auto layers = config(windowed().array(std::string("gemma3.") + pattern, GgufType::kBool, 2, {"\0\1", 2}));
    EXPECT_EQ(layers.at("layer_types.0"), "full_attention");
    EXPECT_EQ(layers.at("layer_types.1"), "sliding_attention");
    EXPECT_THAT(config_error(windowed().array(std::string("gemma3.") + pattern, GgufType::kBool, 1, "\1")),
                HasSubstr("is an array of 1 bool, expected a number, or a truth for each of the 2 layers"));
    EXPECT_THAT(config_error(gemma("2", 2).key(std::string("gemma2.") + pattern, 3u)), HasSubstr("is 3, expected 2"));
    write("m.gguf", gemma("", 1).tensor("blk.0.ffn_norm.weight", {36}, 0, 0).with(std::string(2048, '\0')));
    EXPECT_THAT((*Checkpoint::open(folder / "m.gguf"))->names(),
                ElementsAre("model.embed_tokens.weight", "model.layers.0.post_attention_layernorm.weight"));
}

TEST(GgufPositions, of_phi3_are_a_part_of_every_size_of_head) {
    uint32_t turning = 0;
    Gguf file{"m.gguf", {}, {}};
    file.header.metadata["phi3.rope.dimension_count"] = {GgufType::kU32, {}, std::as_bytes(std::span(&turning, 1))};
    for (uint32_t head = 2; head <= 256; ++head)
        for (turning = 2; turning <= head; turning += 2) {
            GgufKeys keys{file, "phi3", {}};
            ASSERT_TRUE(read_gguf_positions(keys, head)) << turning << " of " << head;
            const double part = std::stod(keys.out.at("partial_rotary_factor"));
            ASSERT_EQ(static_cast<uint32_t>(head * part), turning) << head;  // as the model counts
            ASSERT_LE(part, 1);
        }
}

TEST_F(GgufConfigs, of_phi3_turn_a_part_of_a_head) {
    const auto phi3 = [](uint32_t turning, uint32_t head) {
        GgufBytes out;
        out.key("general.architecture", "phi3").key("phi3.context_length", 64u).key("phi3.block_count", 1u);
        out.key("phi3.embedding_length", 2 * head).key("phi3.feed_forward_length", 32u);
        out.key("phi3.attention.head_count", 2u).key("phi3.attention.layer_norm_rms_epsilon", 1e-5f);
        return out.key("phi3.rope.dimension_count", turning).tensor("token_embd.weight", {32, 8}, 0, 0);
    };
    write("m.gguf", phi3(6, 14).with(std::string(1024, '\0')));
    EXPECT_EQ(read_model_config(folder / "m.gguf")->at("partial_rotary_factor"), text_of(6.0 / 14));
    GgufBytes whole;  // heads of no size: models refuse them
    whole.key("general.architecture", "phi3").key("phi3.context_length", 64u).key("phi3.block_count", 1u);
    whole.key("phi3.embedding_length", 2u).key("phi3.feed_forward_length", 32u).key("phi3.attention.head_count", 4u);
    whole.key("phi3.attention.layer_norm_rms_epsilon", 1e-5f).tensor("token_embd.weight", {32, 8}, 0, 0);
    EXPECT_EQ(config_error(whole), "(was read)");
    EXPECT_EQ(read_model_config(folder / "m.gguf")->at("partial_rotary_factor"), "1");
    EXPECT_THAT(config_error(phi3(10, 8)), HasSubstr("phi3.rope.dimension_count is 10, expected an even number to 8"));
    EXPECT_THAT(config_error(phi3(5, 8)), HasSubstr("is 5, expected an even number"));
    const auto scaled = phi3(4, 8).tensor("rope_factors_short.weight", {2}, 0, 0);
    EXPECT_THAT(config_error(scaled), HasSubstr("phi3.rope.scaling.original_context_length is not there"));
    EXPECT_THAT(config_error(phi3(8, 8).tensor("rope_factors_short.weight", {2}, 0, 0)),
                HasSubstr("tensor 'rope_factors_short.weight' is not 4 f32 numbers"));
}

}  // namespace
}  // namespace patchbay::weights::gguf_config_test
