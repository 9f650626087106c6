#include "cli/commands.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/words.hpp"
#include "cli/admin_flags.hpp"
#include "cli/built_from.hpp"
#include "cli/flag_checks.hpp"
#include "cli/interruption.hpp"
#include "cli/plugin_dirs.hpp"
#include "cli/print_results.hpp"
#include "cli/report_command.hpp"
#include "cli/run_control.hpp"
#include "cli/step_file_flags.hpp"
#include "experiment/against_itself.hpp"
#include "experiment/portable_spec.hpp"
#include "experiment/progress_bar.hpp"
#include "experiment/repeats_table.hpp"
#include "experiment/results_resume.hpp"
#include "experiment/run_experiment.hpp"
#include "experiment/run_process.hpp"
#include "experiment/spec_load.hpp"
#include "metrics/server.hpp"
#include "parallel/launch.hpp"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
    std::string spec_file, results, resume; // resume: a folder of results, instead of the file
    std::vector<std::string> plugin_dirs, only;
    int metrics_port = -1;
    bool no_report = false, against_itself = false, dry_run = false, full = false, in_process = false;
    uint32_t experiments = 20; // against itself
    uint32_t jobs = 1;
    engine::StepFilePaths files;
    AdminFlags admin;
};

// The experiment of the file, or of the record that is to be continued; with the variants that are asked for.
Result<experiment::ExperimentSpec> spec_of(const RunOptions& o) {
    if (!o.resume.empty()) {
        constexpr config::DocumentLimits kLimits{.bytes = 64 << 20, .nodes = 4'000'000};
        PB_TRY(const auto recorded, experiment::recorded_spec(fs::path(o.resume) / "results.sqlite"));
        PB_TRY(const auto document, config::parse_yaml(recorded.yaml, "the record", kLimits));
        return experiment::spec_from(document, recorded.name);
    }
    PB_TRY(auto spec, experiment::load_spec(o.spec_file));
    if (o.only.empty()) return spec;
    PB_TRY(const auto document, experiment::only(spec, o.only));
    return experiment::spec_from(document, spec.name);
}

// The report is a convenience: without Python the numbers are complete all the same.
void end_with_report(const fs::path& database) {
    if (const auto report = make_report(database)) {
        std::cout << "report: " << report->string() << '\n';
        return;
    }
    std::cout << "results: " << database.string()
              << "; no report was made, to make it: "
              << (in_checkout() ? "scripts/install-deps" : "apt install python3-matplotlib") << " && patchbay report "
              << in_shell_quotes(database.parent_path().string()) << '\n';
}

void print_outcome(const experiment::ExperimentSpec& spec, const experiment::PreparedVariants& prepared,
                   const experiment::Outcome& outcome, Detail detail) {
    ShownResults shown{spec.question, {}, prepared.baseline, &outcome.conclusion, outcome.swaps};
    for (const experiment::PreparedVariant& e : prepared.variants) shown.variants.push_back(e.name);
    print_results(shown, detail);
}

// Those of the first engine with several ranks, which is the one that all others share its ranks with.
Result<config::ParallelSettings> parallel_of_all(const RunOptions& o) {
    PB_TRY(const auto spec, spec_of(o));
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    PB_TRY(const auto prepared, experiment::prepare_variants(spec, registry));
    for (const experiment::PreparedVariant& e : prepared.variants)
        if (e.loaded.config.engine.tensor_parallel_size > 1) return e.loaded.config.parallel;
    return config::ParallelSettings();
}

void print_written(const engine::StepFilePaths& files) {
    if (!files.trace.empty()) std::cout << "trace: " << files.trace << '\n';
    if (!files.decisions.empty()) std::cout << "decisions: " << files.decisions << '\n';
    if (!files.kv_events.empty()) std::cout << "KV events: " << files.kv_events << '\n';
}

// Of a variant without one the experiment says nothing.
Result<> check_valid(const experiment::Outcome& outcome) {
    if (outcome.without_valid_run.empty()) return {};
    return fail("no valid run of " + joined(outcome.without_valid_run) + ": see the notes above");
}

fs::path folder_of(const RunOptions& o, const experiment::ExperimentSpec& spec) {
    if (!o.resume.empty()) return o.resume;
    if (!o.results.empty()) return o.results;
    return !spec.results.empty() ? fs::path(spec.results)
                                 : fs::path("results") / (spec.name + "-" + utc_now("%Y%m%d-%H%M%S"));
}

