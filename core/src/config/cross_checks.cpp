#include "config/load_parts.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/printable.hpp"

namespace patchbay::config {
namespace {

class CrossChecks {
  public:
    CrossChecks(const EngineConfig& config, const Node& effective, Faults& faults, Faults& warnings)
        : c_(config), effective_(effective), faults_(faults), warnings_(warnings) {}

    void run() {
        model();
        sizes();
        offload();
        graphs();
        speculation();
        ranks();
    }

  private:
    Origin at(std::string_view path) const {
        const Node* node = effective_.at(path);
        return node ? node->origin : Origin{};
    }
    bool given(std::string_view path) const { return at(path).kind != Origin::Kind::kDefault; }
    static std::string n(uint64_t value) { return std::to_string(value); }
    // is_set: to another value than the default, since `config show` gives defaults, too.
    void without_effect(const std::string& section, const std::string& key, bool is_set, const std::string& why) {
        if (is_set) warnings_.add(at(section + "." + key), key + " has no effect " + why);
    }

    void model() {
        const bool dummy = c_.model.load_format == LoadFormat::kDummy;
        if (dummy && c_.model.path.empty() && c_.model.shape.empty())
            faults_.add(
                at("model.load_format"),
                "load_format dummy needs 'shape' (keys of config.json), or 'path' of a folder with config.json");
        if (!dummy && !c_.model.shape.empty())
            faults_.add(at("model.shape"), "'shape' is for load_format: dummy, which is not set");
        if (!dummy && c_.model.path.empty() && c_.model.shape.empty())
            faults_.add(effective_.origin,
                        "no model is named: set model: FOLDER, or model: {load_format: dummy, shape: {…}}");
        const std::optional<uint32_t> group = c_.model.quantization_group_size;
        const Quantization kind = c_.model.quantization;
        const bool whole_rows = group == 0u && kind != Quantization::kInt4;
        if (group && *group != 32 && *group != 128 && !whole_rows)
            faults_.add(at("model.quantization_group_size"),
                        "'quantization_group_size' is " + n(*group) + ", expected 32 or 128" +
                            (kind == Quantization::kInt4 ? "" : ", or 0 for all of a row"));
        const bool rounds = kind == Quantization::kInt8 || kind == Quantization::kInt4;
        if (!rounds && group)
            warnings_.add(at("model.quantization_group_size"),
                          "quantization_group_size has no effect without quantization: int8 or int4");
    }

    void sizes() {
        const EngineSettings& e = c_.engine;
        if (!std::has_single_bit(e.block_size))
            faults_.add(at("engine.block_size"), "'block_size' is " + n(e.block_size) + ", expected a power of two (" +
                                                     n(std::bit_floor(e.block_size)) + " or " +
                                                     n(std::bit_ceil(e.block_size)) + ")");
        if (!e.enable_chunked_prefill && e.max_model_len > e.max_num_batched_tokens)
            faults_.add(at("engine.enable_chunked_prefill"),
                        "without chunked prefill max_num_batched_tokens (" + n(e.max_num_batched_tokens) +
                            ") must reach max_model_len (" + n(e.max_model_len) + ")");
        if (e.max_num_batched_tokens < e.max_num_seqs)
            warnings_.add(
                at(given("engine.max_num_batched_tokens") ? "engine.max_num_batched_tokens" : "engine.max_num_seqs"),
                "max_num_batched_tokens (" + n(e.max_num_batched_tokens) + ") is below max_num_seqs (" +
                    n(e.max_num_seqs) + "): a step never decodes all running sequences");
        if (!e.enable_chunked_prefill)
            without_effect("engine", "long_prefill_token_threshold", e.long_prefill_token_threshold != 0,
                           "without enable_chunked_prefill");
        const bool memory = e.kv_cache_memory != defaults_.kv_cache_memory, share = e.gpu_memory_utilization > 0;
        if (e.num_blocks > 0 || share)
            without_effect("engine", "kv_cache_memory", memory,
                           e.num_blocks > 0 ? "beside num_blocks" : "beside gpu_memory_utilization");
        if (e.num_blocks > 0) without_effect("engine", "gpu_memory_utilization", share, "beside num_blocks");
        if (c_.kv_policy && !e.enable_prefix_caching)
            warnings_.add(at("kv_policy"), "kv_policy '" + printable(c_.kv_policy->plugin) +
                                               "' has no effect without engine.enable_prefix_caching: no page is "
                                               "cached");
    }

