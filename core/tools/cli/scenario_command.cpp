#include "cli/commands.hpp"

#include <iostream>
#include <memory>

#include "cli/plugin_dirs.hpp"
#include "cli/print_error.hpp"
#include "config/document.hpp"
#include "scenario/load.hpp"
#include "scenario/play.hpp"

namespace patchbay::cli {
namespace {

struct ScenarioOptions {
    std::vector<std::string> files, plugin_dirs;
    std::string policy;
};

Result<scenario::Scenario> read(const std::string& file, const ScenarioOptions& o, const host::Registry& registry) {
    PB_TRY(config::Document document, config::load_document(file));
    if (!o.policy.empty())
        document.root.set("policy", config::Node::string(o.policy, config::Origin::flag("--policy")));
    return scenario::load(document.root, registry);
}

// kUsage: the file is not a scenario.
int run_file(const std::string& file, const ScenarioOptions& o, const host::Registry& registry, host::Prober& prober) {
    const auto scenario = read(file, o, registry);
    if (!scenario) {
        print_faults("", scenario.error());
        return kUsage;
    }
    const auto played = scenario::play(*scenario, registry, prober);
    if (!played) {
        print_error("", file + ": no engine can be made of it: " + played.error());
        return kUsage;
    }
    if (played->difference) {
        std::cout << played->difference->text() << '\n';
        return kFailed;
    }
    std::cout << file << ": ok: " << scenario->steps.size() << " steps, " << played->engine_steps << " of the engine\n";
    return kOk;
}

int run(const ScenarioOptions& o) {
    const auto registry = registry_of(o.plugin_dirs);
    if (!registry) {
        print_error("patchbay scenario run", registry.error());
        return kFailed;
    }
    if (!o.policy.empty())
        if (const auto policy = registry->find("scheduler", o.policy); !policy) {
            print_error("patchbay scenario run", "--policy: " + policy.error());
            return kUsage;
        }
    host::Prober prober;
    int worst = kOk;
    for (const std::string& file : o.files) worst = std::max(worst, run_file(file, o, *registry, prober));
    return worst;
}

}  // namespace

void add_scenario_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("scenario", "Drive a scheduler step by step, without a model");
    app->require_subcommand(1);
    app->footer("Examples:\n"
                "  patchbay scenario run tests/scenarios/*.yaml\n"
                "  patchbay scenario schema > scenario.schema.json");
    const auto o = std::make_shared<ScenarioOptions>();

    CLI::App* run_app = app->add_subcommand("run", "Play scenario files; print the first difference of each");
    run_app->add_option("FILE", o->files, "scenario files")->required();
    run_app->add_option("--policy", o->policy, "scheduler plugin to use instead of each file's `policy`");
    add_plugin_dirs(*run_app, o->plugin_dirs);
    run_app->footer(
        "A scenario is a list of steps: requests that are added, what the model is to have sampled, and what must be\n"
        "so. The engine that plays it is the one that serves; only the model is missing, so nothing is computed and\n"
        "time is the scenario's own.\n"
        "\n"
        "  policy: {plugin: fcfs}\n"
        "  engine: {block_size: 16, num_blocks: 11, max_num_batched_tokens: 100}\n"
        "  steps:\n"
        "    - add: [{id: a, prompt: 80}, {id: b, prompt: 80}]    # prompts of 80 tokens of their own\n"
        "    - expect: {scheduled: {a: 80, b: 20}, running: [a, b]} # plans a step\n"
        "    - output: {a: [7]}                                  # which comes back with token 7 for a\n"
        "    - expect: {scheduled: {a: 1, b: 60}, free_pages: 0}\n"
        "    - abort: [b]\n"
        "\n"
        "  add                 id, prompt, priority, tenant, arrival_ms, deadline_ms, max_tokens, min_tokens,\n"
        "                      stop_token_ids, stop, structured_outputs, n, beam_width, salt, refused, …\n"
        "  output, draft       token ids of each request; synthetic tokens for those that are not named\n"
        "  run, drain          so many steps with synthetic tokens; until all have ended, in at most so many\n"
        "  abort, swap, reset_prefix_cache, wait_ms\n"
        "  in_flight           the step stays on the device while the next one is planned\n"
        "  expect              scheduled, preempted, waiting, running, finished, stop_reason, in_flight, computed,\n"
        "                      cached_tokens, drafts, preemptions, text, decoded, free_pages, cached_pages,\n"
        "                      references, evicted_next, kv_events, hit_tokens, query_tokens, drafted_tokens,\n"
        "                      accepted_tokens, steps, plan_faults, policy, …; sum and count of these\n"
        "\n"
        "A number may be a range: \">= 3\", \"<= 9\" or 2..5.\n"
        "docs/scenarios.md says what each means.\n"
        "Examples:\n"
        "  patchbay scenario run tests/scenarios/*.yaml\n"
        "  patchbay scenario run --policy mine --plugin-dir build tests/scenarios/preemption*.yaml\n"
        "Exit codes: 0 all as expected, 1 a difference, 2 a file that is not a scenario, or bad usage.");
    run_app->callback([&commands, o] { commands.chosen = [o] { return run(*o); }; });

    CLI::App* schema = app->add_subcommand("schema", "Print the JSON Schema of scenario files, for editors");
    schema->footer("Example:\n  patchbay scenario schema > scenario.schema.json\n"
                   "  # first line of a YAML file: # yaml-language-server: $schema=scenario.schema.json");
    schema->callback([&commands] {
        commands.chosen = [] {
            std::cout << scenario::json_schema() << '\n';
            return kOk;
        };
    });
}

}  // namespace patchbay::cli