experiment::ExperimentOptions options_of(const RunOptions& o, const std::string& command) {
    experiment::ExperimentOptions options;
    options.spec_file = o.spec_file;
    options.built_from = built_from();
    options.command = command;
    options.version = PATCHBAY_VERSION;
    options.interrupted = interrupted;
    options.plugin_dirs = o.plugin_dirs;
    options.jobs = o.jobs;
    options.resume = !o.resume.empty();
    options.files = o.files;
    options.make_control = make_run_control;
    options.control = {o.admin.address, o.admin.token_file};
    // Ranks that mpirun or srun started wait for the process that they know.
    const auto job = parallel::launched([](const char* name) -> const char* { return std::getenv(name); });
    if (!o.in_process && job && !*job) options.program = experiment::kThisProgram;
    return options;
}

// Each of the experiments has a folder of its own, none a report: there is nothing to see but how often they are wrong.
// Where one fails or is interrupted, those before it are counted all the same.
Result<> run_against_itself(const RunOptions& o, const std::string& command) {
    PB_TRY(const auto given, spec_of(o));
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    const fs::path folder = folder_of(o, given);
    experiment::ExperimentOptions options = options_of(o, command);
    experiment::FalseRates rates;
    catch_interrupts();
    RealClock clock;
    const auto run_one = [&](uint32_t n) -> Result<> {
        PB_TRY(const auto spec, experiment::spec_from(experiment::against_itself(given, n), given.name));
        PB_TRY(auto prepared, experiment::prepare_variants(spec, registry));
        options.folder = folder / ("experiment-" + std::to_string(n));
        auto bar = std::make_unique<experiment::ProgressBar>(clock);
        options.progress = [&](const experiment::RunProgress& p) { bar->update(p); };
        const auto outcome = in_one_line(experiment::run_experiment(spec, prepared, registry, clock, options));
        bar.reset();
        if (!outcome) return outcome.failure();
        if (!outcome->complete) return fail(StatusCode::kCancelled, "interrupted");
        PB_CHECK(outcome->step_files_joined);
        rates.add(outcome->conclusion);
        if (n == 1)
            std::cout << o.experiments << " experiments of " << prepared.variants.size() << " copies of "
                      << given.variants[given.baseline].name << ", " << experiment::repeats_text(spec) << ", "
                      << spec.primary.size() << " primary metrics" << std::endl;
        return {};
    };
    Result<> ended;
    uint32_t complete = 0;
    while (complete < o.experiments && (ended = run_one(complete + 1))) complete += 1;
    if (complete == 0) return ended;
    if (!ended) std::cout << "not all of them were run; of the first " << complete << ":\n";
    std::cout << rates.text() << "results: " << folder.string() << std::endl;
    return ended;
}

Result<> run(const RunOptions& o, const std::string& command, const experiment::ExperimentSpec& spec,
             experiment::PreparedVariants& prepared, const host::Registry& registry) {
    experiment::ExperimentOptions options = options_of(o, command);
    options.folder = folder_of(o, spec);
    metrics::Metrics all;
    std::unique_ptr<metrics::Server> server;
    if (o.metrics_port >= 0) {
        server = std::make_unique<metrics::Server>(static_cast<uint16_t>(o.metrics_port), all);
        std::cerr << "metrics: http://127.0.0.1:" << server->port() << "/metrics\n";
        options.metrics = &all;
    }
    catch_interrupts();

    RealClock clock;
    if (o.dry_run) {
        PB_TRY(const std::string text, experiment::dry_run(spec, prepared, registry, clock, options));
        std::cout << printable_lines(text) << "results would be in " << options.folder.string() << '\n';
        return {};
    }
    auto bar = std::make_unique<experiment::ProgressBar>(clock);
    options.progress = [&](const experiment::RunProgress& p) { bar->update(p); };
    auto outcome = experiment::run_experiment(spec, prepared, registry, clock, options);
    bar.reset();
    if (!outcome) return outcome.failure();
    print_outcome(spec, prepared, *outcome, o.full ? Detail::kFull : Detail::kScreen);
    if (!o.no_report) end_with_report(outcome->database);
    else std::cout << "results: " << outcome->database.string() << '\n';
    print_written(outcome->step_files);
    if (!outcome->complete) return fail(StatusCode::kCancelled, "interrupted; the results are partial");
    PB_CHECK(check_valid(*outcome));
    return outcome->step_files_joined;
}

