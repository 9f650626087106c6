#include "cli/commands.hpp"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>

#include "base/printable.hpp"
#include "bench/grammar_bench.hpp"
#include "bench/model_bench.hpp"
#include "cli/engine_flags.hpp"
#include "cli/flag_checks.hpp"
#include "cli/plugin_dirs.hpp"
#include "config/load.hpp"
#include "engine/load_tokenizer.hpp"

namespace patchbay::cli {
namespace {

struct BenchOptions {
    std::string model;
    std::vector<std::string> plugin_dirs;
    config::Overrides overrides;
    std::vector<uint32_t> batches = {1}, prompts = {512};
    uint32_t output = 32, repeats = 3;
    bool json = false;
};

// One line that the next one replaces; only on a terminal.
void show_progress(const std::string& what) {
    if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r\033[K%s", what.c_str());
}

Result<config::Loaded> load(const BenchOptions& o, const host::Registry& registry) {
    const bool is_file = o.model.ends_with(".yaml") || o.model.ends_with(".yml");
    config::Overrides overrides = o.overrides;
    if (!o.model.empty() && !is_file) overrides.push_back({"model.path", o.model, "--model"});
    return config::load_engine_config(is_file ? o.model : "", registry, overrides);
}

Result<config::ParallelSettings> parallel_of_model(const BenchOptions& o) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    PB_TRY(const auto loaded, load(o, registry));
    return loaded.config.parallel;
}

Result<> bench_machine(const BenchOptions& o) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    config::Overrides overrides = o.overrides;  // no model is run, but one must be named
    overrides.push_back({"model.load_format", "dummy", ""});
    overrides.push_back({"model.shape", "{architectures: [none]}", ""});
    PB_TRY(const auto loaded, config::load_engine_config("", registry, overrides));
    PB_TRY(const auto machine,
           in_one_line(bench::measure_machine(registry, loaded.config.device, loaded.config.engine.threads)));
    std::cout << (o.json ? bench::json_of(machine) + "\n" : bench::table_of(machine));
    return {};
}

Result<> bench_model(const BenchOptions& o) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    PB_TRY(const auto loaded, load(o, registry));
    std::vector<bench::Case> cases;
    for (const uint32_t prompt : o.prompts)
        for (const uint32_t batch : o.batches) cases.push_back({batch, prompt, o.output});
    auto measured = bench::bench_model(loaded.config, registry, cases, o.repeats, show_progress);
    show_progress("");
    PB_TRY(const auto result, in_one_line(std::move(measured)));
    std::cout << (o.json ? bench::json_of(result) + "\n" : bench::table_of(result));
    return {};
}

struct GrammarOptions {
    std::string tokenizer;
    uint32_t vocab_size = 128'000, repeats = 5;
    bool json = false;
};

Result<> bench_grammar(const GrammarOptions& o) {
    std::shared_ptr<const grammar::Vocabulary> vocabulary;
    if (o.tokenizer.empty()) {
        vocabulary = bench::made_vocabulary(o.vocab_size);
    } else {
        PB_TRY(const auto tokenizer, engine::load_tokenizer(std::filesystem::path(o.tokenizer)));
        vocabulary = grammar::Vocabulary::of(*tokenizer, tokenizer->vocab_size());
    }
    RealClock clock;
    PB_TRY(const auto result, bench::bench_grammars(vocabulary, o.repeats, clock));
    std::cout << (o.json ? bench::json_of(result) + "\n" : bench::table_of(result));
    return {};
}

void add_grammar(Commands& commands, CLI::App* bench) {
    CLI::App* app = bench->add_subcommand(
        "grammar", "What structured output costs: compile time, and the mask for each token");
    app->footer("Example:\n  patchbay bench grammar --tokenizer models/demo-target");
    const auto o = std::make_shared<GrammarOptions>();
    auto* const tokenizer = app->add_option("--tokenizer", o->tokenizer,
                                            "folder or file of a tokenizer (default: a synthetic vocabulary)");
    add_number(*app, "--vocab-size", o->vocab_size, "tokens of the synthetic vocabulary", 1000, 1'000'000)
        ->excludes(tokenizer);
    add_number(*app, "--repeats", o->repeats, "compilations of each; medians are reported", 1, 1000);
    app->add_flag("--json", o->json, "print JSON");
    set_action(commands, app, o, {bench_grammar, print_error});
}

void add(Commands& commands, CLI::App* app, std::shared_ptr<BenchOptions> o, Result<> (*work)(const BenchOptions&)) {
    const KeyFlags key(*app, std::shared_ptr<config::Overrides>(o, &o->overrides));
    add_key_flags(key, {"--device", "--threads"});
    if (work == bench_model) {
        add_key_flags(key, {"--load-format", "--dtype", "--quantization", "--quantization-group-size",
                            "--kv-cache-dtype", "--attention", "--scheduler", "--tensor-parallel-size",
                            "--block-size"});
        key("--max-num-batched-tokens", "engine.max_num_batched_tokens",
            "token budget of a step (default: 512)");
    }
    add_plugin_dirs(*app, o->plugin_dirs);
    app->add_flag("--json", o->json, "print JSON");
    set_action(commands, app, o, {.run = work, .parallel = work == bench_model ? parallel_of_model : nullptr});
}

}  // namespace

void add_bench_command(Commands& commands) {
    CLI::App* bench =
        commands.app.add_subcommand("bench", "Measure the machine, models against its limits, and parts of the host");
    bench->require_subcommand(1);
    bench->footer(
        "Examples:\n"
        "  patchbay bench machine\n"
        "  patchbay bench grammar\n"
        "  patchbay bench scheduler --running 256 --waiting 0,10000\n"
        "  patchbay bench model --model configs/models/llama-3.2-1b.yaml --batch 1,16 --prompt 512");
    CLI::App* machine = bench->add_subcommand("machine", "Peak memory bandwidth and matmul throughput of the device");
    machine->footer("Example:\n  patchbay bench machine --json");
    add(commands, machine, std::make_shared<BenchOptions>(), bench_machine);

    add_grammar(commands, bench);
    add_host_benches(commands, bench);
    add_kv_quality_bench(commands, bench);
    add_spec_bench(commands, bench);

    CLI::App* model =
        bench->add_subcommand("model", "Tokens per second of prefill and decode, and the share of the limit");
    model->footer(
        "Examples:\n"
        "  patchbay bench model --model models/demo-target --batch 1,8 --prompt 128\n"
        "  patchbay bench model --model configs/models/llama-3.2-1b.yaml --load-format dummy --dtype bfloat16");
    const auto o = std::make_shared<BenchOptions>();
    model
        ->add_option("--model", o->model,
                     "Hugging Face folder, GGUF file, or a YAML with `model:` such as configs/models/*.yaml")
        ->required();
    add_number(*model, "--batch", o->batches, "requests decoded at once, a list", 1, 4096);
    add_number(*model, "--prompt", o->prompts, "tokens of a prompt, a list", 1, 1u << 20);
    add_number(*model, "--output", o->output, "tokens of an output", 1, 1u << 20);
    add_number(*model, "--repeats", o->repeats, "measurements of each; medians are reported", 1, 1000);
    add(commands, model, o, bench_model);
}

}  // namespace patchbay::cli
