#include "cli/commands.hpp"

#include <algorithm>
#include <iostream>
#include <memory>

#include "base/printable.hpp"
#include "bench/kv_bench.hpp"
#include "bench/scheduler_bench.hpp"
#include "cli/engine_flags.hpp"
#include "cli/flag_checks.hpp"
#include "cli/plugin_dirs.hpp"
#include "config/load.hpp"

namespace patchbay::cli {
namespace {

struct SchedulerOptions {
    std::vector<std::string> plugin_dirs;
    config::Overrides overrides;
    std::vector<uint32_t> running = {256}, waiting = {0, 10'000};
    bench::SchedulerCase asked;
    bool json = false;
};

Result<> bench_scheduler(const SchedulerOptions& o) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    config::Overrides overrides = o.overrides; // the model is left out later, but one must be named
    overrides.push_back({"model.load_format", "dummy", ""});
    overrides.push_back({"model.shape", "{architectures: [none]}", ""});
    PB_TRY(const auto loaded, config::load_engine_config("", registry, overrides));
    std::vector<bench::SchedulerResult> results;
    for (const uint32_t running : o.running)
        for (const uint32_t waiting : o.waiting) {
            bench::SchedulerCase one = o.asked;
            one.running = running;
            one.waiting = waiting;
            PB_TRY(auto result, in_one_line(bench::bench_scheduler(loaded.config, registry, one)));
            results.push_back(std::move(result));
        }
    const std::string& plugin = loaded.config.scheduler.plugin;
    std::cout << (o.json ? bench::json_of(plugin, results) + "\n" : bench::table_of(plugin, results));
    return {};
}

struct KvOptions {
    std::vector<uint32_t> block_sizes = {16, 64};
    bench::KvCase asked;
    bool json = false;
};

Result<> bench_kv(const KvOptions& o) {
    const RealClock clock;
    std::vector<bench::KvResult> results;
    for (const uint32_t block_size : o.block_sizes) {
        bench::KvCase one = o.asked;
        one.block_size = block_size;
        PB_TRY(auto result, bench::bench_kv(one, clock));
        results.push_back(result);
    }
    std::cout << (o.json ? bench::json_of(results) + "\n" : bench::table_of(results));
    return {};
}

void check_prompt(const KvOptions& o) {
    const uint32_t largest = std::ranges::max(o.block_sizes);
    if (o.asked.prompt > largest) return; // else nothing is ever found in the cache
    throw CLI::ValidationError("--prompt", "got '" + std::to_string(o.asked.prompt) +
                                               "', expected more than the largest --block-size, " +
                                               std::to_string(largest));
}

void add_scheduler(Commands& commands, CLI::App* bench) {
    CLI::App* app = bench->add_subcommand("scheduler", "A step without its model: plan, apply, build the batch");
    app->footer(
        "Examples:\n"
        "  patchbay bench scheduler\n"
        "  patchbay bench scheduler --scheduler sjf --running 64,256 --waiting 0,1000,10000");
    const auto o = std::make_shared<SchedulerOptions>();
    const KeyFlags key(*app, std::shared_ptr<config::Overrides>(o, &o->overrides));
    add_key_flags(key, {"--scheduler", "--block-size"});
    add_plugin_dirs(*app, o->plugin_dirs);
    add_number(*app, "--running", o->running, "sequences that decode in every step, a list", 1, 4096);
    add_number(*app, "--waiting", o->waiting, "sequences that wait, a list", 0, 100'000);
    add_number(*app, "--prompt", o->asked.prompt, "tokens of each prompt", 1, 8192);
    add_number(*app, "--steps", o->asked.steps, "timed steps; medians are reported", 1, 100'000);
    app->add_flag("--json", o->json, "print JSON");
    set_action(commands, app, o, {bench_scheduler});
}

void add_kv(Commands& commands, CLI::App* bench) {
    CLI::App* app = bench->add_subcommand("kv", "The KV cache's bookkeeping per token: blocks, identities, prefixes");
    app->footer("Example:\n  patchbay bench kv --block-size 16,32,64 --prompt 4096");
    const auto o = std::make_shared<KvOptions>();
    add_number(*app, "--block-size", o->block_sizes, "tokens in a KV block, a list", 1, 4096);
    add_number(*app, "--prompt", o->asked.prompt, "tokens of each prompt", 64, 65'536);
    add_number(*app, "--sequences", o->asked.sequences, "sequences at once", 1, 1024);
    add_number(*app, "--groups", o->asked.groups, "KV groups of layers that keep all tokens", 1, 16);
    add_number(*app, "--repeats", o->asked.repeats, "number of measurements; medians are reported", 1, 1000);
    app->add_flag("--json", o->json, "print JSON");
    set_action(commands, app, o, {.run = bench_kv, .check = check_prompt});
}

}  // namespace

void add_host_benches(Commands& commands, CLI::App* bench) {
    add_scheduler(commands, bench);
    add_kv(commands, bench);
}

}  // namespace patchbay::cli
