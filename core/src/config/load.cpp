#include "config/load.hpp"

#include <algorithm>

#include "host/schema.hpp"

namespace patchbay::config {
namespace {

const std::vector<std::pair<std::string, DType>> kDTypes = {{"auto", DType::kAuto}, {"float32", DType::kF32}, {"f32", DType::kF32},
                                                            {"bfloat16", DType::kBf16}, {"bf16", DType::kBf16}};

void flatten(const Node& node, const std::string& prefix, std::map<std::string, std::string>& out) {
    if (node.kind == Node::Kind::kScalar) out[prefix] = node.scalar;
    for (const Node::Entry& e : node.map) flatten(e.value, prefix.empty() ? e.key : prefix + "." + e.key, out);
    for (size_t i = 0; i < node.list.size(); ++i) flatten(node.list[i], prefix + "." + std::to_string(i), out);
}

void read_model(Reader root, const Node* given, ModelSettings& m) {
    Node section;
    if (given) section = *given;
    if (section.kind == Node::Kind::kScalar) { // `model: DIR`
        Node map;
        map.kind = Node::Kind::kMap;
        map.origin = section.origin;
        map.map.push_back({"path", section.origin, section});
        section = map;
    }
    Reader r(section, root.all(), "model");
    r.path("path", m.path, {.meaning = "folder of the model: config.json, *.safetensors, tokenizer.json"});
    r.value("plugin", m.plugin, {.meaning = "model plugin; auto: the one that serves the architecture of config.json"});
    r.path("tokenizer", m.tokenizer, {.meaning = "folder with tokenizer.json; empty: the model's; none: token ids only"});
    r.choice("load_format", m.load_format, std::vector<std::pair<std::string, LoadFormat>>{{"auto", LoadFormat::kAuto}, {"dummy", LoadFormat::kDummy}},
             {.meaning = "auto: the checkpoint; dummy: random weights of the given shape"});
    r.choice("dtype", m.dtype, kDTypes, {.meaning = "dtype of weights; auto: the checkpoint's"});
    if (const Node* shape = r.raw("shape", {.meaning = "load_format dummy: the keys of a config.json"})) {
        if (shape->kind != Node::Kind::kMap) r.fault("shape", "'shape' takes a map of config.json keys");
        flatten(*shape, "", m.shape);
        for (const auto& [key, value] : m.shape) r.all().effective.push_back({"model.shape." + key, value, Type::kString, shape->origin.text(), {}});
    }
    r.finish();
}

void read_engine(Reader root, EngineSettings& e) {
    Reader r = root.section("engine", "limits and sizes of the engine");
    r.value("max_model_len", e.max_model_len, {.max = 1 << 26, .unit = "tokens", .meaning = "prompt and output of a request at most; 0: what model and KV cache hold"});
    r.value("max_num_batched_tokens", e.max_num_batched_tokens, {.min = 1, .max = 1 << 22, .unit = "tokens", .meaning = "token budget of a step"});
    r.value("max_num_seqs", e.max_num_seqs, {.min = 1, .max = 1 << 16, .unit = "sequences", .meaning = "sequences in a step, and running at once"});
    r.value("enable_chunked_prefill", e.enable_chunked_prefill, {.meaning = "prompts may be split over steps"});
    r.value("long_prefill_token_threshold", e.long_prefill_token_threshold, {.max = 1 << 22, .unit = "tokens", .meaning = "prompt tokens of one sequence in a step at most; 0: no limit"});
    r.value("block_size", e.block_size, {.min = 1, .max = 256, .unit = "tokens", .meaning = "tokens in a KV block, a power of two"});
    r.value("num_blocks", e.num_blocks, {.max = 1 << 26, .unit = "blocks", .meaning = "KV blocks; 0: from kv_cache_memory"});
    r.bytes("kv_cache_memory", e.kv_cache_memory, {.unit = "bytes", .meaning = "memory for KV, such as 256MiB"});
    r.choice("kv_cache_dtype", e.kv_cache_dtype, kDTypes, {.meaning = "dtype of KV; auto: as the weights"});
    r.value("enable_prefix_caching", e.enable_prefix_caching, {.meaning = "share the KV of equal beginnings"});
    r.value("watermark", e.watermark, {.min = 0, .max = 0.5, .meaning = "share of blocks kept free when admitting"});
    r.value("num_speculative_tokens", e.num_speculative_tokens, {.max = 16, .unit = "tokens", .meaning = "drafts a step and sequence; needs a proposer"});
    r.value("max_waiting", e.max_waiting, {.unit = "requests", .meaning = "requests that may wait; 0: no limit"});
    r.value("seed", e.seed, {.meaning = "seed of requests that have none, and of dummy weights"});
    r.value("threads", e.threads, {.max = 1024, .unit = "threads", .meaning = "threads of the host's pool; 0: the cores this process may use"});
    std::string& mode = e.cudagraph_mode;
    r.choice("cudagraph_mode", mode, {.choices = {"NONE"}, .meaning = "graphs of forward passes; devices without graphs run NONE"});
    if ((e.block_size & (e.block_size - 1)) != 0) r.fault("block_size", "'block_size' is " + std::to_string(e.block_size) + ", expected a power of two");
    r.finish();
}

void read_plugin(Reader root, const std::string& kind, PluginChoice& choice, const std::string& meaning, const host::Registry& registry) {
    Reading& all = root.all();
    Origin origin{"default", 0, 0};
    std::map<std::string, Origin> places;
    if (const Node* n = root.raw(kind, {.meaning = meaning}, Type::kPlugin)) {
        origin = n->origin;
        if (n->kind == Node::Kind::kScalar) {
            choice = {n->scalar, {}};
        } else if (n->kind == Node::Kind::kMap) {
            const Node* name = n->find("plugin");
            if (name) {
                choice.plugin = name->scalar;
                origin = name->origin;
            }
            for (const Node::Entry& e : n->map) {
                if (e.key == "plugin") continue;
                places[e.key] = e.origin;
                if (e.value.kind == Node::Kind::kScalar) choice.settings[e.key] = e.value.scalar;
                else all.fault(e.value.origin, "'" + e.key + "' of a plugin takes a single value");
            }
        } else {
            all.fault(n->origin, "'" + kind + "' takes a plugin's name, or a map with 'plugin' and its keys");
            return;
        }
    }
    all.effective.push_back({kind + ".plugin", choice.plugin, Type::kPlugin, origin.text(), {}});
    const auto manifest = registry.find(kind, choice.plugin);
    if (!manifest) return all.fault(origin, manifest.error());
    for (const host::SettingFault& f : host::check_settings(**manifest, choice.settings))
        all.fault(places.contains(f.key) ? places[f.key] : origin, f.text);
    const auto complete = host::with_defaults(**manifest, choice.settings);
    for (const host::ParamManifest& p : (*manifest)->params)
        if (const auto at = complete.find(p.name); at != complete.end())
            all.effective.push_back({kind + "." + p.name, at->second, Type::kString, places.contains(p.name) ? places[p.name].text() : "default", {}});
}

void read_all(const Node& document, const host::Registry* registry, const std::set<std::string>& elsewhere, Reading& all, EngineConfig& c) {
    Reader root(document, all);
    for (const std::string& key : elsewhere) root.raw(key, {});
    read_model(root, root.raw("model", {.meaning = "a model's folder, or a map of the keys below"}), c.model);
    read_engine(root, c.engine);
    root.raw("engine", {}); // read above, through a copy
    struct Slot {
        const char* kind;
        PluginChoice* choice;
        const char* meaning;
    };
    const Slot slots[] = {{"scheduler", &c.scheduler, "who runs in a step, with how many tokens"}, {"sampler", &c.sampler, "which token a row of logits becomes"},
                          {"attention", &c.attention, "KV layout and attention"}, {"device", &c.device, "memory and kernels"}};
    for (const Slot& s : slots) {
        if (registry) read_plugin(root, s.kind, *s.choice, s.meaning, *registry);
        root.raw(s.kind, {.meaning = s.meaning}, Type::kPlugin);
    }
    const Node* proposer = root.raw("proposer", {.meaning = "drafts for speculative decoding; none: no speculation"}, Type::kPlugin);
    if (registry && proposer && !(proposer->kind == Node::Kind::kScalar && proposer->scalar == "none")) {
        c.proposer.emplace();
        read_plugin(root, "proposer", *c.proposer, "", *registry);
        if (c.engine.num_speculative_tokens == 0)
            all.fault(proposer->origin, "a proposer needs engine.num_speculative_tokens of at least 1");
    } else if (c.engine.num_speculative_tokens > 0) {
        all.fault(document.origin, "engine.num_speculative_tokens is " + std::to_string(c.engine.num_speculative_tokens) + ", but there is no proposer (try proposer: ngram)");
    }
    root.finish();
}

}  // namespace

std::vector<Declared> engine_keys() {
    Reading all;
    EngineConfig config;
    read_all(Node{}, nullptr, {}, all, config);
    std::vector<Declared> out; // each once, in order
    for (Declared& d : all.declared)
        if (std::none_of(out.begin(), out.end(), [&](const Declared& o) { return o.path == d.path; })) out.push_back(std::move(d));
    return out;
}

Result<Loaded> engine_config_from(const Node& document, const host::Registry& registry, const std::set<std::string>& elsewhere) {
    Reading all;
    Loaded loaded;
    read_all(document, &registry, elsewhere, all, loaded.config);
    if (!all.ok()) return fail(all.faults());
    loaded.effective = std::move(all.effective);
    return loaded;
}

Result<Loaded> load_engine_config(const std::filesystem::path& file, const host::Registry& registry, const Overrides& overrides) {
    Node document;
    document.kind = Node::Kind::kMap;
    document.origin = {"command line", 0, 0};
    if (!file.empty()) PB_TRY(document, load_document(file));
    for (const Override& o : overrides) PB_CHECK(set_path(document, o.path, Node::text(o.value, {"command line " + o.flag, 0, 0})));
    return engine_config_from(document, registry);
}

}  // namespace patchbay::config
