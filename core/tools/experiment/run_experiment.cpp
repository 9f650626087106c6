#include "experiment/run_experiment.hpp"

#include <algorithm>
#include <optional>

#include "base/refusals.hpp"
#include "base/words.hpp"
#include "config/show.hpp"
#include "experiment/campaign.hpp"
#include "experiment/capacity.hpp"
#include "experiment/counted.hpp"
#include "experiment/disturbance.hpp"
#include "experiment/interruptible_clock.hpp"
#include "experiment/notices.hpp"
#include "experiment/outline.hpp"
#include "experiment/overload.hpp"
#include "experiment/portable_spec.hpp"
#include "experiment/results_resume.hpp"
#include "experiment/results_store.hpp"
#include "host/prober.hpp"
#include "parallel/world.hpp"

namespace patchbay::experiment {
namespace {

// "switched: scheduler sjf once 200 requests have arrived: in 5 of 5 runs, pause 0.004 ms at most"
std::vector<std::string> swap_lines(const std::vector<RunSummary>& runs, const PreparedVariants& prepared) {
    std::vector<std::string> out;
    for (size_t v = 0; v < prepared.variants.size(); ++v)
        for (size_t i = 0; i < prepared.variants[v].swaps.size(); ++i) {
            size_t of = 0, took_place = 0;
            uint64_t pause_ns = 0;
            for (const RunSummary& r : runs) {
                if (r.variant != v || r.superseded || r.rate || i >= r.swaps.size()) continue;
                const host::SwapRecord& swap = r.swaps[i].record;
                of += 1;
                took_place += swap.step > 0 && swap.state != host::SwapState::kRolledBack;
                pause_ns = std::max(pause_ns, swap.pause_ns);
            }
            out.push_back(prepared.variants[v].name + ": " + prepared.variants[v].swaps[i].text() + ": in " +
                          std::to_string(took_place) + " of " + std::to_string(of) + " runs, pause " +
                          shown(static_cast<double>(pause_ns) * 1e-6) + " ms at most");
        }
    return out;
}

std::vector<std::string> without_valid_run(const std::vector<RunSummary>& runs, const PreparedVariants& prepared) {
    std::vector<std::string> out;
    for (size_t v = 0; v < prepared.variants.size(); ++v)
        if (std::ranges::none_of(runs, [&](const RunSummary& r) { return r.variant == v && !r.rate && r.counts(); }))
            out.push_back(prepared.variants[v].name);
    return out;
}

Question question_of(const ExperimentSpec& spec, const Workloads& source) {
    Question q{.baseline = spec.baseline, .primary = {}, .windows = source.shared_windows(), .first_stage = {}};
    for (const std::string& name : spec.primary) {
        if (!metric_named(name, q.list)) q.list.push_back(plugin_metric(name));
        q.primary.push_back(metric_named(name, q.list).value());
    }
    return q;
}

ExperimentRow row_of(const ExperimentSpec& spec, const PreparedVariants& prepared, const Workloads& workloads,
                     const host::Registry& registry, const ExperimentOptions& options) {
    ExperimentRow row;
    row.name = spec.name;
    row.question = spec.question;
    row.spec_file = options.spec_file.string();
    row.spec_yaml = config::show_yaml(portable(spec, registry));
    row.command = options.command;
    row.started = utc_now();
    row.version = options.version;
    row.baseline = prepared.variants[prepared.baseline].name;
    if (const config::Node* workload = spec.document.find("workload")) row.workload_yaml = config::show_yaml(*workload);
    row.slo = spec.slo;
    row.seed = spec.seed;
    row.repeats = spec.repeats;
    row.warmup_requests = spec.warmup.requests;
    row.machine = machine_facts();
    row.built_from = options.built_from;
    row.inputs = workloads.files();
    row.inputs.insert(row.inputs.end(), prepared.tokenizer_files.begin(), prepared.tokenizer_files.end());
    if (spec.capacity) row.capacity_share = spec.capacity->share;
    return row;
}

Result<> check_jobs(const PreparedVariants& prepared, const ExperimentOptions& options) {
    if (options.jobs < 2) return {};
    if (options.program.empty()) return unsupported("--jobs needs runs in processes of their own");
    for (const PreparedVariant& v : prepared.variants)
        if (v.facts.device_computes)
            return unsupported("--jobs is for simulations: '" + v.name +
                               "' computes, and runs at the same time would slow each other");
    return {};
}

std::vector<RunSlot> order_of(uint32_t repeats, const ExperimentSpec& spec) {
    return run_order(spec.variants.size(), repeats, spec.seed);
}

bool was_interrupted(const std::vector<RunSummary>& runs) {
    return std::any_of(runs.begin(), runs.end(), [](const RunSummary& r) { return r.end == RunEnd::kInterrupted; });
}

// Runs of the experiment itself; of two attempts one counts.
size_t counted(const std::vector<RunSummary>& runs) {
    return static_cast<size_t>(
        std::ranges::count_if(runs, [](const RunSummary& r) { return !r.superseded && !r.rate; }));
}

Result<Capacities> search_capacities(Campaign& campaign, const PreparedVariants& prepared, const Workloads& workloads,
                                     const ExperimentSpec& spec, uint32_t repeats, ResultsStore& store,
                                     std::vector<RunSummary>& runs) {
    std::vector<std::string> names;
    for (const PreparedVariant& v : prepared.variants) names.push_back(v.name);
    size_t first = repeats * names.size();
    const RunRound round = [&](const std::vector<RunSlot>& slots) -> Result<std::vector<RunSummary>> {
        PB_CHECK(campaign.run_all(prepared, workloads, slots, first, store, runs));
        std::vector<RunSummary> out;
        for (const RunSummary& r : runs)
            if (r.position >= first && r.position < first + slots.size() && !r.superseded &&
                r.end != RunEnd::kInterrupted)
                out.push_back(r);
        first += slots.size();
        return out;
    };
    if (campaign.stopped()) return Capacities();
    return find_capacities(*spec.capacity, names, repeats, spec.seed, round);
}

Result<std::vector<QualityResult>> measure_quality(Campaign& campaign, const PreparedVariants& prepared) {
    std::vector<QualityScores> scores;
    for (size_t v = 0; v < prepared.variants.size(); ++v) {
        auto one = campaign.score(prepared.variants[v], v);
        if (!one) return prefixed("variant '" + prepared.variants[v].name + "'", one.failure());
        scores.push_back(*std::move(one));
        if (scores.back().text_sha256 != scores.front().text_sha256)
            return fail("its text changed from one variant to the next");
    }
    return compare_quality(scores, prepared.baseline);
}

Result<> check_quality(const ExperimentSpec& spec, const PreparedVariants& prepared) {
    if (!spec.quality) return {};
    for (const PreparedVariant& v : prepared.variants)
        if (!v.facts.device_computes)
            return unsupported("'quality' is of variants that compute, and '" + v.name + "' computes nothing");
    return {};
}

struct Decision { // once the first repeats are there
    uint32_t repeats;
    std::string notice;
};

// By the spread of the first repeats alone, never by their means: so that tests keep their level.
Decision decide(const std::vector<RunSummary>& runs, const Question& question, const ExperimentSpec& spec) {
    if (spec.variants.size() < 2)
        return {spec.adaptive->first, "repeats: auto: there is one variant, so no difference to find, and the first " +
                                          std::to_string(spec.adaptive->first) + " repeats are all"};
    std::vector<RunSummary> first;
    for (const RunSummary& r : runs)
        if (r.repeat < spec.adaptive->first) first.push_back(r);
    const Measured m = measured(first, spec.variants.size(), question.list);
    const auto [needed, left_out] = repeats_needed(m, question, spec.adaptive->effect);
    Decision out{static_cast<uint32_t>(std::min<double>(needed, spec.repeats)), ""};
    out.notice = "after " + std::to_string(spec.adaptive->first) +
                 " repeats the spread of the primary metrics asked for " + shown(needed) +
                 " in all to find a difference of " + shown(100 * spec.adaptive->effect) + " % in 9 of 10 cases";
    std::vector<std::string> names;
    for (const size_t metric : left_out) names.push_back(m.list[metric].label);
    if (!names.empty())
        out.notice += "; left out are counts and what has no numbers in them: " + joined(names);
    if (needed > spec.repeats)
        out.notice += "; at_most ended them at " + std::to_string(spec.repeats) + ", so smaller chances are left";
    return out;
}

// What runs and dry runs need.
struct Setup {
    ExperimentSpec spec;
    InterruptibleClock clock;
    host::Prober prober;
    parallel::World world;
    RunSurroundings around;
    Processes processes;
    Shown shown;
    TracedRuns traced;
    Campaign campaign;

