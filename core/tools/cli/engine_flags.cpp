#include "cli/engine_flags.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "cli/plugin_dirs.hpp"
#include "experiment/spec_load.hpp"

namespace patchbay::cli {
namespace {

struct KeyFlag {
    const char *flag, *path, *description;
};

constexpr KeyFlag kFlags[] = {
    {"--model", "model.path", "Hugging Face folder of the model, or a GGUF file"},
    {"--dtype", "model.dtype", "weights as float32 or bfloat16 (default: as in the checkpoint)"},
    {"--quantization", "model.quantization", "weights as int8, int4 or none (default: as in the checkpoint)"},
    {"--quantization-group-size", "model.quantization_group_size",
        "32 or 128 columns share a scale; of int8 also 0: all of a row"},
    {"--load-format", "model.load_format", "auto, or dummy for random weights"},
    {"--tokenizer", "model.tokenizer", "folder or file of a tokenizer, or none (default: the model's)"},
    {"--scheduler", "scheduler.plugin", "scheduler plugin"},
    {"--sampler", "sampler.plugin", "sampler plugin"},
    {"--attention", "attention.plugin", "attention plugin"},
    {"--device", "device.plugin", "device plugin"},
    {"--proposer", "proposer.plugin", "proposer plugin, for speculative decoding"},
    {"--draft-model", "proposer.model", "model of the proposer draft_model: a folder, a GGUF or a YAML file"},
    {"--kv-policy", "kv_policy.plugin", "kv_policy plugin: which cached page is evicted next (default: none)"},
    {"--num-speculative-tokens", "engine.num_speculative_tokens", "maximum of drafts for each sequence and step"},
    {"--max-num-seqs", "engine.max_num_seqs", "sequences that run at once"},
    {"--max-num-batched-tokens", "engine.max_num_batched_tokens", "token budget of a step"},
    {"--max-model-len", "engine.max_model_len", "tokens of prompt and output"},
    {"--tensor-parallel-size", "engine.tensor_parallel_size", "ranks that compute the model together (default: 1)"},
    {"--block-size", "engine.block_size", "tokens in a KV page"},
    {"--num-blocks", "engine.num_blocks", "pages of the KV cache (default: as many as kv_cache_memory holds)"},
    {"--kv-cache-memory", "engine.kv_cache_memory", "bytes for KV, such as 256MiB"},
    {"--max-logprobs", "engine.max_logprobs",
        "maximum of logprobs and prompt_logprobs of a request (default: 100; -1: the whole vocabulary)"},
    {"--kv-cache-dtype", "engine.kv_cache_dtype", "float32, bfloat16, fp8 or int8 (default: as the weights)"},
    {"--enable-prefix-caching", "engine.enable_prefix_caching", "true or false"},
    {"--preemption-mode", "engine.preemption_mode", "recompute, swap or auto"},
    {"--swap-space", "engine.swap_space", "GiB of host memory for offloaded KV (default: 4)"},
    {"--engine-seed", "engine.seed", "seed of requests that have none"},
    {"--threads", "engine.threads", "threads of the pool (default: the cores that this process may use)"},
};

}  // namespace

void add_engine_flags(CLI::App& app, const std::shared_ptr<EngineFlags>& o) {
    app.add_option("--config", o->config_file, "engine YAML; the flags below override it")->check(CLI::ExistingFile);
    const KeyFlags key(app, std::shared_ptr<config::Overrides>(o, &o->overrides));
    for (const KeyFlag& f : kFlags) key(f.flag, f.path, f.description);
    add_plugin_dirs(app, o->plugin_dirs);
}

void add_key_flags(const KeyFlags& key, std::initializer_list<std::string_view> flags) {
    for (const std::string_view flag : flags) {
        const KeyFlag* const f = std::ranges::find(kFlags, flag, &KeyFlag::flag);
        key(f->flag, f->path, f->description);
    }
}

Result<config::Loaded> load_engine(const EngineFlags& o, const host::Registry& registry) {
    if (o.config_file.empty()) return config::load_engine_config(config::Node::map(), registry, o.overrides);
    PB_TRY(const config::Document document, config::load_document(o.config_file));
    if (experiment::is_experiment(document.root))
        return invalid(printable(o.config_file) + ": this is an experiment: `patchbay run " +
                       printable(o.config_file) + "`");
    return config::load_engine_config(document.root, registry, o.overrides);
}

void print_warnings(const config::Loaded& loaded) {
    for (const std::string& warning : loaded.warnings) spdlog::warn("{}", warning);
}

Result<config::ParallelSettings> parallel_of(const EngineFlags& o) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    PB_TRY(const auto loaded, load_engine(o, registry));
    return loaded.config.parallel;
}

}  // namespace patchbay::cli
