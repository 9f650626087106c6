#include "config/load.hpp"

#include <algorithm>

#include "base/flat_string.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "config/load_parts.hpp"
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
// The fault names no key: `model: x` and --model x mean the key model.path.
std::string resolve_model(const std::string& given, const std::string& key, const Origin& origin, Faults& faults) {
    std::error_code error;
    const bool is_tokenizer = key == "tokenizer";
    const auto fits = is_tokenizer ? names_tokenizer : names_model;
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
    faults.add(origin, (is_tokenizer ? "tokenizer " : "model ") + printable(given) + " " + what);
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
        .word("dtype", &ModelSettings::dtype, dtypes,
              "type of the weights; auto: the checkpoint's, but bfloat16 for f16; f32, bf16: aliases")
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
        .key("block_size", &E::block_size, {1, 256, "tokens"}, "tokens in a KV page; a power of two")
        .key("num_blocks", &E::num_blocks, {0, 1 << 26, "pages"},
             "pages of the KV cache; 0: as many as kv_cache_memory holds")
        .bytes("kv_cache_memory", &E::kv_cache_memory, {1 << 12, 0x1p50, ""}, "memory for keys and values")
        .key("gpu_memory_utilization", &E::gpu_memory_utilization, {0, 1, ""},
             "instead of kv_cache_memory: this share of the device's memory, less weights and activations; 0: off")
        .word("kv_cache_dtype", &E::kv_cache_dtype, kv_dtype_words(),
              "type of keys and values; auto: as the weights; fp8, int8: with one scale for each token and head; f32, "
              "bf16, fp8_e4m3, fp8_per_token_head, int8_per_token_head: aliases");
    add_kv_dtype_layers(t);
    t.key("enable_prefix_caching", &E::enable_prefix_caching, "reuse the KV blocks of equal prefixes")
        .key("watermark", &E::watermark, {0, 0.5, ""}, "share of pages kept free when a request is admitted")
        .key("adaptive_watermark", &E::adaptive_watermark,
             "raise the watermark while requests are preempted; it falls back to watermark when none are")
        .key("zero_freed_blocks", &E::zero_freed_blocks,
             "overwrite KV pages with zeros when no request holds them and the prefix cache has evicted them")
        .key("reserve_full_sequence", &E::reserve_full_sequence,
             "admit a request only if there are free pages for all its tokens, in addition to those that running "
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
        .key("num_swap_blocks", &E::num_swap_blocks, {0, 1 << 26, "pages"},
             "KV pages in host memory; 0: as many as swap_space holds")
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
                "sizes in tokens that steps are padded to for a graph; empty: 1, 2, 4, 8, 16, … 256, 272, … 512, "
                "limited to what a step can contain")
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
           "standard: vLLM's name for rejection; synthetic: accept at given rates, so that texts mean nothing")
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
           "1_Pooling/config.json in the model's folder or pooling_type of the GGUF file says, else LAST")
        .key("normalize", &PoolerSettings::normalize,
             "scale embeddings to length 1; left out: as modules.json in the model's folder says, else true");
    return t;
}

Table<SwapSettings> swap_table() {
    Table<SwapSettings> t;
    t.key("probation_steps", &SwapSettings::probation_steps, {1, 1e6, "steps"},
          "steps after a swap in which an error rolls back to the old component")
        .key("max_call_ms", &SwapSettings::max_call_ms, {0, 1e6, "ms"},
             "if the calls of a component on probation take longer in one step, the old component comes back; 0: no "
             "limit")
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

// `model: x` as {path: x}.
Node model_map(const Node& given, Faults& faults) {
    Node map = Node::map(given.origin);
    if (given.kind == NodeKind::kScalar) map.entries.push_back({"path", given.origin, given});
    else if (is_section(given, "'model'", faults)) map.entries = given.entries;
    return map;
}

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
    const auto is_file = [](const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); };
    for (const auto& [key, value] : keys)
        if (key != "path" || !is_file(value)) given.entries.push_back({key, {}, Node::scalar(value)});
    if (const auto path = keys.find("path"); path != keys.end() && is_file(path->second)) {
        PB_TRY(const Document document, load_document(path->second));
        const Node* model = document.root.find("model");
        if (!model) return invalid(printable(path->second) + " has no key 'model', which a model's file has");
        Faults faults;
        file = model_map(*model, faults);
        if (faults.any()) return faults.failure();
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

std::vector<KeyInfo> engine_sections() {
    std::vector<KeyInfo> out;
    const auto section = [&](const char* name, std::vector<KeyInfo> keys) {
        KeyInfo& info = out.emplace_back();
        info.name = name;
        info.type = ValueType::kMap;
        info.children = std::move(keys);
    };
    section("model", model_table().keys());
    section("engine", engine_table().keys());
    section("parallel", parallel_table().keys());
    section("speculative", speculation_table().keys());
    section("pooler_config", pooler_table().keys());
    section("swap", swap_table().keys());
    section("allowed_plugins", {});
    for (const SlotInfo& slot : slots()) section(slot.kind.c_str(), {});
    return out;
}

std::vector<std::string> engine_keys() {
    std::vector<std::string> keys;
    for (KeyInfo& section : engine_sections()) keys.push_back(std::move(section.name));
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
                 Node effective = model.read(given ? model_map(*given, faults) : Node::map(), out.model, faults);
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
    t.section("swap", &EngineConfig::swap, swap_table(), "what happens when a component takes a slot during a run");
    add_allowed_plugins(t);
    return t;
}

Result<Loaded> load_engine_config(const Node& document, const host::Registry& registry, const Overrides& overrides) {
    PB_TRY(const Node root, with_overrides(document, overrides));
    Loaded loaded;
    Faults faults, warnings;
    loaded.effective = engine_config_table(registry).read(root, loaded.config, faults);
    // What hangs together is checked only where the parts are right: a wrong value has its default here.
    if (!faults.any()) check_together(loaded.config, loaded.effective, faults, warnings);
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
