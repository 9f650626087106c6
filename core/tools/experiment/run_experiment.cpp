#include "experiment/run_experiment.hpp"

#include <algorithm>
#include <optional>

#include "config/check_file.hpp"
#include "engine/engine_metrics.hpp"
#include "experiment/drive.hpp"
#include "experiment/interruptible_clock.hpp"
#include "experiment/jitter.hpp"
#include "experiment/portable_spec.hpp"
#include "experiment/results_store.hpp"
#include "parallel/world.hpp"

namespace patchbay::experiment {
namespace {

class RealEngine final : public DrivenEngine {
  public:
    explicit RealEngine(engine::Engine& e) : engine_(e) {}
    Result<engine::RequestId> add_request(engine::Request r) override { return engine_.add_request(std::move(r)); }
    void abort(engine::RequestId id) override { engine_.abort(id); }
    bool has_unfinished() const override { return engine_.has_unfinished(); }
    Result<engine::StepReport> step() override { return engine_.step(); }

  private:
    engine::Engine& engine_;
};

// What is loaded now must be what was loaded when the experiment began.
std::vector<std::string> changes(const engine::EngineFacts& then, const engine::EngineFacts& now) {
    std::vector<std::string> out;
    if (then.model_identity != now.model_identity) out.push_back("the model changed during the experiment");
    if (then.draft_model != now.draft_model) out.push_back("the draft model changed during the experiment");
    for (size_t i = 0; i < now.plugins.size(); ++i)
        if (i >= then.plugins.size() || then.plugins[i].sha256 != now.plugins[i].sha256)
            out.push_back(now.plugins[i].kind + " '" + now.plugins[i].name + "' changed during the experiment");
    return out;
}

// A fallback that was not asked for would be measured under a wrong name.
std::vector<std::string> fallbacks(const config::EngineConfig& wanted, const engine::EngineFacts& facts) {
    std::vector<std::string> out;
    const std::pair<const char*, std::string> slots[] = {{"scheduler", wanted.scheduler.plugin},
                                                         {"sampler", wanted.sampler.plugin},
                                                         {"attention", wanted.attention.plugin},
                                                         {"device", wanted.device.plugin},
                                                         {"proposer", wanted.proposer ? wanted.proposer->plugin : ""}};
    for (const auto& [kind, name] : slots)
        for (const host::Identity& p : facts.plugins)
            if (p.kind == kind && !name.empty() && p.name != name)
                out.push_back("ran " + p.kind + " '" + p.name + "' instead of '" + name + "'");
    return out;
}

class Campaign {
  public:
    Campaign(const ExperimentSpec& spec, const PreparedVariants& prepared, const WorkloadSource& source,
             const host::Registry& registry, host::Prober& prober, Clock& clock, parallel::World& world,
             const ExperimentOptions& options)
        : spec_(spec), prepared_(prepared), source_(source), registry_(registry), prober_(prober), clock_(clock),
          world_(world),
          options_(options) {}

    Result<std::vector<RunRecord>> run_all(ResultsStore& store) {
        const auto order = run_order(prepared_.variants.size(), spec_.repeats, spec_.seed);
        std::vector<RunRecord> runs;
        for (const PreparedVariant& e : prepared_.variants) mark_running(e, 0);
        for (const RunSlot& slot : order) {
            if (interrupted()) {
                stopped_ = true;
                break;
            }
            PB_TRY(RunRecord run, run_one(slot, runs.size(), order.size()));
            PB_CHECK(store.add_run(run, spec_.seed));
            run.steps = std::vector<engine::StepReport>(); // stored; {} would keep their memory
            runs.push_back(std::move(run));
        }
        return runs;
    }
    bool stopped() const { return stopped_; } // before the last run

  private:
    bool interrupted() const { return options_.interrupted && options_.interrupted(); }

    // A scrape can tell by it which variant the engine's metrics are growing by.
    void mark_running(const PreparedVariant& entrant, double is_running) {
        if (!options_.metrics) return;
        options_.metrics->gauge("patchbay_experiment_info", {{"experiment", spec_.name}, {"variant", entrant.name}})
            .Set(is_running);
    }