    Setup(const ExperimentSpec& of, const host::Registry& registry, Clock& given, const ExperimentOptions& options)
        : spec(of), clock(given, options.interrupted), prober(options.probe),
          around{spec, registry, prober, clock, world, options.interrupted, options.make_control, options.control,
                 options.plugin_dirs},
          processes{options.program, options.plugin_dirs, config::show_yaml(portable(spec, registry)), options.jobs},
          shown{options.metrics, options.progress, spec.name, options.version}, traced{options.files},
          campaign(around, processes, shown, traced) {}

    Result<Workloads> open(PreparedVariants& prepared, const ExperimentOptions& options) {
        const auto try_one = [&](size_t v) { return campaign.try_variant(prepared.variants[v], v); };
        PB_CHECK(try_out(prepared, try_one));
        PB_CHECK(check_jobs(prepared, options));
        PB_CHECK(check_quality(spec, prepared));
        PB_TRY(Workloads workloads, Workloads::open(spec, prepared.tokenizer, prepared.limits));
        apply_window_rule(spec, workloads);
        return workloads;
    }
};

// What there is to say of the files. Runs count also where the files of their steps cannot be written.
std::vector<std::string> join_step_files(const TracedRuns& traced, const PreparedVariants& prepared, Outcome& outcome) {
    std::vector<std::string> out;
    outcome.step_files_joined = traced.join(prepared.variants.size(), outcome.step_files);
    if (outcome.step_files.any() || !outcome.step_files_joined)
        out.push_back("the steps of the first run of each variant were written to a file, which took time in them");
    if (!outcome.step_files_joined)
        out.push_back("not all files of these steps were made: " + outcome.step_files_joined.error());
    return out;
}

Result<ResultsLock> locked_new_folder(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail("cannot make the folder " + folder.string() + ": " + error.message());
    return ResultsLock::take(folder);
}

}  // namespace

Result<std::string> dry_run(const ExperimentSpec& spec, PreparedVariants& prepared, const host::Registry& registry,
                            Clock& clock, const ExperimentOptions& options) {
    Setup setup(spec, registry, clock, options);
    PB_TRY(const Workloads source, setup.open(prepared, options));
    return outline(setup.spec, prepared, source);
}

Result<Outcome> run_experiment(const ExperimentSpec& given, PreparedVariants& prepared, const host::Registry& registry,
                               Clock& clock, const ExperimentOptions& options) {
    std::optional<ResultsLock> lock; // of what is resumed at once: another process may be at it
    if (options.resume) {
        PB_TRY(lock, ResultsLock::take(options.folder));
    }
    Setup setup(given, registry, clock, options);
    PB_TRY(const Workloads source, setup.open(prepared, options));
    const ExperimentSpec& spec = setup.spec;

    if (!options.resume) {
        PB_TRY(lock, locked_new_folder(options.folder));
    }
    Outcome outcome;
    outcome.database = options.folder / kResultsFile;
    if (!options.resume && std::filesystem::exists(outcome.database))
        return invalid(outcome.database.string() + " is there already; name another folder with --results");
    PB_CHECK(setup.traced.check()); // now, as they may lie in the folder of results
    std::vector<VariantRow> rows;
    std::vector<Contestant> contestants;
    for (const PreparedVariant& e : prepared.variants) {
        rows.push_back({e.name, config::show_yaml(e.patch), config::show_yaml(e.loaded.effective), facts_json(e.facts),
                        plugins_json(e), e.differences, leaves_of(e.patch)});
        const size_t v = contestants.size();
        const bool is_baseline = v == spec.baseline;
        contestants.push_back({e.name, {}, spec.variants[v].same_requests, !is_baseline && e.differences.empty()});
        for (const ConfigDifference& d : e.differences)
            if (!d.declared) contestants.back().undeclared.push_back(d.path);
    }
    const ExperimentRow experiment = row_of(spec, prepared, source, registry, options);
    std::vector<RunSummary> runs;
    std::string other_machine;
    if (options.resume) {
        PB_TRY(runs, recorded_runs(outcome.database, experiment, rows, counting_of(spec)));
        const auto computes = [](const PreparedVariant& e) { return e.facts.device_computes; };
        if (std::ranges::any_of(prepared.variants, computes)) {
            PB_TRY(other_machine, other_machine_notice(outcome.database, experiment.machine));
        }
    }
    PB_TRY(ResultsStore store, options.resume ? ResultsStore::resume(*std::move(lock))
                                              : ResultsStore::create(*std::move(lock)));
    if (!options.resume) PB_CHECK(store.add_experiment(experiment, rows));

    Question question = question_of(spec, source);
    uint32_t repeats = spec.adaptive ? spec.adaptive->first : spec.repeats;
    std::string adaptive_notice;
    PB_CHECK(setup.campaign.run_all(prepared, source, order_of(repeats, spec), 0, store, runs));
    if (spec.adaptive && counted(runs) >= repeats * spec.variants.size() && !was_interrupted(runs)) {
        const Decision decided = decide(runs, question, spec);
        if (decided.repeats > repeats) question.first_stage = std::exchange(repeats, decided.repeats);
        adaptive_notice = decided.notice;
        PB_CHECK(store.set_repeats(repeats));
        PB_CHECK(setup.campaign.run_all(prepared, source, order_of(repeats, spec), 0, store, runs));
    }
    Capacities capacities;
    if (spec.capacity) {
        PB_TRY(capacities, search_capacities(setup.campaign, prepared, source, spec, repeats, store, runs));
    }
    std::vector<QualityResult> quality;
    std::string without_quality;
    if (spec.quality && !setup.campaign.stopped()) {
        auto scored = measure_quality(setup.campaign, prepared);
        if (scored) quality = *std::move(scored);
        else without_quality = scored.error();
    }
    outcome.conclusion = conclude(runs, contestants, question, spec.by, capacities);
    outcome.conclusion.quality = std::move(quality);
    outcome.conclusion.counted = counted_text(spec, source);
    std::vector<std::string>& notices = outcome.conclusion.notices;
    const auto note = [&](std::string text) {
        if (!text.empty()) notices.push_back(std::move(text));
    };
    const auto note_all = [&](const std::vector<std::string>& texts) { std::ranges::for_each(texts, note); };
    note(without_quality.empty() ? "" : "quality was not measured: " + without_quality);
    note_all(capacities.notices);
    note(adaptive_notice);
    note_all(join_step_files(setup.traced, prepared, outcome));
    outcome.swaps = swap_lines(runs, prepared);
    outcome.without_valid_run = without_valid_run(runs, prepared);
    outcome.complete = counted(runs) == repeats * prepared.variants.size() && !was_interrupted(runs) &&
                       !setup.campaign.stopped();
    if (!outcome.complete) notices.insert(notices.begin(), interruption_notice(runs, repeats, prepared));
    note(other_machine);
    note(simulation_notice(prepared));
    note(synthetic_notice(prepared));
    note(oracle_notice(spec, prepared));
    for (const PreparedVariant& e : prepared.variants) note_all(e.loaded.warnings);
    note(window_notice(source, spec));
    note(prompts_notice(source, repeats));
    note(jitter_notice(spec, prepared));
    note(disturbance_notice(spec.disturbance, runs));
    note_all(source.notices());
    note(clipping_notice(source, spec, repeats));
    note_all(overload_notices(runs, contestants));
    PB_CHECK(store.finish(outcome.conclusion, outcome.complete ? "complete" : "interrupted"));
    return outcome;
}

}  // namespace patchbay::experiment
