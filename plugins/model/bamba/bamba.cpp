// bamba - Bamba: most layers are selective state-space scans (Mamba-2), which keep a state of fixed size a sequence; a
// few attend. Each is followed by a gated MLP.
#include <limits>
#include <optional>

#include "patchbay/sdk/decoder_blocks.hpp"

#include "keys.hpp"

namespace {

using patchbay::Forward;

// Columns [from, from + count) of a (T, n) tensor.
pb_tensor some_columns(const pb_tensor& t, int64_t from, int64_t count) {
    pb_tensor out = t;
    out.data = t.data ? static_cast<char*>(t.data) + from * patchbay::dtype_bytes(t.dtype) : nullptr;
    out.shape[1] = count;
    return out;
}

struct ScanShape {
    int64_t inner = 0, heads = 0, head_dim = 0, groups = 0, state = 0, taps = 0;

    int64_t group_columns() const { return groups * state; }              // of b, and of c
    int64_t conv_columns() const { return inner + 2 * group_columns(); }  // x, b, c
    int64_t columns() const { return inner + conv_columns() + heads; }    // gate; x, b, c; steps
    // What a sequence keeps: the rows of x, b, c that the convolution sees, then the scan's state.
    uint64_t scan_offset() const { return static_cast<uint64_t>((taps - 1) * conv_columns()) * sizeof(float); }
    uint64_t bytes() const { return scan_offset() + static_cast<uint64_t>(inner * state) * sizeof(float); }
};

class Bamba : public patchbay::ListedWeights {
  public:
    static constexpr const char* kArchitectures[] = {"BambaForCausalLM", nullptr};
    static constexpr patchbay::ModelKeys kKeys[] = {{kArchitectures[0], patchbay::config_keys::kBambaTables}};
    static constexpr const char* kNeeds[] = {"causal_conv_silu", "ssm_scan", nullptr};

    pb_model_facts load_config(const patchbay::ModelConfig& config) {
        patchbay::check_keys(config, patchbay::config_keys::kBambaTables);
        s_ = patchbay::decoder_shape(config, {.positions = kPositions});
        if (s_.ranks > 1)
            throw patchbay::Error(PB_UNSUPPORTED, "its states are not dealt out to ranks: tensor_parallel_size 1 only");
        eps_ = patchbay::norm_epsilon(config, "rms_norm_eps", 1e-5f);
        config.one_of("hidden_act", {"silu"});
        read_scan(config);
        read_layers(config);
        ends_ = patchbay::DecoderEnds::list(weights, config, s_, {.norm = "final_layernorm"});
        const patchbay::RopeSettings rope = patchbay::rope_settings(
            config, {.positions_if_missing = kPositions,
                     .turned = patchbay::RopeKeys::Turned::kPart,
                     .part_if_missing = 0.5});
        rotary_ = patchbay::Rotary::list(weights, s_, rope, patchbay::turned_elements(rope, s_.head_dim));
        const bool bias = config.get<bool>("attention_bias", false), mlp_bias = config.get<bool>("mlp_bias", false);
        for (Layer& l : layers_) {
            const std::string name = "model.layers." + std::to_string(&l - layers_.data()) + ".";
            l.norm = weights.vector(s_.hidden, name + "input_layernorm.weight");
            if (l.attends)
                l.attention = patchbay::AttentionWeights::list(weights, s_, name + "self_attn.", {bias, bias});
            else
                l.scan = list_scan(config, name + "mamba.");
            l.mlp_norm = weights.vector(s_.hidden, name + "pre_ff_layernorm.weight");
            l.mlp = patchbay::MlpWeights::list(weights, s_, name + "feed_forward.", mlp_bias);
        }
        return s_.facts();
    }

    pb_kv_spec kv_spec(uint32_t layer) const {
        if (layers_[layer].attends) return s_.kv(0, s_.usual_scale());
        pb_kv_spec out = patchbay::sized<pb_kv_spec>();
        out.kind = PB_KV_RECURRENT;
        out.state_bytes = scan_.bytes();
        return out;
    }

