#include "cli/commands.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "bench/spec_bench.hpp"
#include "cli/flag_checks.hpp"
#include "cli/key_flags.hpp"
#include "cli/plugin_dirs.hpp"
#include "cli/print_error.hpp"
#include "config/load.hpp"
#include "engine/simulation.hpp"

namespace patchbay::cli {
namespace {

struct SpecOptions {
    std::string config, model, prompt_file;
    std::vector<std::string> plugin_dirs;
    config::Overrides overrides;
    bench::SpecCase asked;
    bool json = false;
};

Result<config::Loaded> load(const SpecOptions& o, const host::Registry& registry) {
    const bool is_file = o.model.ends_with(".yaml") || o.model.ends_with(".yml");
    if (is_file && !o.config.empty()) return invalid("a model's file beside --config: one of them can be read");
    config::Overrides overrides = o.overrides;
    if (!o.model.empty() && !is_file) overrides.push_back({"model.path", o.model, "--model"});
    return config::load_engine_config(is_file ? o.model : o.config, registry, overrides);
}

Result<> run(const SpecOptions& o) {
    bench::SpecCase asked = o.asked;
    if (!o.prompt_file.empty()) {
        std::ifstream in(o.prompt_file);
        if (!in) return fail(code_of_open(errno), "cannot read " + o.prompt_file);
        for (std::string line; std::getline(in, line);)
            if (!line.empty()) asked.prompts.push_back(line + " ");
        if (asked.prompts.empty()) return invalid(o.prompt_file + " has no line with a prompt");
    }
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    PB_TRY(const auto loaded, load(o, registry));
    PB_TRY(const auto clock, in_one_line(engine::clock_for(loaded.config, registry)));
    const bool watched = isatty(STDERR_FILENO) != 0;
    const auto progress = [watched](const std::string& what) {
        if (watched) std::fprintf(stderr, "\r\033[K%s", what.c_str());
    };
    auto measured = bench::bench_spec(loaded.config, registry, asked, *clock, progress);
    progress("");
    PB_TRY(const auto result, in_one_line(std::move(measured)));
    std::cout << (o.json ? bench::json_of(result, loaded.config, asked) + "\n"
                         : bench::table_of(result, loaded.config, asked));
    return {};
}

}  // namespace

void add_spec_bench(Commands& commands, CLI::App* bench) {
    CLI::App* app = bench->add_subcommand("spec", "What a proposer is worth: with it and without, in one run");
    app->footer(
        "Examples:\n"
        "  patchbay bench spec --model models/demo-target --proposer ngram --num-speculative-tokens 4 --copies 3\n"
        "  patchbay bench spec --model configs/models/llama-3.2-1b.yaml --proposer last_token \\\n"
        "    --num-speculative-tokens 2 --rejection-sample-method synthetic --synthetic-acceptance-rates '[0.7, 0.5]'");
    const auto o = std::make_shared<SpecOptions>();
    const KeyFlags key(*app, std::shared_ptr<config::Overrides>(o, &o->overrides));
    app->add_option("--config", o->config, "YAML file of the engine");
    app->add_option("--model", o->model, "folder, GGUF file, or a YAML with `model:` such as configs/models/*.yaml");
    key("--proposer", "proposer.plugin", "proposer plugin");
    key("--draft-model", "proposer.model", "model of the proposer draft_model: a folder, a GGUF or a YAML file");
    key("--num-speculative-tokens", "engine.num_speculative_tokens", "drafts per sequence and step");
    key("--speculation-mode", "speculative.mode", "fixed, or adaptive");
    key("--max-paths", "speculative.max_paths", "paths that drafts may branch into");
    key("--rejection-sample-method", "speculative.rejection_sample_method", "match, rejection or synthetic");
    key("--synthetic-acceptance-rates", "speculative.synthetic_acceptance_rates", "a list, as [0.7, 0.5]");
    key("--threads", "engine.threads", "threads of the CPU device (default: all cores)");
    key("--sampler", "sampler.plugin", "sampler plugin");
    add_plugin_dirs(*app, o->plugin_dirs);
    app->add_option("--prompt-file", o->prompt_file, "a prompt a line (default: prompts of random tokens)");
    app->add_option("--requests", o->asked.requests, "prompts of random tokens")
        ->check(within<uint32_t>(1, 10'000))
        ->capture_default_str();
    app->add_option("--prompt", o->asked.prompt_tokens, "tokens of each")
        ->check(within<uint32_t>(1, 1u << 20))
        ->capture_default_str();
    app->add_option("--copies", o->asked.copies, "times that a prompt says its text")
        ->check(within<uint32_t>(1, 1000))
        ->capture_default_str();
    app->add_option("--batch", o->asked.batch, "requests at once")
        ->check(within<uint32_t>(1, 4096))
        ->capture_default_str();
    app->add_option("--output", o->asked.output, "tokens of an output")
        ->check(within<uint32_t>(2, 1u << 20))
        ->capture_default_str();
    app->add_option("--temperature", o->asked.temperature, "0: greedy")
        ->check(within<float>(0, 100))
        ->capture_default_str();
    app->add_option("--repeats", o->asked.repeats, "times that all is run each way; medians count")
        ->check(within<uint32_t>(1, 1000))
        ->capture_default_str();
    app->add_flag("--json", o->json, "print JSON");
    app->callback([&commands, o] {
        commands.parallel = [o]() -> Result<config::ParallelSettings> {
            PB_TRY(const auto registry, registry_of(o->plugin_dirs));
            PB_TRY(const auto loaded, load(*o, registry));
            return loaded.config.parallel;
        };
        commands.chosen = [o] { return exit_code("patchbay bench spec", run(*o)); };
    });
}

}  // namespace patchbay::cli
