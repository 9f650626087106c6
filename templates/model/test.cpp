// @name@ - what it reads of a config.json; built and run by CMake.
#include "patchbay/testing.hpp"

using namespace patchbay::testing;

namespace {

const Plugin kPlugin(PATCHBAY_TEST_PLUGIN);

const Settings kConfig = {{"architectures.0", "@Name@ForCausalLM"}, {"hidden_size", "64"},
                          {"intermediate_size", "128"}, {"num_hidden_layers", "2"}, {"num_attention_heads", "4"},
                          {"num_key_value_heads", "2"}, {"vocab_size", "100"}, {"max_position_embeddings", "512"}};

void tests() {
    Model model(kPlugin);
    const pb_model_facts facts = model.load_config(kConfig);
    expect(facts.layer_count == 2 && facts.vocab_size == 100, "it reports what config.json says");
    expect(model.kv_spec(1).kv_heads == 2 && model.kv_spec(1).head_dim == 16, "its KV is of 2 heads of 16 elements");
    const std::vector<std::string> names = model.tensor_names();
    for (const char* name : {"model.embed_tokens.weight", "model.layers.1.self_attn.v_proj.weight", "lm_head.weight"})
        expect(std::find(names.begin(), names.end(), name) != names.end(), std::string("it reads ") + name);

    const Settings kRefused = {{"hidden_act", "tanh"}, {"attention_bias", "true"}, {"mlp_bias", "true"},
                               {"sliding_window", "256"}};
    for (const auto& [key, value] : kRefused) { // what it does not compute
        Settings other = kConfig;
        other[key] = value;
        std::string refusal;
        try {
            Model(kPlugin).load_config(other);
        } catch (const patchbay::Error& e) {
            refusal = e.what();
        }
        expect(refusal.find(value) != std::string::npos, "the refusal of " + key + " names the value");
    }
    for (const CheckResult& check : run_checks(PATCHBAY_TEST_PLUGIN)) // those of its kind, in a child process
        expect(!check.failed(), check.check + ": " + check.reason);
}

}  // namespace

int main() { return run(tests); }