    void forward(const Forward& f) const {
        const patchbay::Stream stream(f, s_);
        const patchbay::RotaryAttention attention(f, s_);
        const patchbay::GatedMlp mlp(f, s_);
        const ScanTensors scan(f, scan_);
        f.embedding(stream.x, ends_.embedding);
        for (uint32_t i = 0; i < s_.layers; ++i) {
            const Layer& l = layers_[i];
            stream.enter_layer(f, i, l.norm, eps_);
            if (l.attends) attention.run(f, i, l.attention, rotary_, stream, eps_);
            else run_scan(f, i, l.scan, scan, stream);
            stream.enter_block(f, l.mlp_norm, eps_);
            mlp.run(f, l.mlp, stream);
        }
        ends_.logits(f, s_, stream, eps_);
    }

  private:
    struct ScanWeights { // indices
        uint32_t in = 0, taps = 0, a_log = 0, dt_bias = 0, skip = 0, norm = 0, out = 0; // norm: of the first group
        std::optional<uint32_t> taps_bias;
    };

    struct Layer { // norms: indices of weights
        bool attends = false;
        uint32_t norm = 0, mlp_norm = 0;
        patchbay::AttentionWeights attention;
        ScanWeights scan;
        patchbay::MlpWeights mlp;
    };

    struct ScanTensors { // for all layers of a step
        ScanTensors(const Forward& f, const ScanShape& s)
            : projected(f.temp({f.tokens(), s.columns()})), convolved(f.temp({f.tokens(), s.conv_columns()})),
              gated(f.temp({f.tokens(), s.inner})),
              to_convolve(some_columns(projected, s.inner, s.conv_columns())),
              steps(some_columns(projected, s.inner + s.conv_columns(), s.heads)),
              x(patchbay::columns(convolved, 0, s.inner, s.head_dim)),
              b(patchbay::columns(convolved, s.inner, s.group_columns(), s.state)),
              c(patchbay::columns(convolved, s.inner + s.group_columns(), s.group_columns(), s.state)),
              scanned(patchbay::columns(projected, s.inner, s.inner, s.head_dim)),
              gate_and_scanned(some_columns(projected, 0, 2 * s.inner)) {}

        pb_tensor projected, convolved, gated;
        // Of `projected`: gate, x, b, c, steps. What is scanned takes the place of x, so that it is beside its gate.
        pb_tensor to_convolve, steps;
        pb_tensor x, b, c; // of `convolved`
        pb_tensor scanned, gate_and_scanned;
    };

    void read_scan(const patchbay::ModelConfig& config) {
        scan_.inner = int64_t{config.integer("mamba_expand", 1, 64, 2)} * s_.hidden;
        scan_.heads = config.integer("mamba_n_heads", 1, 1 << 16, 128);
        scan_.groups = config.integer("mamba_n_groups", 1, 1 << 16, 1);
        scan_.state = config.integer("mamba_d_state", 1, 1 << 16, 256);
        scan_.taps = config.integer("mamba_d_conv", 2, 16, 4);
        if (scan_.inner % scan_.heads != 0)
            throw patchbay::Error(PB_INVALID, "mamba_n_heads does not divide mamba_expand · hidden_size");
        scan_.head_dim = scan_.inner / scan_.heads;
        if (config.find("mamba_d_head") != "auto")
            if (const auto given = config.integer("mamba_d_head", 1, 1 << 16, static_cast<uint32_t>(scan_.head_dim));
                given != scan_.head_dim)
                throw patchbay::Error(PB_INVALID, "mamba_d_head is " + std::to_string(given) + ", expected " +
                                                      std::to_string(scan_.head_dim));
        if (scan_.heads % scan_.groups != 0)
            throw patchbay::Error(PB_INVALID, "mamba_n_heads is not a multiple of mamba_n_groups");
        read_step_limits(config);
    }