// With what changes the runs, for the report.
std::string command_of(const RunOptions& o) {
    std::string out = "patchbay run " + in_shell_quotes(o.spec_file), only;
    for (const std::string& dir : o.plugin_dirs) out += " --plugin-dir " + in_shell_quotes(dir);
    for (const std::string& name : o.only) only += (only.empty() ? "" : ",") + name;
    if (!only.empty()) out += " --only " + in_shell_quotes(only);
    if (o.jobs > 1) out += " --jobs " + std::to_string(o.jobs);
    if (o.in_process) out += " --in-process";
    return out;
}

Result<> load_and_run(const RunOptions& o) {
    if (o.against_itself) return run_against_itself(o, command_of(o));
    PB_TRY(const auto spec, spec_of(o));
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    PB_TRY(auto prepared, experiment::prepare_variants(spec, registry));
    return in_one_line(run(o, command_of(o), spec, prepared, registry));
}

void check_usage(const RunOptions& o) {
    if (o.spec_file.empty() && o.resume.empty()) throw CLI::RequiredError("EXPERIMENT");
    check(o.admin);
    if (o.admin.named() && o.jobs > 1)
        throw CLI::ValidationError("--admin", "one address is not for several runs at a time (--jobs)");
    if (o.metrics_port >= 0 && o.jobs > 1)
        throw CLI::ValidationError("--metrics-port", "one set of metrics is not for several runs at a time (--jobs)");
}

}  // namespace

void add_run_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("run", "Run an experiment: compare variants under a workload");
    app->footer("Examples:\n"
                "  patchbay run experiments/quickstart/experiment.yaml\n"
                "  patchbay run sweep.yaml --results results/sweep --metrics-port 8001\n"
                "  patchbay run sweep.yaml --only fcfs,sjf --dry-run\n"
                "  patchbay run --resume results/sweep\n"
                "  patchbay run --aa sweep.yaml --experiments 40\n"
                "docs/experiments.md describes the file and what the numbers mean.");
    auto o = std::make_shared<RunOptions>();
    auto* file = app->add_option("EXPERIMENT", o->spec_file, "experiment YAML")->check(CLI::ExistingFile);
    auto* results = app->add_option("--results", o->results, "folder for results (default: results/<name>-<time>)");
    auto* resume =
        app->add_option("--resume", o->resume, "instead: the folder of results of an experiment that was interrupted")
            ->excludes(file)
            ->excludes(results)
            ->check(CLI::ExistingDirectory);
    add_plugin_dirs(*app, o->plugin_dirs);
    auto* metrics_port = app->add_option("--metrics-port", o->metrics_port,
                                         "serve /metrics on 127.0.0.1:PORT while running (0: any free port)")
                             ->transform(within(0, 65'535));
    app->add_option("--only", o->only, "run only these variants, separated by commas")
        ->delimiter(',')
        ->excludes(resume)
        ->allow_extra_args(false);
    auto* dry_run = app->add_flag("--dry-run", o->dry_run, "try the variants out and print what would be run")
                        ->excludes(resume);
    app->add_option("--jobs", o->jobs, "simulated runs at a time (default: 1)")->transform(within<uint32_t>(1, 1024));
    add_step_file_flags(*app, std::shared_ptr<engine::StepFilePaths>(o, &o->files),
                        " of the first run of each variant");
    add_admin_flags(*app, std::shared_ptr<AdminFlags>(o, &o->admin));
    app->add_flag("--in-process", o->in_process,
                  "run everything in this process, for a debugger; a plugin that crashes then ends the whole "
                  "experiment");
    auto* no_report = app->add_flag("--no-report", o->no_report, "write the database only");
    auto* full = app->add_flag("--full", o->full, "print every metric, not only the primary ones, and every note");
    auto* aa = app->add_flag("--aa", o->against_itself,
                             "compare the baseline with itself repeatedly, and count false differences")
                   ->excludes(resume)
                   ->excludes(dry_run)
                   ->excludes(metrics_port)
                   ->excludes(full)
                   ->excludes(no_report);
    app->add_option("--experiments", o->experiments, "with --aa: how many (default: 20)")
        ->needs(aa)
        ->transform(within<uint32_t>(1, 10'000));
    set_action(commands, app, o, {.run = load_and_run, .check = check_usage, .parallel = parallel_of_all});
}

}  // namespace patchbay::cli
