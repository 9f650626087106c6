#include <cmath>
#include <numbers>

#include "unit/policies/plugins_fixture.hpp"

namespace patchbay::policies::llama_test {
namespace {

using Config = std::map<std::string, std::string>;

const Config kGood = {{"hidden_size", "64"},
                      {"intermediate_size", "96"},
                      {"num_hidden_layers", "2"},
                      {"num_attention_heads", "4"},
                      {"num_key_value_heads", "2"},
                      {"vocab_size", "128"},
                      {"max_position_embeddings", "256"}};

struct Loaded {
    host::Model model;
    pb_model_facts facts = patchbay::sized<pb_model_facts>();
    std::string error; // empty: loaded
};

Loaded load(Config changes, uint32_t ranks = 1, uint32_t max_length = 0) {
    Config config = kGood;
    for (auto& [key, value] : changes) config[key] = value;
    std::vector<pb_setting> items;
    for (const auto& [key, value] : config) items.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
    const pb_model_config wire{sizeof wire, static_cast<uint32_t>(items.size()), items.data(), ranks, 0,
                               max_length, 0};
    Loaded l{must(registry().model("llama", {}, services())), sized<pb_model_facts>(), ""};
    const auto done =
        l.model.component->check(l.model.table->load_config(l.model.self(), &wire, &l.facts), "load_config");
    if (!done) l.error = done.error().substr(done.error().find("load_config: ") + 13);
    return l;
}

TEST(Llama, RefusalsNameTheKey) {
    EXPECT_EQ(load({}).error, "");
    EXPECT_EQ(load({{"hidden_size", "0"}}).error, "hidden_size is 0, expected 1 to 65536");
    EXPECT_EQ(load({{"num_hidden_layers", "many"}}).error, "num_hidden_layers is 'many', expected a whole number");
    EXPECT_EQ(load({{"num_key_value_heads", "3"}}).error,
              "num_attention_heads is not a multiple of num_key_value_heads");
    EXPECT_EQ(load({{"hidden_size", "66"}}).error, "hidden_size is not a multiple of num_attention_heads");
    EXPECT_EQ(load({{"hidden_act", "gelu"}}).error, "hidden_act 'gelu' is not supported (supported: silu)");
    EXPECT_EQ(load({{"rope_scaling.rope_type", "ntk"}}).error,
              "rope_type 'ntk' is not supported (supported: default, linear, llama3, yarn, longrope, dynamic)");
    EXPECT_EQ(load({{"rope_scaling.rope_type", "dynamic"}}).error, "config.json has no 'rope_scaling.factor'");
    EXPECT_EQ(load({{"rope_scaling.rope_type", "yarn"}}).error, "config.json has no 'rope_scaling.factor'");
    EXPECT_EQ(load({{"rope_scaling.type", "linear"}}).error, "config.json has no 'rope_scaling.factor'");
    EXPECT_EQ(load({{"head_dim", "15"}}).error, "head_dim 15 is odd");
    EXPECT_EQ(load({{"rms_norm_eps", "nan"}}).error, "rms_norm_eps is 'nan', expected a number");
    EXPECT_EQ(load({}, 4).error,
              "num_key_value_heads 2 does not divide among 4 ranks (tensor_parallel_size may be 1, 2)");
}

// Indices of weights: the embedding, the last norm, the head, rope's frequencies, then the layers from their norm on.
constexpr uint32_t kHead = 2, kRope = 3, kQkv = 5;

TEST(Llama, DeclaresFusedWeightsAndTheirShards) {
    Loaded l = load({{"attention_bias", "true"}});
    const auto spec = [&](uint32_t i) {
        pb_weight_spec s = patchbay::sized<pb_weight_spec>();
        EXPECT_EQ(l.model.table->weight(l.model.self(), i, &s), PB_OK);
        return s;
    };
    EXPECT_EQ(l.model.table->weight_count(l.model.self()), 2u + 2 * 6 + 2);
    const pb_weight_spec qkv = spec(kQkv);
    EXPECT_EQ(qkv.part_count, 3u);
    EXPECT_STREQ(qkv.parts[1].name, "model.layers.0.self_attn.k_proj.weight");
    EXPECT_STREQ(qkv.parts[1].bias, "model.layers.0.self_attn.k_proj.bias");
    EXPECT_EQ(qkv.parts[0].rows, 64);
    EXPECT_EQ(qkv.parts[2].rows, 32);
    EXPECT_EQ(qkv.parts[2].shard_unit, 16);
    EXPECT_EQ(qkv.shard, PB_SHARD_ROWS);
    EXPECT_EQ(spec(kQkv + 1).shard, PB_SHARD_COLS);
    EXPECT_EQ(spec(kHead).tied_to, 0u);
    EXPECT_STREQ(spec(kHead).parts[0].name, "lm_head.weight");
    Loaded tied = load({{"tie_word_embeddings", "true"}});
    pb_weight_spec head = patchbay::sized<pb_weight_spec>();
    EXPECT_EQ(tied.model.table->weight(tied.model.self(), kHead, &head), PB_OK);
    EXPECT_EQ(head.tied_to, 1u);
}

TEST(Llama, ASlidingWindowReachesTheKvSpec) {
    Loaded l = load({{"architectures.0", "MistralForCausalLM"}, {"sliding_window", "128"}});
    pb_kv_spec s = patchbay::sized<pb_kv_spec>();
    EXPECT_EQ(l.model.table->kv_spec(l.model.self(), 1, &s), PB_OK);
    EXPECT_EQ(s.kind, PB_KV_SLIDING);
    EXPECT_EQ(s.sliding_window, 128u);
    EXPECT_FLOAT_EQ(s.scale, 0.25f);
    l = load({{"architectures.0", "MistralForCausalLM"}, {"sliding_window", "null"}});
    EXPECT_EQ(l.model.table->kv_spec(l.model.self(), 1, &s), PB_OK);
    EXPECT_EQ(s.kind, PB_KV_FULL);
}

TEST(Llama, RopeFrequenciesFollowTheFormula) {
    Loaded l = load({{"rope_theta", "10000.0"}});
    std::vector<float> f(8);
    EXPECT_EQ(l.model.table->fill(l.model.self(), kRope, f.data()), PB_OK);
    for (size_t i = 0; i < 8; ++i)
        EXPECT_FLOAT_EQ(f[i], static_cast<float>(std::pow(10000.0, -2.0 * static_cast<double>(i) / 16)));
    l = load({{"rope_scaling.rope_type", "llama3"},
              {"rope_scaling.factor", "8.0"},
              {"rope_scaling.low_freq_factor", "1.0"},
              {"rope_scaling.high_freq_factor", "4.0"},
              {"rope_scaling.original_max_position_embeddings", "128"}});
    std::vector<float> g(8);
    EXPECT_EQ(l.model.table->fill(l.model.self(), kRope, g.data()), PB_OK);
    for (size_t i = 0; i < 8; ++i) {
        const double wavelength = 2 * std::numbers::pi / f[i];
        if (wavelength < 32) EXPECT_FLOAT_EQ(g[i], f[i]) << i;        // high frequencies stay
        else if (wavelength > 128) EXPECT_FLOAT_EQ(g[i], f[i] / 8) << i; // low ones are stretched
        else EXPECT_TRUE(g[i] < f[i] && g[i] > f[i] / 8) << i;
    }
}

TEST(Llama, YarnKeepsFastPairsAndStretchesSlowOnes) {
    Loaded l = load({{"head_dim", "32"}});
    std::vector<float> plain(16), yarn(16);
    EXPECT_EQ(l.model.table->fill(l.model.self(), kRope, plain.data()), PB_OK);
    l = load({{"head_dim", "32"}, {"rope_scaling.rope_type", "yarn"}, {"rope_scaling.factor", "4.0"},
              {"rope_scaling.original_max_position_embeddings", "256"}, {"rope_scaling.beta_fast", "8"}});
    EXPECT_EQ(l.model.table->fill(l.model.self(), kRope, yarn.data()), PB_OK);
    // 8 turns in 256 positions: pair 2.83, down to 2; one turn: pair 6.44, up to 7.
    for (size_t i = 0; i <= 2; ++i) EXPECT_FLOAT_EQ(yarn[i], plain[i]) << i;
    for (size_t i = 3; i < 7; ++i) {
        const float stretched = (static_cast<float>(i) - 2) / 5;
        EXPECT_FLOAT_EQ(yarn[i], plain[i] * (1 - stretched) + plain[i] / 4 * stretched) << i;
    }
    for (size_t i = 7; i < 16; ++i) EXPECT_FLOAT_EQ(yarn[i], plain[i] / 4) << i;
}

TEST(Llama, YarnAndLinearReachTheirFactorTimesTheRangeThatTheyScale) {
    const auto positions = [](const std::string& type, Config more) {
        more["rope_scaling.rope_type"] = type;
        const Loaded l = load(more);
        EXPECT_EQ(l.error, "");
        return l.facts.max_position;
    };
    EXPECT_EQ(positions("yarn", {{"rope_scaling.factor", "4.0"}}), 1024u) << "max_position_embeddings is the range";
    EXPECT_EQ(positions("yarn", {{"rope_scaling.factor", "4.0"}, {"original_max_position_embeddings", "128"}}), 512u);
    EXPECT_EQ(positions("yarn", {{"rope_scaling.factor", "4.0"}, {"original_max_position_embeddings", "64"}}), 256u);
    EXPECT_EQ(positions("yarn", {{"rope_scaling.factor", "2.0"}, {"original_max_position_embeddings", "64"}}), 256u)
        << "no less than max_position_embeddings";
    EXPECT_EQ(positions("yarn", {{"rope_scaling.factor", "null"}, {"original_max_position_embeddings", "64"}}), 256u)
        << "the factor comes of both";
    EXPECT_EQ(positions("linear", {{"rope_scaling.factor", "3.0"}}), 768u);
    EXPECT_EQ(positions("llama3", {{"rope_scaling.factor", "8.0"}, {"rope_scaling.low_freq_factor", "1.0"},
                                   {"rope_scaling.high_freq_factor", "4.0"}}), 256u);
}

TEST(Llama, LongropeIsServedWithinTheOriginalRange) {
    Config config = {{"rope_scaling.rope_type", "longrope"}, {"original_max_position_embeddings", "64"}};
    EXPECT_EQ(load(config).error, "config.json has no 'rope_scaling.short_factor'");
    for (int i = 0; i < 8; ++i) config["rope_scaling.short_factor." + std::to_string(i)] = std::to_string(1.0 + i);
    Loaded l = load(config);
    EXPECT_EQ(l.error, "");
    EXPECT_EQ(l.facts.max_position, 64u);
    std::vector<float> f(8);
    EXPECT_EQ(l.model.table->fill(l.model.self(), kRope, f.data()), PB_OK);
    for (size_t i = 0; i < 8; ++i)
        EXPECT_FLOAT_EQ(f[i], static_cast<float>(std::pow(10000.0, -2.0 * static_cast<double>(i) / 16) /
                                                 (1.0 + static_cast<double>(i))));
    for (int i = 8; i < 512; ++i) config["rope_scaling.short_factor." + std::to_string(i)] = "1.0";
    EXPECT_EQ(load(config).error, "short_factor or long_factor has 512 values, expected 8");
    config["rope_scaling.short_factor.512"] = "1.0";
    EXPECT_EQ(load(config).error, "rope_scaling.short_factor has more than 512 values");
    for (int i = 7; i <= 512; ++i) config.erase("rope_scaling.short_factor." + std::to_string(i));
    EXPECT_EQ(load(config).error, "short_factor or long_factor has 7 values, expected 8");
}

std::vector<float> frequencies(const Loaded& l) {
    std::vector<float> out(8);
    EXPECT_EQ(l.model.table->fill(l.model.self(), kRope, out.data()), PB_OK);
    return out;
}

TEST(Llama, LongropeHasTheLongFactorsWhereSequencesMayGrowPastTheOriginalRange) {
    Config config = {{"rope_scaling.rope_type", "longrope"}, {"original_max_position_embeddings", "64"}};
    for (int i = 0; i < 8; ++i) {
        config["rope_scaling.short_factor." + std::to_string(i)] = "1.0";
        config["rope_scaling.long_factor." + std::to_string(i)] = "2.0";
    }
    const Loaded within = load(config, 1, 64), past = load(config, 1, 65);
    EXPECT_EQ(within.facts.max_position, 64u);
    EXPECT_EQ(past.facts.max_position, 256u);
    const std::vector<float> near = frequencies(within), far = frequencies(past);
    for (size_t i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(far[i], near[i] / 2) << i;
    config.erase("rope_scaling.long_factor.0");
    EXPECT_EQ(load(config, 1, 65).error, "config.json has no 'rope_scaling.long_factor'");
}

TEST(Llama, DynamicFrequenciesAreThoseOfTheLongestSequence) {
    const Config config = {{"rope_scaling.rope_type", "dynamic"}, {"rope_scaling.factor", "4.0"}};
    const std::vector<float> plain = frequencies(load({}));
    const Loaded within = load(config), past = load(config, 1, 512);
    EXPECT_EQ(within.facts.max_position, 256u);
    EXPECT_EQ(past.facts.max_position, 1024u);
    EXPECT_EQ(frequencies(within), plain);
    const double base = 10000 * std::pow(4.0 * 512 / 256 - 3, 16.0 / 14);
    const std::vector<float> far = frequencies(past);
    for (size_t i = 0; i < 8; ++i)
        EXPECT_FLOAT_EQ(far[i], static_cast<float>(std::pow(base, -2.0 * static_cast<double>(i) / 16))) << i;
}

TEST(Llama, LlamaThreesPositionsBeginAtMaxPositionEmbeddingsWhereTheOriginalIsMissing) {
    Config config = {{"rope_scaling.rope_type", "llama3"}, {"rope_scaling.factor", "8.0"},
                     {"rope_scaling.low_freq_factor", "1.0"}, {"rope_scaling.high_freq_factor", "4.0"}};
    const std::vector<float> missing = frequencies(load(config));
    config["rope_scaling.original_max_position_embeddings"] = "256"; // max_position_embeddings
    EXPECT_EQ(missing, frequencies(load(config)));
    config["rope_scaling.original_max_position_embeddings"] = "64";
    EXPECT_NE(missing, frequencies(load(config)));
}

}  // namespace
}  // namespace patchbay::policies::llama_test
