#include "cli/commands.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "bench/spec_bench.hpp"
#include "cli/engine_flags.hpp"
#include "cli/flag_checks.hpp"
#include "cli/plugin_dirs.hpp"
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
    print_warnings(loaded);
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
    CLI::App* app = bench->add_subcommand(
        "spec", "Speed-up of speculative decoding: the same requests with and without the proposer");
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
    add_key_flags(key, {"--draft-model", "--num-speculative-tokens"});
    key("--speculation-mode", "speculative.mode", "fixed, or adaptive");
    key("--max-paths", "speculative.max_paths", "paths that drafts may branch into");
    key("--rejection-sample-method", "speculative.rejection_sample_method", "match, rejection or synthetic");
    key("--synthetic-acceptance-rates", "speculative.synthetic_acceptance_rates", "a list, as [0.7, 0.5]");
    add_key_flags(key, {"--threads", "--sampler"});
    add_plugin_dirs(*app, o->plugin_dirs);
    auto* const file =
        app->add_option("--prompt-file", o->prompt_file, "file with one prompt per line (default: random tokens)");
    add_number(*app, "--requests", o->asked.requests, "prompts of random tokens", 1, 10'000)->excludes(file);
    add_number(*app, "--prompt", o->asked.prompt_tokens, "random tokens of each prompt", 1, 1u << 20)->excludes(file);
    add_number(*app, "--copies", o->asked.copies, "repetitions of the text in each prompt", 1, 1000);
    add_number(*app, "--batch", o->asked.batch, "requests at once", 1, 4096);
    add_number(*app, "--output", o->asked.output, "tokens of an output", 2, 1u << 20);
    add_number(*app, "--temperature", o->asked.temperature, "0: greedy", 0, 100);
    add_number(*app, "--repeats", o->asked.repeats, "runs with and without the proposer; medians count", 1, 1000);
    app->add_flag("--json", o->json, "print JSON");
    set_action(commands, app, o,
               {.run = run, .parallel = [](const SpecOptions& given) -> Result<config::ParallelSettings> {
                    PB_TRY(const auto registry, registry_of(given.plugin_dirs));
                    PB_TRY(const auto loaded, load(given, registry));
                    return loaded.config.parallel;
                }});
}

}  // namespace patchbay::cli
