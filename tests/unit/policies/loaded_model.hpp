// A model plugin that has read a config.json, written down as its flattened keys.
#pragma once
#include "unit/policies/plugins_fixture.hpp"

namespace patchbay::policies {

using Config = std::map<std::string, std::string>;

struct Loaded {
    host::Model model;
    pb_model_facts facts = patchbay::sized<pb_model_facts>();
    std::string error; // empty: loaded

    pb_kv_spec kv(uint32_t layer) {
        pb_kv_spec out = patchbay::sized<pb_kv_spec>();
        EXPECT_EQ(model.table->kv_spec(model.self(), layer, &out), PB_OK);
        return out;
    }
    pb_weight_spec weight(const std::string& name) { // whose first part is so called
        for (uint32_t i = 0; i < model.table->weight_count(model.self()); ++i) {
            pb_weight_spec out = patchbay::sized<pb_weight_spec>();
            EXPECT_EQ(model.table->weight(model.self(), i, &out), PB_OK);
            if (out.part_count > 0 && out.parts[0].name == name) return out;
        }
        ADD_FAILURE() << "no weight " << name;
        return {};
    }
};

inline Loaded load_exactly(const std::string& plugin, const Config& config) {
    std::vector<pb_setting> items;
    for (const auto& [key, value] : config) items.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
    const pb_model_config wire{sizeof wire, static_cast<uint32_t>(items.size()), items.data(), 1, 0};
    Loaded l{must(registry().model(plugin, {}, services())), sized<pb_model_facts>(), ""};
    const auto done =
        l.model.component->check(l.model.table->load_config(l.model.self(), &wire, &l.facts), "load_config");
    if (!done) l.error = done.error().substr(done.error().find("load_config: ") + 13);
    return l;
}

inline Loaded load(const std::string& plugin, const std::string& architecture, const Config& changes) {
    Config config = {{"hidden_size", "64"},
                     {"num_hidden_layers", "6"},
                     {"num_attention_heads", "4"},
                     {"vocab_size", "128"},
                     {"max_position_embeddings", "256"}};
    if (plugin == "gpt2")
        config = {{"n_embd", "64"}, {"n_layer", "2"}, {"n_head", "4"}, {"n_positions", "256"}, {"vocab_size", "128"}};
    else if (plugin == "opt") config["ffn_dim"] = "96";
    else config.insert({{"intermediate_size", "96"}, {"num_key_value_heads", "2"}});
    config["architectures.0"] = architecture;
    for (const auto& [key, value] : changes) config[key] = value;
    return load_exactly(plugin, config);
}

}  // namespace patchbay::policies
