// What the model plugins make of config.json's keys: both forms of positions, contradictions, keys that are refused and
// keys that are warned about. tests/golden/config_keys_test.cpp holds their results to transformers.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <sstream>

#include <gmock/gmock.h>

#include "unit/policies/loaded_model.hpp"

namespace patchbay::policies::config_keys_test {
namespace {

using ::testing::HasSubstr;

class CapturedLog {
  public:
    CapturedLog() : before_(spdlog::default_logger()) {
        spdlog::set_default_logger(
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
    }
    ~CapturedLog() { spdlog::set_default_logger(before_); }
    std::string text() const { return text_.str(); }

  private:
    std::ostringstream text_;
    std::shared_ptr<spdlog::logger> before_;
};

struct Read {
    std::string error, log;
    std::vector<float> frequencies; // of its last rotary positions
};

Read read(const std::string& plugin, const std::string& architecture, const Config& changes) {
    const CapturedLog log;
    Loaded l = load(plugin, architecture, changes);
    Read out{l.error, log.text(), {}};
    for (uint32_t i = 0; l.error.empty() && i < l.model.table->weight_count(l.model.self()); ++i) {
        pb_weight_spec spec = patchbay::sized<pb_weight_spec>();
        EXPECT_EQ(l.model.table->weight(l.model.self(), i, &spec), PB_OK);
        if (spec.part_count > 0 || spec.tied_to > 0) continue;
        out.frequencies.assign(static_cast<size_t>(spec.cols), 0);
        EXPECT_EQ(l.model.table->fill(l.model.self(), i, out.frequencies.data()), PB_OK);
    }
    return out;
}

Read llama(const Config& changes) { return read("llama", "LlamaForCausalLM", changes); }
Read bamba(Config changes) {
    changes["mamba_n_heads"] = "8";
    return read("bamba", "BambaForCausalLM", changes);
}

// Of the second pair of a head of 16: theta^(−2/16) over the factor.
float second(double theta, double factor = 1) { return static_cast<float>(std::pow(theta, -0.125) / factor); }

TEST(ConfigKeys, PositionsAreReadInBothFormsAndTheNewerOneHolds) {
    EXPECT_FLOAT_EQ(llama({{"rope_theta", "500"}}).frequencies[1], second(500));
    const Read newer = llama({{"rope_parameters.rope_theta", "500"}, {"rope_parameters.rope_type", "default"}});
    EXPECT_FLOAT_EQ(newer.frequencies[1], second(500));
    const Read both = llama({{"rope_theta", "7000"}, {"rope_parameters.rope_theta", "500"}});
    EXPECT_FLOAT_EQ(both.frequencies[1], second(500));
    EXPECT_THAT(both.log, HasSubstr("rope_theta is 7000 and rope_parameters.rope_theta 500: the latter is read"));
    const Read scaled = llama({{"rope_scaling.rope_type", "linear"}, {"rope_scaling.factor", "4"},
                               {"rope_parameters.rope_type", "linear"}, {"rope_parameters.factor", "2"}});
    EXPECT_FLOAT_EQ(scaled.frequencies[1], second(10000, 4));
    EXPECT_THAT(scaled.log, HasSubstr("rope_scaling and rope_parameters are both there: rope_scaling is read"));
}

// transformers 4 alone takes null, and reads less of the objects than 5.
TEST(ConfigKeys, WithoutANumberOfPositionsWhatTransformers4DoesNotReadIsRefused) {
    const auto without = [](Config c) {
        c["max_position_embeddings"] = "null";
        return llama(c);
    };
    const Config linear = {{"rope_scaling.rope_type", "linear"}, {"rope_scaling.factor", "4"}};
    Config other = linear, same = linear;
    other["rope_scaling.rope_theta"] = "500";
    same["rope_scaling.rope_theta"] = same["rope_theta"] = "500";
    EXPECT_THAT(without(other).error, HasSubstr("max_position_embeddings is null, expected a number: with null "
                                                "transformers 5 fails, and 4 does not read rope_scaling.rope_theta"));
    EXPECT_FLOAT_EQ(without(same).frequencies[1], second(500, 4));
    EXPECT_FLOAT_EQ(without({{"rope_theta", "500"}}).frequencies[1], second(500));
    EXPECT_THAT(without({{"rope_parameters.rope_theta", "500"}}).error, HasSubstr("4 does not read rope_parameters"));
}

TEST(ConfigKeys, ThePartOfAHeadThatTurnsIsReadInRopeParameters) {
    const char *nested = "rope_parameters.partial_rotary_factor", *above = "partial_rotary_factor";
    const auto phi3 = [](const Config& c) { return read("phi3", "Phi3ForCausalLM", c).frequencies.size(); };
    EXPECT_EQ(phi3({{nested, "0.75"}}), 6u);
    EXPECT_EQ(phi3({{above, "0.75"}}), 6u);
    EXPECT_EQ(bamba({}).frequencies.size(), 4u);
    EXPECT_EQ(bamba({{nested, "0.75"}}).frequencies.size(), 6u);
    const auto neox = [](Config c) {
        c["num_key_value_heads"] = "null";
        return read("gpt_neox", "GPTNeoXForCausalLM", c);
    };
    EXPECT_EQ(neox({{nested, "0.5"}, {above, "0.5"}}).frequencies.size(), 4u);
    EXPECT_EQ(neox({{nested, "0.5"}, {above, "1"}, {"rotary_pct", "0.25"}}).frequencies.size(), 4u);
    EXPECT_EQ(neox({{above, "0.5"}, {"rotary_pct", "0.5"}}).frequencies.size(), 4u);
    EXPECT_THAT(neox({{above, "0.5"}}).error, HasSubstr("partial_rotary_factor is not rotary_pct"));
    EXPECT_THAT(llama({{above, "0.5"}}).log, HasSubstr("partial_rotary_factor is not read"));
    EXPECT_THAT(llama({{"rope_scaling.type", "linear"}, {"rope_scaling.factor", "2"}, {above, "0.5"}}).error,
                HasSubstr("this model turns whole heads"));
}

TEST(ConfigKeys, KeysThatTransformersDoesNotFollowAreRefusedOrSaidByName) {
    const auto error = [](const char* key, const char* value) { return llama({{key, value}}).error; };
    EXPECT_THAT(error("sliding_window", "8"), HasSubstr("sliding_window '8' is not supported (supported: none)"));
    EXPECT_EQ(error("sliding_window", "null"), "");
    EXPECT_THAT(error("is_causal", "false"), HasSubstr("is_causal 'false' is not supported (supported: true)"));
    EXPECT_THAT(error("model_type", "qwen2"), HasSubstr("model_type 'qwen2' is not supported (supported: llama)"));
    EXPECT_EQ(error("rope_theta", "[]"), "rope_theta is an empty list, expected one value");
    EXPECT_EQ(error("rope_scaling", "x"), "rope_scaling is 'x', expected a map");
    EXPECT_THAT(read("gemma", "Gemma3ForCausalLM", {{"attn_logit_softcapping", "5"}}).log,
                HasSubstr("attn_logit_softcapping is not read"));
    EXPECT_THAT(bamba({{"time_step_limit.0", "1"}, {"time_step_limit.1", "0.5"}}).error,
                HasSubstr("time_step_limit is not two numbers"));
}

TEST(ConfigKeys, MistralHonoursTheKindsOfItsLayers) {
    Config kinds = {{"sliding_window", "32"}};
    for (const char* layer : {"0", "1", "2", "3", "4", "5"})
        kinds[std::string("layer_types.") + layer] = *layer == '2' ? "sliding_attention" : "full_attention";
    Loaded l = load("llama", "MistralForCausalLM", kinds);
    ASSERT_EQ(l.error, "");
    EXPECT_EQ(l.kv(1).sliding_window, 0u);
    EXPECT_EQ(l.kv(2).sliding_window, 32u);
    kinds.erase("layer_types.5");
    EXPECT_EQ(load("llama", "MistralForCausalLM", kinds).error, "layer_types names 5 layers, expected 6");
}

TEST(ConfigKeys, TheNumberOfExpertsHasTwoNames) {
    const auto experts = [](const Config& config) {
        Config all = config;
        all["num_experts_per_tok"] = "2";
        return read("qwen3_moe", "Qwen3MoeForCausalLM", all);
    };
    Loaded l = load("qwen3_moe", "Qwen3MoeForCausalLM", {{"num_local_experts", "4"}, {"num_experts_per_tok", "2"}});
    ASSERT_EQ(l.error, "");
    EXPECT_EQ(l.weight("model.layers.0.mlp.gate.weight").parts[0].rows, 4);
    EXPECT_THAT(experts({{"num_experts", "6"}, {"num_local_experts", "4"}}).error,
                HasSubstr("num_experts is 6 and num_local_experts 4, two names of one number"));
}

TEST(ConfigKeys, TheTextOfAModelThatAlsoSeesIsTiedAsTheWholeSaysWhereItIsSilent) {
    Config text = {{"architectures.0", "Gemma3ForConditionalGeneration"}};
    for (const char* size : {"hidden_size", "intermediate_size"}) text[std::string("text_config.") + size] = "64";
    text["text_config.num_hidden_layers"] = "1";
    const auto tied = [&](const Config& keys) {
        Config all = text;
        all.insert(keys.begin(), keys.end());
        Loaded l = load_exactly("gemma", all);
        EXPECT_EQ(l.error, "");
        bool out = true;
        for (uint32_t i = 0; i < l.model.table->weight_count(l.model.self()); ++i) {
            pb_weight_spec spec = patchbay::sized<pb_weight_spec>();
            EXPECT_EQ(l.model.table->weight(l.model.self(), i, &spec), PB_OK);
            if (spec.parts[0].name == std::string("language_model.lm_head.weight")) out = false;
        }
        return out;
    };
    const char *whole = "tie_word_embeddings", *inner = "text_config.tie_word_embeddings";
    EXPECT_TRUE(tied({}));
    EXPECT_FALSE(tied({{whole, "false"}}));
    EXPECT_FALSE(tied({{whole, "true"}, {inner, "false"}}));
    EXPECT_TRUE(tied({{whole, "false"}, {inner, "true"}}));
}

TEST(ConfigKeys, CohereReachesModelMaxLengthWherePositionsAreNotScaled) {
    const auto positions = [](const Config& changes) {
        return load("cohere", "CohereForCausalLM", changes).facts.max_position;
    };
    EXPECT_EQ(positions({}), 256u);
    EXPECT_EQ(positions({{"model_max_length", "4096"}}), 4096u);
    EXPECT_EQ(positions({{"model_max_length", "64"}}), 256u);
    EXPECT_EQ(positions({{"model_max_length", "4096"}, {"rope_scaling.rope_type", "linear"},
                         {"rope_scaling.factor", "2"}}), 512u);
}

TEST(ConfigKeys, Cohere2IgnoresKeysThatChangeNoNumber) {
    const auto cohere2 = [](const Config& keys) { return read("cohere", "Cohere2ForCausalLM", keys); };
    EXPECT_EQ(cohere2({{"use_parallel_embedding", "true"}, {"layer_switch", "4"}}).log, "");
    const Read other = cohere2({{"use_parallel_embedding", "true"}, {"layer_switch", "3"}});
    EXPECT_EQ(other.error, "");
    EXPECT_THAT(other.log, HasSubstr("layer_switch is not read (sliding_window_pattern says which layers slide)"));
}

TEST(ConfigKeys, UnknownOnesAreNamedInOneWarning) {
    const Read l = llama({{"embedding_multiplier", "2"}, {"zeta.inner", "1"}, {"initializer_range", "0.5"}});
    EXPECT_EQ(l.error, "");
    EXPECT_THAT(l.log, HasSubstr("not known to this model, and not read: 'embedding_multiplier', 'zeta'"));
    EXPECT_THAT(l.log, ::testing::Not(HasSubstr("initializer_range")));
    EXPECT_EQ(llama({}).log, "");
}

}  // namespace
}  // namespace patchbay::policies::config_keys_test
