#include "experiment/prepared_variants.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_file.hpp"
#include "base/refusals.hpp"
#include "base/sha256.hpp"
#include "engine/load_tokenizer.hpp"
#include "engine/request/validation.hpp"
#include "execution/allowed_parts.hpp"
#include "host/prober.hpp"

namespace patchbay::experiment {
namespace {

using Json = nlohmann::ordered_json;

void flatten(const config::Node& node, const std::string& path, FlatTree& out) {
    for (const config::Entry& e : node.entries) flatten(e.value, path.empty() ? e.key : path + "." + e.key, out);
    for (size_t i = 0; i < node.items.size(); ++i) flatten(node.items[i], path + "." + std::to_string(i), out);
    if (node.kind == config::NodeKind::kScalar) out[path] = node.text;
}

Json facts_of(const engine::EngineFacts& f) { // by the names under which automatic choices are compared
    return {{"model_identity", f.model.identity},
            {"architecture", f.model.architecture},
            {"vocab_size", f.model.vocab_size},
            {"weight_dtype", f.model.weight_dtype},
            {"weight_bytes", f.model.weight_bytes},
            {"max_model_len", f.max_model_len},
            {"kv_dtype", f.kv.dtype},
            {"num_blocks", f.kv.num_blocks},
            {"block_size", f.kv.block_size},
            {"kv_bytes", f.kv.bytes},
            {"page_bytes", f.kv.page_bytes},
            {"kv_groups", f.kv.groups},
            {"state_groups", f.kv.state_groups},
            {"kv_padding", f.kv.padding},
            {"prefix_caching", f.kv.prefix_caching},
            {"threads", f.threads},
            {"device_name", f.device_name},
            {"isa", f.isa},
            {"simulated", !f.device_computes},
            {"tensor_parallel_size", f.tensor_parallel_size},
            {"draft_model", f.draft.model},
            {"draft_weight_bytes", f.draft.weight_bytes},
            {"synthetic_acceptance", f.synthetic_acceptance}};
}

// What an automatic choice follows from.
struct Cause {
    const char* fact;
    std::vector<std::string> keys;
};
const std::vector<Cause>& causes() {
    static const std::vector<Cause> table = {
        {"model_identity", {"model"}},
        {"architecture", {"model"}},
        {"vocab_size", {"model"}},
        {"weight_dtype", {"model"}},
        {"weight_bytes", {"model", "device", "engine.tensor_parallel_size"}},
        {"kv_dtype", {"model", "engine.kv_cache_dtype", "engine.kv_cache_dtype_layers"}},
        {"page_bytes",
         {"model", "attention", "proposer", "engine.kv_cache_dtype", "engine.kv_cache_dtype_layers",
          "engine.block_size", "engine.tensor_parallel_size"}},
        {"kv_groups",
         {"model", "attention", "proposer", "engine.kv_cache_dtype", "engine.kv_cache_dtype_layers",
          "engine.block_size"}},
        {"state_groups",
         {"model", "attention", "engine.kv_cache_dtype", "engine.kv_cache_dtype_layers", "engine.block_size"}},
        {"kv_padding",
         {"model", "attention", "proposer", "engine.kv_cache_dtype", "engine.kv_cache_dtype_layers",
          "engine.block_size"}},
        {"prefix_caching", {"model", "engine.enable_prefix_caching"}},
        {"num_blocks",
         {"model", "attention", "proposer", "engine.kv_cache_dtype", "engine.kv_cache_dtype_layers",
          "engine.block_size", "engine.num_blocks", "engine.kv_cache_memory", "engine.tensor_parallel_size"}},
        {"kv_bytes",
         {"model", "attention", "proposer", "engine.kv_cache_dtype", "engine.kv_cache_dtype_layers",
          "engine.block_size", "engine.num_blocks", "engine.kv_cache_memory", "engine.tensor_parallel_size"}},
        {"max_model_len",
         {"model", "attention", "proposer", "engine.max_model_len", "engine.kv_cache_dtype",
          "engine.kv_cache_dtype_layers", "engine.block_size", "engine.num_blocks", "engine.kv_cache_memory",
          "engine.tensor_parallel_size"}},
        {"draft_model", {"proposer"}},
        {"draft_weight_bytes", {"proposer"}},
        {"block_size", {"engine.block_size"}},
        {"threads", {"engine.threads", "engine.tensor_parallel_size", "device"}},
        {"device_name", {"device", "engine.threads"}},
        {"isa", {"device"}},
        {"tensor_parallel_size", {"engine.tensor_parallel_size"}},
        {"synthetic_acceptance", {"speculative"}},
        {"simulated", {"device"}}};
    return table;
}

bool touches(const std::string& declared, const std::string& key) {
    return declared == key || declared.starts_with(key + ".") || key.starts_with(declared + ".");
}

std::filesystem::path given_tokenizer(const config::ModelSettings& model) {
    return model.tokenizer.empty() ? model.path : model.tokenizer;
}

// The bytes of a tokenizer's folder that decide on tokens. A GGUF file has its tokenizer in it.
Result<std::vector<InputFile>> tokenizer_files(const config::ModelSettings& model) {
    namespace fs = std::filesystem;
    const fs::path given = given_tokenizer(model);
    std::error_code error;
    const bool is_folder = fs::is_directory(given, error);
    std::vector<InputFile> out;
    if (!is_folder && given.extension() == ".gguf") return out;
    std::vector<std::string> names = {"tokenizer.json", "tokenizer_config.json", "tokenizer.model",  "tiktoken.model",
                                      "vocab.json",     "merges.txt",            "added_tokens.json"};
    if (!is_folder && std::ranges::find(names, given.filename().string()) == names.end())
        names.push_back(given.filename());
    const fs::path folder = is_folder ? given : given.parent_path();
    for (const std::string& name : names)
        if (fs::exists(folder / name, error)) PB_CHECK(read_input(folder / name, out));
    return out;
}

// What tokens follow from, by digests: one file where that decides alone, else all of the folder, with their names.
using Digests = std::map<std::string, std::string>;
Result<Digests> deciding_files(const config::ModelSettings& model) {
    namespace fs = std::filesystem;
    const fs::path given = given_tokenizer(model);
    std::error_code error;
    const bool is_folder = fs::is_directory(given, error);
    if (!is_folder && given.extension() == ".gguf") {
        constexpr uint64_t kMaxFileBytes = 256ull << 20;
        const auto whole = read_whole_file(given, kMaxFileBytes);
        return Digests{{"", whole ? sha256_hex(*whole) : given.string()}};
    }
    PB_TRY(const auto files, tokenizer_files(model));
    constexpr std::string_view kWhole = "tokenizer.json";
    const std::string own = is_folder ? std::string(kWhole) : given.filename().string();
    const bool is_part = own == "vocab.json" || own == "merges.txt" || own.ends_with(".model"); // read with others
    Digests out;
    for (const InputFile& file : files) {
        const std::string name = fs::path(file.path).filename().string();
        if (name == own && !is_part) return Digests{{"", file.sha256}};
        if (name != kWhole) out[name] = file.sha256;
    }
    return out;
}

Result<> same_tokens(const PreparedVariants& prepared, const PreparedVariant& e) {
    const PreparedVariant& base = prepared.variants[prepared.baseline];
    const config::ModelSettings &ours = e.loaded.config.model, &theirs = base.loaded.config.model;
    if (given_tokenizer(ours) == given_tokenizer(theirs)) return {};
    PB_TRY(const auto of_ours, deciding_files(ours));
    PB_TRY(const auto of_theirs, deciding_files(theirs));
    if (of_ours == of_theirs) return {};
    return invalid("variant '" + e.name + "': its tokenizer is not that of '" + base.name +
                   "', so they cannot be given the same prompts (give both the same model.tokenizer)");
}

// Of a request that says whether the workload's are accepted.
engine::SamplingParams sampling_of_one(const WorkloadSpec& workload) {
    engine::SamplingParams out = workload.sampling;
    const auto* fixed =
        workload.output_tokens && !workload.max_tokens ? std::get_if<FixedLength>(&*workload.output_tokens) : nullptr;
    out.max_tokens = std::max(1u, fixed ? fixed->tokens : out.min_tokens); // lengths that are drawn are not judged
    out.ignore_eos = workload.ignore_eos;
    return out;
}

// As far as that can be said without an engine.
void check_sampling_of(const VariantSpec& v, int32_t max_logprobs, config::Faults& faults) {
    constexpr uint32_t kAnyVocabulary = 1u << 31;
    engine::SamplingParams sampling = sampling_of_one(v.workload);
    const auto checked = engine::check_sampling(sampling, {kAnyVocabulary, max_logprobs});
    if (checked) return;
    const config::Node* given = v.workload_given.find("sampling");
    faults.add((given ? given : &v.workload_given)->origin, "'sampling': " + checked.error());
}

}  // namespace

Result<PreparedVariant> prepare_variant(const ExperimentSpec& spec, size_t variant, const host::Registry& registry) {
    if (variant >= spec.variants.size()) return not_found("there is no variant " + std::to_string(variant));
    const VariantSpec& v = spec.variants[variant];
    auto loaded = config::load_engine_config(
        config::merge(config::engine_part(spec.document), config::engine_part(v.patch)), registry);
    const std::string where = spec.variants.size() > 1 ? "variant '" + config::printable(v.name) + "':\n" : "";
    if (!loaded) return fail(loaded.code(), where + loaded.error());
    std::vector<TimedSwap> timed = v.workload.at;
    timed.insert(timed.end(), v.at.begin(), v.at.end());
    config::Faults faults;
    execution::check_allowed_plugins(*loaded, registry, faults);
    auto swaps = swap_tasks(timed, registry, faults);
    check_sampling_of(v, loaded->config.engine.max_logprobs, faults);
    if (faults.any()) return invalid(where + faults.failure().text);
    config::Node patch = v.patch;
    if (!v.at.empty()) patch.set("at", v.at_given);
    config::Node own = config::Node::map(); // what it may change beside the engine's keys
    own.set("workload", v.workload_given);
    own.set("warmup.requests", config::Node::scalar(std::to_string(v.warmup.requests)));
    own.set("simulation.step_jitter", config::Node::scalar(config::print_float(v.jitter.step_jitter)));
    own.set("simulation.run_jitter", config::Node::scalar(config::print_float(v.jitter.run_jitter)));
    return PreparedVariant{v.name, std::move(patch), *std::move(loaded), std::move(own), std::move(swaps), {}, {}, {}};
}

Result<PreparedVariants> prepare_variants(const ExperimentSpec& spec, const host::Registry& registry) {
    PreparedVariants prepared;
    prepared.baseline = spec.baseline;
    std::string faults;
    StatusCode code{}; // of the first
    std::set<std::string> seen; // what all variants share is said once
    for (size_t v = 0; v < spec.variants.size(); ++v) {
        auto variant = prepare_variant(spec, v, registry);
        if (variant) {
            prepared.variants.push_back(*std::move(variant));
            continue;
        }
        const std::string& text = variant.error();
        if (faults.empty()) code = variant.code();
        const size_t head = spec.variants.size() > 1 ? text.find('\n') + 1 : 0; // the variant's name
        if (seen.insert(text.substr(head)).second) faults += (faults.empty() ? "" : "\n") + text;
    }
    if (!faults.empty()) return fail(code, std::move(faults));
    return prepared;
}

FlatTree effective_tree(const config::Loaded& loaded, const engine::EngineFacts& facts) {
    FlatTree tree;
    flatten(loaded.effective, "", tree);
    const Json chosen = facts_of(facts);
    for (const auto& [name, value] : chosen.items())
        tree["automatic." + name] = value.is_string() ? value.get<std::string>() : value.dump();
    for (const host::Identity& p : facts.plugins) {
        tree["plugins." + p.kind + ".name"] = p.name;
        tree["plugins." + p.kind + ".version"] = p.version;
        tree["plugins." + p.kind + ".sha256"] = p.sha256;
    }
    return tree;
}

std::vector<std::string> explained_paths(const std::vector<std::string>& declared) {
    std::vector<std::string> out;
    for (std::string path : declared) {
        // Another plugin brings keys of its own, another model its automatic choices.
        for (const char* last : {".plugin", ".path"})
            if (path.ends_with(last)) path.resize(path.size() - std::string_view(last).size());
        out.push_back(path);
        for (const Cause& c : causes())
            if (std::any_of(c.keys.begin(), c.keys.end(), [&](const std::string& key) { return touches(path, key); }))
                out.push_back(std::string("automatic.") + c.fact);
        out.push_back("plugins." + path.substr(0, path.find('.')));
    }
    return out;
}

Result<LoadedParts> try_one(const PreparedVariant& variant, const WorkloadSpec& workload,
                            const host::Registry& registry, host::Prober& prober, Clock& clock,
                            parallel::World& world) {
    PB_TRY(const auto engine, engine::Engine::create(variant.loaded.config, registry, clock, nullptr, &world));
    engine::EngineFacts facts = engine->facts();
    PB_TRY(const auto swaps, RunSwaps::prepare(*engine, variant.swaps, registry, prober));
    engine::Request request;
    request.prompt = {0};
    request.sampling = sampling_of_one(workload);
    if (facts.max_model_len > 1)
        request.sampling.max_tokens = std::min(request.sampling.max_tokens, facts.max_model_len - 1);
    const auto added = engine->add_request(std::move(request));
    if (!added) return prefixed("workload.sampling", added.failure());
    engine->abort(*added);
    return LoadedParts{std::move(facts), swaps.brought_in()};
}

Result<> try_out(PreparedVariants& prepared, const TryOne& try_one) {
    prepared.limits = {~0u, ~0u};
    for (size_t v = 0; v < prepared.variants.size(); ++v) {
        PreparedVariant& e = prepared.variants[v];
        auto tried = try_one(v);
        if (!tried) return prefixed("variant '" + e.name + "'", tried.failure());
        e.facts = std::move(tried->facts);
        e.brought_in = std::move(tried->brought_in);
        prepared.limits.max_model_len = std::min(prepared.limits.max_model_len, e.facts.max_model_len);
        prepared.limits.vocab_size = std::min(prepared.limits.vocab_size, e.facts.model.vocab_size);
    }
    const PreparedVariant& first = prepared.variants[prepared.baseline];
    constexpr std::string_view kNoWeights = "dummy";
    PB_TRY(prepared.tokenizer,
           engine::load_tokenizer(first.loaded.config, first.facts.model.identity != kNoWeights));
    if (prepared.tokenizer) {
        PB_TRY(prepared.tokenizer_files, tokenizer_files(first.loaded.config.model));
    }
    const PreparedVariant& base = prepared.variants[prepared.baseline];
    const auto tree_of = [](const PreparedVariant& e) {
        FlatTree tree = effective_tree(e.loaded, e.facts);
        flatten(e.own_keys, "", tree);
        for (size_t i = 0; i < e.swaps.size(); ++i) tree["at." + std::to_string(i)] = e.swaps[i].text();
        return tree;
    };
    const FlatTree base_tree = tree_of(base);
    for (PreparedVariant& e : prepared.variants) {
        if (prepared.tokenizer) PB_CHECK(same_tokens(prepared, e));
        std::vector<std::string> declared = leaf_paths(e.patch);
        for (std::string& path : leaf_paths(base.patch)) declared.push_back(std::move(path));
        if (e.patch.find("at") || base.patch.find("at")) declared.push_back("at");
        e.differences = differences(base_tree, tree_of(e), explained_paths(declared));
    }
    return {};
}

std::string facts_json(const engine::EngineFacts& f) { return facts_of(f).dump(); }

std::string plugins_json(const PreparedVariant& v) {
    Json list = Json::array();
    for (const auto* part : {&v.facts.plugins, &v.brought_in})
        for (const host::Identity& p : *part)
            list.push_back({{"kind", p.kind},
                            {"name", p.name},
                            {"version", p.version},
                            {"sha256", p.sha256},
                            {"build", p.build},
                            {"path", p.path}});
    return list.dump();
}

}  // namespace patchbay::experiment