    Result<RunRecord> run_one(const RunSlot& slot, size_t position, size_t runs) {
        const PreparedVariant& entrant = prepared_.variants[slot.variant];
        RunRecord run;
        run.variant = slot.variant;
        run.repeat = slot.repeat;
        run.position = static_cast<uint32_t>(position);
        run.started = utc_now();
        VirtualClock simulated; // of each run alone, so that its times do not depend on the runs before it
        Clock& clock = entrant.facts.simulated ? simulated : clock_;
        const Workload workload = source_.repeat(spec_.seed, slot.repeat);
        std::optional<engine::PluginMetrics> plugin_metrics;
        if (options_.metrics) plugin_metrics.emplace(*options_.metrics);
        PB_TRY(const auto engine, engine::Engine::create(entrant.loaded.config, registry_, clock,
                                                         plugin_metrics ? &*plugin_metrics : nullptr, &world_));
        RealEngine plain(*engine);
        JitteredEngine jittered(plain, simulated, spec_.jitter, jitter_draws(spec_.seed, slot.repeat, slot.variant));
        const bool noisy = entrant.facts.simulated && spec_.jitter.any();
        DrivenEngine& driven = noisy ? static_cast<DrivenEngine&>(jittered) : plain;
        const engine::EngineFacts loaded = engine->facts(); // before any swap
        PB_TRY(RunSwaps swaps, RunSwaps::prepare(*engine, entrant.swaps, registry_, prober_));
        DriveHooks hooks;
        hooks.interrupted = options_.interrupted;
        if (spec_.warmup_requests > 0) {
            RunRecord discarded;
            drive(driven, clock, source_.warmup(spec_.seed, spec_.warmup_requests), hooks, discarded);
            for (const std::string& fault : discarded.faults) run.faults.push_back("warm-up: " + fault);
            if (discarded.end == RunEnd::kComplete) PB_CHECK(engine->reset_prefix_cache());
        }
        std::optional<engine::EngineMetrics> metrics;
        if (options_.metrics) {
            metrics.emplace(*options_.metrics, engine->facts(), options_.version);
            hooks.on_request = [&](engine::RequestId id, uint64_t arrival, uint32_t tokens, uint32_t n) {
                metrics->on_request(id, arrival, tokens, n);
            };
            hooks.on_output = [&](const engine::RequestOutput& out) { metrics->on_output(out); };
        }
        hooks.on_step = [&](const engine::StepReport& report, size_t finished) {
            if (metrics) metrics->on_step(report);
            if (options_.progress)
                options_.progress({position, runs, &entrant.name, slot.repeat, finished, workload.requests.size()});
        };
        hooks.on_start = [&](uint64_t start_ns) { swaps.post(start_ns, workload.requests); };
        mark_running(entrant, 1);
        drive(driven, clock, workload.requests, hooks, run);
        mark_running(entrant, 0);
        swaps.write(run);
        for (std::string& what : changes(entrant.facts, loaded)) run.faults.push_back(std::move(what));
        for (std::string& what : fallbacks(entrant.loaded.config, loaded))
            run.faults.push_back(std::move(what));
        return run;
    }

