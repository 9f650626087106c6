#include "config/load.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "base/flat_string.hpp"
#include "base/suggest.hpp"
#include "config/kv_dtypes.hpp"
#include "config/allowed_plugins.hpp"
#include "config/plugin_slot.hpp"
#include "config/slots.hpp"

namespace patchbay::config {
namespace {

namespace fs = std::filesystem;

// A folder, or a GGUF file, which is a whole model.
bool names_model(const fs::path& path) {
    std::error_code error;
    return fs::is_directory(path, error) || (path.extension() == ".gguf" && fs::is_regular_file(path, error));
}

// Those, or one file of a tokenizer.
bool names_tokenizer(const fs::path& path) {
    std::error_code error;
    return names_model(path) || fs::is_regular_file(path, error);
}

// A relative path is meant from the file that names it, else from the current directory; a flag's only from there.
std::string resolve_model(const std::string& given, const std::string& key, const Origin& origin, Faults& faults) {
    std::error_code error;
    const auto fits = key == "tokenizer" ? names_tokenizer : names_model;
    fs::path path(given);
    std::string looked;
    if (path.is_relative() && origin.kind == Origin::Kind::kFile) {
        const fs::path beside = (fs::path(*origin.name).parent_path() / path).lexically_normal();
        if (fits(beside)) path = beside;
        else looked = " (looked for " + printable(beside.string()) + ", then in the current directory)";
    }
    if (fits(path)) return fs::absolute(path, error).lexically_normal().string();
    const std::string what = fs::exists(path, error)
                                 ? "is not a folder, expected a Hugging Face model folder or a .gguf file"
                                 : "is not there" + looked;
    faults.add(origin, "'" + key + "': " + printable(given) + " " + what);
    return given;
}

// {a: {b: 1}, c: [x], d: {}} → a.b, c.0, d: the form of config.json that weights::FlatConfig has.
void flatten(const Node& node, const std::string& key, std::map<std::string, std::string>& out) {
    const auto under = [&](const std::string& child) { return key.empty() ? child : key + "." + child; };
    for (const Entry& entry : node.entries) flatten(entry.value, under(entry.key), out);
    for (size_t i = 0; i < node.items.size(); ++i) flatten(node.items[i], under(std::to_string(i)), out);
    if (key.empty()) return;
    if (node.kind == NodeKind::kScalar) out[key] = node.quoted ? flat_string(node.text) : node.text;
    if (node.kind == NodeKind::kNull) out[key] = "null";
    if (node.kind == NodeKind::kMap && node.entries.empty()) out[key] = "{}";
    if (node.kind == NodeKind::kList && node.items.empty()) out[key] = "[]";
}

Table<ModelSettings> model_table() {
    const std::vector<Word<DType>> dtypes{{"auto", DType::kAuto},
                                          {"float32", DType::kF32},
                                          {"bfloat16", DType::kBf16},
                                          {"f32", DType::kF32},
                                          {"bf16", DType::kBf16}};
    Table<ModelSettings> t;
    t.key("path", &ModelSettings::path, "Hugging Face folder with config.json, weights and tokenizer; or a GGUF file")
        .key("plugin", &ModelSettings::plugin, "model plugin; auto: the one that serves `architectures` of config.json")
        .key("tokenizer", &ModelSettings::tokenizer,
             "folder with a tokenizer, a file of one, or a GGUF file; empty: the model's; none: token ids only")
        .word("load_format", &ModelSettings::load_format, {{"auto", LoadFormat::kAuto}, {"dummy", LoadFormat::kDummy}},
              "auto: the folder's weights; dummy: random weights of the right shapes")
        .word("dtype", &ModelSettings::dtype, dtypes, "type of the weights; auto: the checkpoint's, of f16 bfloat16")
        .word("quantization", &ModelSettings::quantization,
              {{"auto", Quantization::kAuto},
               {"none", Quantization::kNone},
               {"int8", Quantization::kInt8},
               {"int4", Quantization::kInt4}},
              "auto: linears as the checkpoint has them; none: all decoded to dtype; int8, int4: rounded while loading")
        .key("quantization_group_size", &ModelSettings::quantization_group_size, {0, 128, "columns"},
             "columns that share a scale with quantization: int8 (32, 128, or 0: all of a row; default 128) and int4 "
             "(32 or 128; default 32)")
        .custom({.name = "shape",
                 .type = ValueType::kOther,
                 .description = "keys of config.json for load_format: dummy, so that no folder is needed",
                 .json_schema = R"({"type": "object"})"},
                [](const Node* given, ModelSettings& out, Faults& faults) {
                    if (!given || !is_section(*given, "'shape'", faults)) return Node::map();
                    flatten(*given, "", out.shape);
                    return given->kind == NodeKind::kMap ? *given : Node::map(given->origin);
                });
    return t;
}

Table<EngineSettings> engine_table() {
    using E = EngineSettings;
    constexpr double kTokens = 1 << 26;
    Table<E> t;
    t.key("max_model_len", &E::max_model_len, {0, kTokens, "tokens"},
          "prompt and output tokens of a request together; 0: the model's maximum")
        .key("max_num_batched_tokens", &E::max_num_batched_tokens, {1, kTokens, "tokens"}, "token budget of a step")
        .key("max_num_seqs", &E::max_num_seqs, {1, 65536, "sequences"}, "sequences that run at once")
        .key("enable_chunked_prefill", &E::enable_chunked_prefill, "compute a prompt over several steps if necessary")
        .key("long_prefill_token_threshold", &E::long_prefill_token_threshold, {0, kTokens, "tokens"},
             "maximum of prompt tokens of one request in a step; 0: no limit")
        .key("block_size", &E::block_size, {1, 256, "tokens"}, "tokens in a KV block; a power of two")
        .key("num_blocks", &E::num_blocks, {0, 1 << 26, "blocks"}, "KV blocks; 0: as many as kv_cache_memory holds")
        .bytes("kv_cache_memory", &E::kv_cache_memory, {1 << 12, 0x1p50, ""}, "memory for keys and values")
        .key("gpu_memory_utilization", &E::gpu_memory_utilization, {0, 1, ""},
             "instead of kv_cache_memory: this share of the device's memory, less weights and activations; 0: off")
        .word("kv_cache_dtype", &E::kv_cache_dtype, kv_dtype_words(),
              "type of keys and values; auto: as the weights; fp8, int8: with one scale for each token and head");
    add_kv_dtype_layers(t);
    t.key("enable_prefix_caching", &E::enable_prefix_caching, "reuse the KV blocks of equal prefixes")
        .key("watermark", &E::watermark, {0, 0.5, ""}, "share of blocks kept free when a request is admitted")
        .key("adaptive_watermark", &E::adaptive_watermark,
             "raise the watermark while requests are preempted; it falls back to watermark when none are")
        .key("zero_freed_blocks", &E::zero_freed_blocks,
             "overwrite KV blocks with zeros when no request holds them and the prefix cache has evicted them")
        .key("reserve_full_sequence", &E::reserve_full_sequence,
             "admit a request only if there are free blocks for all its tokens, in addition to those that running "
             "requests still need for theirs")
        .word("preemption_mode", &E::preemption_mode,
              {{"recompute", PreemptionMode::kRecompute},
               {"swap", PreemptionMode::kSwap},
               {"auto", PreemptionMode::kAuto}},
              "what happens to a preempted request's KV; recompute: it is freed and computed again; swap: it is "
              "offloaded to host memory; auto: whichever takes less time, as measured, or swap if the scheduler "
              "requests it")
        .key("swap_space", &E::swap_space, {0, 1 << 20, "GiB"},
             "host memory of each rank for offloaded KV, with preemption_mode: swap and auto")
        .key("num_swap_blocks", &E::num_swap_blocks, {0, 1 << 26, "blocks"},
             "KV blocks in host memory; 0: as many as swap_space holds")
        .key("num_speculative_tokens", &E::num_speculative_tokens, {0, 64, "tokens"},
             "maximum of drafts for each sequence and step; 0: no speculation; needs a proposer")
        .key("tensor_parallel_size", &E::tensor_parallel_size, {1, 1024, "ranks"},
             "processes that compute the model together, each with a share of its weights")
        .key("max_logprobs", &E::max_logprobs, {-1, 1u << 20, "tokens"},
             "maximum of logprobs and prompt_logprobs of a request; -1: the whole vocabulary")
        .key("max_waiting", &E::max_waiting, {0, 1u << 31, "requests"},
             "maximum of waiting requests; further ones are refused; 0: no limit")
        .key("seed", &E::seed, "seed of requests without a seed of their own, and of dummy weights")
        .key("threads", &E::threads, {0, 1024, "threads"}, "size of the pool; 0: the cores that this process may use")
        .word("thread_pinning", &E::thread_pinning,
              {{"none", ThreadPinning::kNone}, {"cores", ThreadPinning::kCores}},
              "cores: each thread of the pool, except the caller's, is pinned to its own core")
        .word("async_scheduling", &E::async_scheduling,
              {{"off", AsyncScheduling::kOff}, {"auto", AsyncScheduling::kAuto}, {"on", AsyncScheduling::kOn}},
              "plan a step while the device computes the previous one; auto: if device, sampler and proposer support "
              "it; on: refused if they do not")
        .word("cudagraph_mode", &E::cudagraph_mode,
              {{"NONE", GraphMode::kNone},
               {"FULL_DECODE_ONLY", GraphMode::kFullDecodeOnly},
               {"FULL", GraphMode::kFull}},
              "which steps replay a captured graph, if device and attention support it; FULL_DECODE_ONLY: steps in "
              "which each sequence has one token")
        .values("cudagraph_capture_sizes", &E::cudagraph_capture_sizes, {1, kTokens, "tokens"},
                "sizes in tokens that steps are padded to for a graph; empty: 1, 2, 4, 8, 16, … 256, 272, … 512")
        .word("cudagraph_capture", &E::cudagraph_capture,
              {{"eager", GraphCapture::kEager}, {"lazy", GraphCapture::kLazy}},
              "eager: capture all sizes at load; lazy: capture a size when a step first needs it")
        .bytes("cudagraph_memory", &E::cudagraph_memory, {0, 0x1p50, ""},
               "maximum memory for graphs, further ones are not kept; 0: no limit");
    return t;
}

Table<SpeculationSettings> speculation_table() {
    using S = SpeculationSettings;
    Table<S> t;
    t.word("mode", &S::mode, {{"fixed", DraftMode::kFixed}, {"adaptive", DraftMode::kAdaptive}},
           "fixed: num_speculative_tokens in every step; adaptive: up to that many, by measured acceptance and time");
    t.word("rejection_sample_method", &S::rejection_sample_method,
           {{"match", Verification::kMatch},
            {"rejection", Verification::kRejection},
            {"synthetic", Verification::kSynthetic},
            {"standard", Verification::kRejection}},
           "match: accept drafts that equal the sampled token; rejection: rejection sampling by their probabilities; "
           "synthetic: accept at given rates, so that texts mean nothing")
        .values("synthetic_acceptance_rates", &S::synthetic_acceptance_rates, {0, 1, ""},
                "for synthetic: share of all drafts at position 1 that is accepted, at position 2, and so on")
        .key("max_paths", &S::max_paths, {1, 16, "paths"},
             "maximum of paths in a sequence's tree of drafts, each of up to num_speculative_tokens; 1: no branches");
    return t;
}

Table<PoolerSettings> pooler_table() {
    Table<PoolerSettings> t;
    t.word("pooling_type", &PoolerSettings::pooling_type,
           {{"auto", PoolingType::kAuto},
            {"LAST", PoolingType::kLast},
            {"MEAN", PoolingType::kMean},
            {"last", PoolingType::kLast},
            {"mean", PoolingType::kMean}},
           "which hidden states embeddings are made of; LAST: that of the last token; MEAN: the mean of all; auto: as "
           "1_Pooling/config.json in the model's folder says, else LAST")
        .key("normalize", &PoolerSettings::normalize,
             "scale embeddings to length 1; left out: as modules.json in the model's folder says, else true");
    return t;
}

Table<SwapSettings> swap_table() {
    Table<SwapSettings> t;
    t.key("probation_steps", &SwapSettings::probation_steps, {1, 1e6, "steps"},
          "steps after a swap in which an error rolls back to the old component")
        .key("max_call_ms", &SwapSettings::max_call_ms, {0, 1e6, "ms"},
             "a call of a component on probation that takes longer rolls back to the old component; 0: no limit")
        .key("max_hang_s", &SwapSettings::max_hang_s, {0, 1e6, "s"},
             "a call of any plugin that does not return for so long ends a server's process, which --supervise starts "
             "again with the component that was there before; 0: never")
        .word("watch", &SwapSettings::watch,
              {{"off", WatchMode::kOff}, {"announce", WatchMode::kAnnounce}, {"adopt", WatchMode::kAdopt}},
              "what a server does with a new build of a plugin that appears in a plugin folder; announce: log and "
              "status say so; adopt: a build of a plugin in use is swapped in");
    return t;
}

Table<ParallelSettings> parallel_table() {
    using P = ParallelSettings;
    constexpr double kHour = 3'600'000;
    Table<P> t;
    t.word("launcher", &P::launcher,
           {{"auto", Launcher::kAuto},
            {"local", Launcher::kLocal},
            {"mpirun", Launcher::kMpirun},
            {"srun", Launcher::kSrun}},
           "what starts the ranks; auto: mpirun or srun if they started this process, else rank 0 starts the others "
           "itself")
        .key("join_timeout_ms", &P::join_timeout_ms, {100, kHour, "ms"}, "how long to wait for all ranks")
        .key("heartbeat_timeout_ms", &P::heartbeat_timeout_ms, {1000, kHour, "ms"},
             "silence after which a rank counts as hung")
        .key("step_timeout_ms", &P::step_timeout_ms, {1000, 24 * kHour, "ms"},
             "how long a rank may compute on one step before it counts as hung")
        .key("load_timeout_ms", &P::load_timeout_ms, {1000, 24 * kHour, "ms"},
             "how long a rank may take to load the model before it counts as hung");
    return t;
}

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

Result<Node> with_overrides(Node document, const Overrides& overrides) {
    for (const Override& o : overrides) {
        const Origin origin = Origin::flag(o.flag);
        Node value = Node::scalar(o.value, origin);
        if (o.value.starts_with('{') || o.value.starts_with('[')) {
            PB_TRY(value, parse_yaml(o.value, o.flag));
        }
        Node patch = Node::map(origin);
        patch.entries.push_back({o.path, origin, std::move(value)});
        PB_TRY(const Node nested, expand_dotted(patch));
        document = merge(std::move(document), nested);
    }
    return document;
}

}  // namespace

Result<> check_override(const Override& override) {
    PB_TRY(const Node root, with_overrides(Node::map(), {override}));
    Faults faults;
    ModelSettings model;
    EngineSettings engine;
    if (const Node* given = root.find("model")) model_table().read(*given, model, faults);
    if (const Node* given = root.find("engine")) engine_table().read(*given, engine, faults);
    SpeculationSettings speculation;
    if (const Node* given = root.find("speculative")) speculation_table().read(*given, speculation, faults);
    PoolerSettings pooler;
    if (const Node* given = root.find("pooler_config")) pooler_table().read(*given, pooler, faults);
    SwapSettings swap;
    if (const Node* given = root.find("swap")) swap_table().read(*given, swap, faults);
    if (faults.any()) return faults.failure();
    return {};
}

Result<ModelSettings> model_settings(const std::map<std::string, std::string>& keys) {
    Node given = Node::map(), file = Node::map();
    for (const auto& [key, value] : keys)
        if (key != "path" || !value.ends_with(".yaml")) given.entries.push_back({key, {}, Node::scalar(value)});
    if (const auto path = keys.find("path"); path != keys.end() && path->second.ends_with(".yaml")) {
        PB_TRY(const Document document, load_document(path->second));
        const Node* model = document.root.find("model");
        if (!model || model->kind != NodeKind::kMap)
            return fail(printable(path->second) + " has no section 'model', which a model's file has");
        file = *model;
    }
    PB_TRY(const Node nested, expand_dotted(given));
    ModelSettings out;
    Faults faults;
    const Node effective = model_table().read(merge(std::move(file), nested), out, faults);
    if (const Node* path = effective.find("path"); path && path->origin.kind == Origin::Kind::kFile)
        out.path = resolve_model(out.path, "path", path->origin, faults);
    if (faults.any()) return faults.failure();
    return out;
}

std::vector<std::string> engine_keys() {
    std::vector<std::string> keys = {"model", "engine", "parallel", "speculative", "pooler_config", "swap",
                                     "allowed_plugins"};
    for (const SlotInfo& slot : slots()) keys.push_back(slot.kind);
    return keys;
}

Node engine_part(const Node& document) {
    Node part = Node::map(document.origin);
    const auto keys = engine_keys();
    for (const Entry& entry : document.entries)
        if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) part.entries.push_back(entry);
    return part;
}