    void offload() {
        const EngineSettings& e = c_.engine;
        if (e.preemption_mode == PreemptionMode::kSwap && e.swap_space == 0 && e.num_swap_blocks == 0)
            faults_.add(at("engine.preemption_mode"),
                        "preemption_mode: swap needs host memory: set swap_space or num_swap_blocks above 0");
        if (e.preemption_mode != PreemptionMode::kRecompute) return;
        const std::string why = "with preemption_mode: recompute";
        without_effect("engine", "swap_space", e.swap_space != defaults_.swap_space, why);
        without_effect("engine", "num_swap_blocks", e.num_swap_blocks != 0, why);
    }

    void graphs() {
        const EngineSettings& e = c_.engine;
        if (c_.proposer && e.num_speculative_tokens > 0 && e.cudagraph_mode == GraphMode::kFullDecodeOnly)
            warnings_.add(at("engine.cudagraph_mode"),
                          "cudagraph_mode: FULL_DECODE_ONLY replays no step that verifies drafts; FULL does");
        if (e.cudagraph_mode != GraphMode::kNone) return;
        const std::string why = "with cudagraph_mode: NONE";
        without_effect("engine", "cudagraph_capture_sizes", !e.cudagraph_capture_sizes.empty(), why);
        without_effect("engine", "cudagraph_capture", e.cudagraph_capture != defaults_.cudagraph_capture, why);
        without_effect("engine", "cudagraph_memory", e.cudagraph_memory != 0, why);
    }

    void speculation() {
        if (!c_.proposer) {
            without_effect("speculative", "mode", c_.speculative.mode != DraftMode::kFixed, "without a proposer");
            without_effect("speculative", "max_paths", c_.speculative.max_paths > 1, "without a proposer");
        }
        const uint32_t drafts = c_.engine.num_speculative_tokens;
        if (drafts > 0 && !c_.proposer)
            faults_.add(at("engine.num_speculative_tokens"),
                        "num_speculative_tokens is " + n(drafts) + " without a proposer: set proposer: NAME, or 0");
        if (drafts == 0 && c_.proposer)
            faults_.add(at("proposer"),
                        "proposer '" + printable(c_.proposer->plugin) +
                            "' needs engine.num_speculative_tokens: how many tokens it may draft a step");
        const auto& rates = c_.speculative.synthetic_acceptance_rates;
        const bool synthetic = c_.speculative.rejection_sample_method == Verification::kSynthetic;
        const Origin where = at("speculative.synthetic_acceptance_rates");
        if (!synthetic && !rates.empty())
            faults_.add(where,
                        "synthetic_acceptance_rates are for rejection_sample_method: synthetic, which is not set");
        if (synthetic && rates.size() != drafts)
            faults_.add(where, "synthetic_acceptance_rates has " + n(rates.size()) +
                                   " rates, expected one for each of num_speculative_tokens (" + n(drafts) + ")");
        if (c_.speculative.mode == DraftMode::kAdaptive &&
            c_.speculative.rejection_sample_method == Verification::kRejection)
            warnings_.add(at("speculative.mode"),
                          "mode: adaptive beside rejection_sample_method: rejection: texts follow from how many drafts "
                          "there were, and so from times; a seed does not repeat them");
        if (c_.speculative.max_paths > 1) trees();
        if (!std::ranges::is_sorted(rates, std::greater()))
            faults_.add(where, "synthetic_acceptance_rates grow, but a draft is accepted only if those before it are");
    }

    void trees() {
        const std::string paths = "max_paths is " + n(c_.speculative.max_paths);
        const Origin where = at("speculative.max_paths");
        if (c_.speculative.rejection_sample_method == Verification::kRejection)
            faults_.add(where, paths + " beside rejection_sample_method: rejection, which judges chains only (choose "
                                       "match, or 1 path)");
        if (c_.speculative.rejection_sample_method == Verification::kSynthetic)
            faults_.add(where, paths + " beside rejection_sample_method: synthetic, whose rates are those of a chain "
                                       "(choose match, or 1 path)");
        if (c_.speculative.mode == DraftMode::kAdaptive)
            faults_.add(where, paths + " beside mode: adaptive, which weighs the length of chains only (choose fixed, "
                                       "or 1 path)");
    }

    void ranks() {
        if (c_.engine.tensor_parallel_size > 1 && c_.engine.thread_pinning == ThreadPinning::kCores)
            faults_.add(at("engine.thread_pinning"),
                        "thread_pinning: cores is not done with tensor_parallel_size above 1: ranks of one host would "
                        "all choose the same cores");
    }

    const EngineSettings defaults_{};
    const EngineConfig& c_;
    const Node& effective_;
    Faults &faults_, &warnings_;
};

}  // namespace

void check_together(const EngineConfig& config, const Node& effective, Faults& faults, Faults& warnings) {
    CrossChecks(config, effective, faults, warnings).run();
}

}  // namespace patchbay::config