    // What steps are cut to, as transformers 5 does; 4.57 does not read it.
    void read_step_limits(const patchbay::ModelConfig& config) {
        if (!config.has_section("time_step_limit")) return;
        least_step_ = config.require<float>("time_step_limit.0");
        const char* const endless = "time_step_limit.1.__float__"; // so transformers 5 writes it, for want of a number
        if (config.has_section("time_step_limit.1")) config.one_of(endless, {"Infinity"});
        else max_step_ = config.require<float>("time_step_limit.1");
        if (!(least_step_ >= 0 && least_step_ <= max_step_) || config.find("time_step_limit.2"))
            throw patchbay::Error(PB_INVALID, "time_step_limit is not two numbers, the first of 0 or more and no "
                                              "greater than the second");
    }

    void read_layers(const patchbay::ModelConfig& config) {
        layers_.resize(s_.layers);
        for (const uint32_t i : patchbay::listed_layers(config, "attn_layer_indices", s_.layers))
            layers_[i].attends = true;
    }

    ScanWeights list_scan(const patchbay::ModelConfig& config, const std::string& name) {
        const bool bias = config.get<bool>("mamba_proj_bias", false);
        ScanWeights w;
        w.in = weights.linear(PB_SHARD_NONE, s_.hidden, {{name + "in_proj", scan_.columns(), bias}});
        w.taps = weights.vector(scan_.conv_columns() * scan_.taps, name + "conv1d.weight");
        if (config.get<bool>("mamba_conv_bias", true))
            w.taps_bias = weights.vector(scan_.conv_columns(), name + "conv1d.bias");
        w.a_log = weights.vector(scan_.heads, name + "A_log");
        w.dt_bias = weights.vector(scan_.heads, name + "dt_bias");
        w.skip = weights.vector(scan_.heads, name + "D");
        const int64_t group = scan_.inner / scan_.groups; // each is normed by itself
        w.norm = weights.count();
        for (int64_t g = 0; g < scan_.groups; ++g)
            weights.part_of_vector(group, name + "norm.weight", g * group, scan_.inner);
        w.out = weights.linear(PB_SHARD_NONE, scan_.inner, {{name + "out_proj", s_.hidden, bias}});
        return w;
    }

    // stream.y from stream.h
    void run_scan(const Forward& f, uint32_t layer, const ScanWeights& w, const ScanTensors& t,
                  const patchbay::Stream& stream) const {
        const pb_state state = f.state(layer);
        const pb_scan scan{sizeof(pb_scan),   0, f.weight(w.a_log), f.weight(w.dt_bias), f.weight(w.skip), least_step_,
                           max_step_};
        f.linear(t.projected, stream.h, w.in);
        f.causal_conv_silu(t.convolved, t.to_convolve, w.taps, w.taps_bias, static_cast<uint32_t>(scan_.taps), state,
                           0);
        f.ssm_scan(t.scanned, t.x, t.steps, t.b, t.c, scan, state, scan_.scan_offset());
        f.silu_mul(t.gated, t.gate_and_scanned);
        const int64_t group = scan_.inner / scan_.groups;
        for (int64_t g = 0; g < scan_.groups; ++g) {
            const pb_tensor part = some_columns(t.gated, g * group, group);
            f.rms_norm(part, part, w.norm + static_cast<uint32_t>(g), eps_);
        }
        f.linear(stream.y, t.gated, w.out);
    }

    patchbay::DecoderShape s_;
    ScanShape scan_;
    static constexpr uint32_t kPositions = 262144; // where config.json does not say
    float eps_ = 0, least_step_ = 0, max_step_ = std::numeric_limits<float>::infinity();
    patchbay::DecoderEnds ends_;
    patchbay::Rotary rotary_;
    std::vector<Layer> layers_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::model<Bamba>(
    {.name = "bamba", .version = "1.0.0", .summary = "Bamba: Mamba-2 layers and a few that attend"}))