Table<EngineConfig> engine_config_table(const host::Registry& registry) {
    Table<EngineConfig> t;
    const Table<ModelSettings> model = model_table();
    t.custom({.name = "model",
              .type = ValueType::kMap,
              .description = "a model folder, or a map of these keys",
              .children = model.keys()},
             [model, &registry](const Node* given, EngineConfig& out, Faults& faults) {
                 Node map = Node::map(given ? given->origin : Origin{});
                 if (given && given->kind == NodeKind::kScalar)
                     map.entries.push_back({"path", given->origin, *given});
                 else if (given && is_section(*given, "'model'", faults))
                     map = *given;
                 Node effective = model.read(map, out.model, faults);
                 const auto folder = [&](const char* key, std::string& value) {
                     const Node* node = effective.find(key);
                     value = resolve_model(value, key, node->origin, faults);
                     effective.set(key, Node::string(value, node->origin));
                 };
                 if (!out.model.path.empty()) folder("path", out.model.path);
                 if (!out.model.tokenizer.empty() && out.model.tokenizer != "none")
                     folder("tokenizer", out.model.tokenizer);
                 if (out.model.plugin != "auto")
                     if (auto found = registry.find("model", out.model.plugin); !found)
                         faults.add(effective.find("plugin")->origin, found.error());
                 return effective;
             });
    t.section("engine", &EngineConfig::engine, engine_table(), "sizes and switches of the engine; names follow vLLM's");
    t.section("parallel", &EngineConfig::parallel, parallel_table(), "how the ranks of one model come together");
    for (const SlotInfo& slot : slots()) add_slot(t, slot, registry);
    t.section("speculative", &EngineConfig::speculative, speculation_table(), "how drafts are verified");
    t.section("pooler_config", &EngineConfig::pooler_config, pooler_table(), "how embeddings are made");
    t.section("swap", &EngineConfig::swap, swap_table(), "what a component goes through that takes a slot in mid-run");
    add_allowed_plugins(t);
    return t;
}

Result<Loaded> load_engine_config(const Node& document, const host::Registry& registry, const Overrides& overrides) {
    PB_TRY(const Node root, with_overrides(document, overrides));
    Loaded loaded;
    Faults faults, warnings;
    loaded.effective = engine_config_table(registry).read(root, loaded.config, faults);
    // What hangs together is checked only where the parts are right: a wrong value has its default here.
    if (!faults.any()) CrossChecks(loaded.config, loaded.effective, faults, warnings).run();
    if (faults.any()) return faults.failure();
    loaded.warnings = warnings.lines();
    return loaded;
}

Result<Loaded> load_engine_config(const fs::path& file, const host::Registry& registry, const Overrides& overrides) {
    if (file.empty()) return load_engine_config(Node::map(), registry, overrides);
    PB_TRY(const Document document, load_document(file));
    return load_engine_config(document.root, registry, overrides);
}

}  // namespace patchbay::config
