// patchbay/testing/model.hpp - a model that reads a config.json. Its forward pass needs an engine and a device:
// `patchbay plugin test` brings both.
#pragma once
#include <vector>

#include "patchbay/sdk/model.hpp"
#include "patchbay/testing/component.hpp"

namespace patchbay::testing {

class Model : public Subject {
  public:
    explicit Model(const Plugin& plugin, std::string_view name = {}) : Subject(plugin, PB_MODEL, {}, name) {}

    // config: keys of config.json, flattened: {{"hidden_size", "64"}, {"architectures.0", "…"}}. Throws Error for what
    // the model refuses.
    pb_model_facts load_config(const Settings& config) {
        std::vector<pb_setting> items;
        for (const auto& [key, value] : config) items.push_back({str(key), str(value)});
        auto in = sized<pb_model_config>();
        in.count = static_cast<uint32_t>(items.size());
        in.items = items.data();
        in.tensor_parallel_size = 1;
        auto out = sized<pb_model_facts>();
        component.check(table().load_config(component.self(), &in, &out));
        return out;
    }
    // After load_config(): names of the tensors that it reads, in order, biases after their matrices.
    std::vector<std::string> tensor_names() const {
        std::vector<std::string> out;
        for (uint32_t i = 0; i < table().weight_count(component.self()); ++i) {
            auto spec = sized<pb_weight_spec>();
            component.check(table().weight(component.self(), i, &spec));
            for (uint32_t part = 0; part < spec.part_count; ++part) {
                out.emplace_back(spec.parts[part].name);
                if (spec.parts[part].bias[0]) out.emplace_back(spec.parts[part].bias);
            }
        }
        return out;
    }
    pb_kv_spec kv_spec(uint32_t layer) const {
        auto out = sized<pb_kv_spec>();
        component.check(table().kv_spec(component.self(), layer, &out));
        return out;
    }

  private:
    const pb_model& table() const { return component.table<pb_model>(); }
};

}  // namespace patchbay::testing