    const ExperimentSpec& spec_;
    const PreparedVariants& prepared_;
    const WorkloadSource& source_;
    const host::Registry& registry_;
    host::Prober& prober_;
    Clock& clock_;
    parallel::World& world_;
    const ExperimentOptions& options_;
    bool stopped_ = false;
};

std::string interruption_notice(const std::vector<RunRecord>& runs, const ExperimentSpec& spec,
                                const PreparedVariants& prepared) {
    const auto is_complete = [](const RunRecord& r) { return r.end == RunEnd::kComplete; };
    return "the experiment was interrupted: results are partial, " +
           std::to_string(std::count_if(runs.begin(), runs.end(), is_complete)) + " of " +
           std::to_string(prepared.variants.size() * spec.repeats) + " runs are complete";
}

// Simulated times must not be taken for measured ones.
std::string simulation_notice(const PreparedVariants& prepared) {
    std::string simulated, measured, hardware;
    for (const PreparedVariant& e : prepared.variants) {
        std::string& names = e.facts.simulated ? simulated : measured;
        names += (names.empty() ? "" : ", ") + e.name;
        if (e.facts.simulated && hardware.find(e.facts.device_name) == hardware.npos)
            hardware += (hardware.empty() ? "" : ", ") + e.facts.device_name;
    }
    if (simulated.empty()) return "";
    return "nothing was computed" + (measured.empty() ? "" : " by " + simulated) +
           ": times are what the model of the device charges (" + hardware + "), and tokens are made up" +
           (measured.empty() ? "" : "; times of " + measured +
                                        " were measured, so a difference from these is also the error of that model");
}

// Nor texts of given acceptance rates for the model's.
std::string synthetic_notice(const PreparedVariants& prepared) {
    std::string names;
    for (const PreparedVariant& e : prepared.variants)
        if (e.facts.synthetic_acceptance) names += (names.empty() ? "" : ", ") + e.name;
    if (names.empty()) return "";
    return "drafts of " + names + " are accepted by synthetic_acceptance_rates: their texts are not the model's";
}

std::string window_notice(const WorkloadSource& source, const ExperimentSpec& spec) {
    const auto independent = source.independent();
    if (!independent) return "";
    return "repeats share rows of the trace: of " + std::to_string(spec.repeats) + " windows at most " +
           std::to_string(*independent) +
           " have none in common, and intervals and verdicts are those of so many repeats";
}

std::string jitter_notice(const ExperimentSpec& spec,
                                const PreparedVariants& prepared) {
    const bool simulated = std::any_of(prepared.variants.begin(), prepared.variants.end(),
                                       [](const PreparedVariant& e) { return e.facts.simulated; });
    if (!spec.jitter.any() || !simulated) return "";
    return "noise was added to simulated steps: step_jitter " + shown(spec.jitter.step_jitter) + ", run_jitter " +
           shown(spec.jitter.run_jitter);
}

// "3 prompts (by 120 tokens)"
std::string cut_text(uint32_t count, const char* what, uint64_t tokens) {
    return count == 0 ? ""
                      : std::to_string(count) + " " + what + (count == 1 ? "" : "s") + " (by " +
                            std::to_string(tokens) + " tokens)";
}

std::string clipping_notice(const WorkloadSource& source, const ExperimentSpec& spec) {
    Clipping all;
    for (uint32_t r = 0; r < spec.repeats; ++r) {
        const Clipping c = source.repeat(spec.seed, r).clipped;
        all.prompts += c.prompts;
        all.outputs += c.outputs;
        all.histories += c.histories;
        all.prompt_tokens += c.prompt_tokens;
        all.output_tokens += c.output_tokens;
    }
    const std::string lost =
        all.histories == 0 ? ""
                           : std::to_string(all.histories) + " turns begin without what was said before them, which is "
                             "longer than the model holds or the file allows";
    if (all.prompts + all.outputs == 0) return lost;
    return (lost.empty() ? "" : lost + "; ") +
           "the workload was cut to what the model holds or the file allows, the same for every variant: " +
           cut_text(all.prompts, "prompt", all.prompt_tokens) + (all.prompts && all.outputs ? " and " : "") +
           cut_text(all.outputs, "output", all.output_tokens) + " over all repeats";
}

// "switched: scheduler sjf once 200 requests have arrived: in 5 of 5 runs, pause 0.004 ms at most"
std::vector<std::string> swap_lines(const std::vector<RunRecord>& runs, const PreparedVariants& prepared) {
    std::vector<std::string> out;
    for (size_t v = 0; v < prepared.variants.size(); ++v)
        for (size_t i = 0; i < prepared.variants[v].swaps.size(); ++i) {
            size_t of = 0, took_place = 0;
            uint64_t pause_ns = 0;
            for (const RunRecord& r : runs) {
                if (r.variant != v || i >= r.swaps.size()) continue;
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

std::vector<std::string> without_valid_run(const std::vector<RunRecord>& runs, const PreparedVariants& prepared) {
    std::vector<std::string> out;
    for (size_t v = 0; v < prepared.variants.size(); ++v)
        if (std::none_of(runs.begin(), runs.end(), [&](const RunRecord& r) { return r.variant == v && r.valid(); }))
            out.push_back(prepared.variants[v].name);
    return out;
}

Question question_of(const ExperimentSpec& spec, const WorkloadSource& source) {
    Question q{.baseline = spec.baseline, .primary = {}, .independent = source.independent(), .first_stage = {}};
    for (const std::string& name : spec.primary) q.primary.push_back(metric_named(name).value());
    return q;
}

ExperimentRow row_of(const ExperimentSpec& spec, const PreparedVariants& prepared, const host::Registry& registry,
                     const ExperimentOptions& options) {
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
    row.warmup_requests = spec.warmup_requests;
    row.machine = machine_facts(options.source_root);
    return row;
}

}  // namespace

Result<Outcome> run_experiment(const ExperimentSpec& spec, PreparedVariants& prepared, const host::Registry& registry,
                               Clock& given_clock, const ExperimentOptions& options) {
    InterruptibleClock clock(given_clock, options.interrupted);
    host::Prober prober(options.probe);
    parallel::World world;
    PB_CHECK(try_out(prepared, registry, prober, clock, world));
    PB_TRY(const WorkloadSource source, WorkloadSource::open(spec.workload, prepared.tokenizer, prepared.limits,
                                                            spec.repeats, spec.seed));

    std::error_code error;
    std::filesystem::create_directories(options.folder, error);
    if (error) return fail("cannot make the folder " + options.folder.string() + ": " + error.message());
    Outcome outcome;
    outcome.database = options.folder / "results.sqlite";
    if (std::filesystem::exists(outcome.database))
        return fail(outcome.database.string() + " is there already; name another folder with --results");
    PB_TRY(ResultsStore store, ResultsStore::create(outcome.database));
    std::vector<VariantRow> rows;
    std::vector<Contestant> contestants;
    for (const PreparedVariant& e : prepared.variants) {
        rows.push_back({e.name, config::show_yaml(e.patch), config::show_yaml(e.loaded.effective), facts_json(e.facts),
                        plugins_json(e.facts), e.differences});
        contestants.push_back({e.name, {}});
        for (const ConfigDifference& d : e.differences)
            if (!d.declared) contestants.back().undeclared.push_back(d.path);
    }
    PB_CHECK(store.add_experiment(row_of(spec, prepared, registry, options), rows));

    Campaign campaign(spec, prepared, source, registry, prober, clock, world, options);
    PB_TRY(const auto runs, campaign.run_all(store));
    outcome.conclusion = conclude(runs, contestants, question_of(spec, source), spec.slo);
    outcome.swaps = swap_lines(runs, prepared);
    outcome.without_valid_run = without_valid_run(runs, prepared);
    outcome.complete = !campaign.stopped();
    for (const RunRecord& r : runs) outcome.complete &= r.end != RunEnd::kInterrupted;
    if (!outcome.complete)
        outcome.conclusion.notices.insert(outcome.conclusion.notices.begin(),
                                          interruption_notice(runs, spec, prepared));
    if (std::string notice = simulation_notice(prepared); !notice.empty())
        outcome.conclusion.notices.push_back(std::move(notice));
    if (std::string notice = synthetic_notice(prepared); !notice.empty())
        outcome.conclusion.notices.push_back(std::move(notice));
    for (const PreparedVariant& e : prepared.variants)
        for (const std::string& w : e.loaded.warnings) outcome.conclusion.notices.push_back(w);
    for (std::string notice : {window_notice(source, spec), jitter_notice(spec, prepared)})
        if (!notice.empty()) outcome.conclusion.notices.push_back(std::move(notice));
    for (const std::string& notice : source.notices()) outcome.conclusion.notices.push_back(notice);
    if (std::string notice = clipping_notice(source, spec); !notice.empty())
        outcome.conclusion.notices.push_back(std::move(notice));
    PB_CHECK(store.finish(outcome.conclusion, outcome.complete ? "complete" : "interrupted"));
    return outcome;
}

}  // namespace patchbay::experiment
