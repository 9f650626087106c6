// medusa - Medusa's heads: each a few residual blocks and a vocabulary of its own over the hidden state that the newest
// token was sampled from; the first predicts the token after it, the second the one after that.
#include <algorithm>

#include "patchbay/sdk/config_keys.hpp"
#include "patchbay/sdk/weight_list.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

class Medusa : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"MedusaModel", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kMedusaTables}};
    static constexpr const char* kNeeds[] = {"layer_norm", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kMedusaTables);
        hidden_ = of_target(config, "hidden_size", 1 << 16);
        const uint32_t vocab = of_target(config, "vocab_size", 1 << 24);
        config.integer("num_hidden_layers", 1, 1024, 1); // the target's, where it is there at all
        const uint32_t heads = config.integer("medusa_num_heads", 1, 32, 5);
        const uint32_t blocks = config.integer("medusa_num_layers", 1, 16, 1);
        zeros_ = weights.computed(std::vector<float>(hidden_, 0.0f));
        ones_ = weights.computed(std::vector<float>(hidden_, 1.0f));
        for (uint32_t i = 0; i < heads; ++i) {
            Head& head = heads_.emplace_back();
            const std::string name = std::to_string(i) + ".";
            for (uint32_t k = 0; k < blocks; ++k)
                head.blocks.push_back(weights.linear(
                    PB_SHARD_NONE, hidden_, {{name + std::to_string(k) + ".linear", int64_t{hidden_}, true}}));
            head.words = weights.linear(PB_SHARD_NONE, hidden_, {{name + std::to_string(blocks), int64_t{vocab}}});
        }
        const uint32_t positions = config.integer("max_position_embeddings", 1, 1 << 26, 1 << 26);
        return {sizeof(pb_model_facts), vocab, hidden_, 0, positions, 0, 0, 0, 0};
    }
    uint32_t max_draft_depth() const { return static_cast<uint32_t>(heads_.size()); }

    pb_kv_spec kv_spec(uint32_t) const { throw patchbay::Error(PB_INVALID, "a head without layers keeps no KV"); }

    void forward(const Forward& f) const {
        const int64_t rows = f.raw.logit_rows.shape[0];
        if (rows == 0) return;
        if (f.raw.draft_step >= heads_.size())
            throw patchbay::Error(PB_INVALID,
                                  "no head predicts the token " + std::to_string(f.raw.draft_step) + " further");
        const Head& head = heads_[f.raw.draft_step];
        const pb_tensor all = f.temp({f.tokens(), hidden_}), x = f.temp({rows, hidden_}), y = f.temp({rows, hidden_}),
                        gate_one = f.temp({rows, 2 * int64_t{hidden_}}); // silu(gate) · 1
        f.features(all);
        f.gather_rows(x, all, f.raw.logit_rows);
        f.layer_norm(patchbay::columns(gate_one, hidden_, hidden_), x, zeros_, ones_, 1e-6f);
        for (const uint32_t block : head.blocks) {
            f.linear(patchbay::columns(gate_one, 0, hidden_), x, block);
            f.silu_mul(y, gate_one);
            f.add(x, y);
        }
        f.linear(f.raw.logits, x, head.words);
    }

  private:
    struct Head { // indices of weights
        std::vector<uint32_t> blocks;
        uint32_t words = 0;
    };

    // Of its own config.json, else of the target's: published ones do not say.
    static uint32_t of_target(const patchbay::ModelConfig& config, const std::string& key, uint32_t max_value) {
        return config.integer(config.find(key) ? key : "target." + key, 1, max_value);
    }

    uint32_t hidden_ = 0, zeros_ = 0, ones_ = 0;
    std::vector<Head> heads_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Medusa>(
    {.name = "medusa", .version = "1.0.0", .summary = "Medusa's heads, which draft from one hidden state"}))
