#include "experiment/one_run.hpp"

#include "config/slots.hpp"
#include "engine/trace/step_files.hpp"
#include "experiment/cpu_use.hpp"
#include "experiment/jitter.hpp"
#include "experiment/pace.hpp"
#include "experiment/plugin_numbers.hpp"
#include "experiment/run_metrics.hpp"

namespace patchbay::experiment {
namespace {

// A fallback that was not asked for would be measured under a wrong name.
std::vector<std::string> fallbacks(const config::EngineConfig& wanted, const engine::EngineFacts& facts) {
    std::vector<std::string> out;
    for (const config::SlotInfo& slot : config::slots())
        for (const host::Identity& p : facts.plugins)
            if (const config::PluginChoice* choice = slot.of(wanted);
                choice && p.kind == slot.kind && p.name != choice->plugin)
                out.push_back("ran " + p.kind + " '" + p.name + "' instead of '" + choice->plugin + "'");
    return out;
}

Result<std::unique_ptr<RunControl>> control_of(const RunSurroundings& around, const PreparedVariant& variant,
                                               const RunSlot& slot, engine::Engine& engine) {
    if (!around.make_control) return std::unique_ptr<RunControl>();
    const std::string task = "run " + around.spec.name + ", variant " + around.spec.variants[slot.variant].name +
                             ", repeat " + std::to_string(slot.repeat + 1);
    return around.make_control(
        {engine, variant.loaded.config, around.plugin_dirs, around.control, task, !variant.facts.device_computes});
}

struct Followers { // of a run, as it happens
    RunListener& listener;
    RunControl* control; // may be none
    PluginNumbers& plugins;
};

// Of warm-up requests and of measured ones.
DriveHooks plain_hooks(const RunSurroundings& around, RunControl* control) {
    DriveHooks hooks;
    hooks.interrupted = around.interrupted;
    if (!control) return hooks;
    hooks.between_steps = [control] { control->between_steps(); };
    hooks.draining = [control] { return control->draining(); };
    return hooks;
}

Result<> warm_up(engine::Engine& engine, engine::SteppingEngine& driven, Clock& clock, Requests&& requests,
                 const DriveHooks& hooks, RunRecord& run) {
    RunRecord discarded;
    drive(driven, clock, requests, hooks, discarded);
    for (const std::string& fault : discarded.faults) run.faults.push_back("warm-up: " + fault);
    return discarded.end == RunEnd::kComplete ? engine.reset_prefix_cache() : Result<>();
}

void follow_requests(DriveHooks& hooks, const Followers& f) {
    RunListener* const listener = f.listener.wants_metrics() ? &f.listener : nullptr;
    RunControl* const control = f.control;
    if (!listener && !control) return;
    hooks.on_request = [=](engine::RequestId id, uint64_t arrival, uint32_t tokens, uint32_t n) {
        if (listener) listener->on_request(id, arrival, tokens, n);
        if (control) control->on_request(id, arrival, tokens, n);
    };
    hooks.on_output = [=](const engine::RequestOutput& output) {
        if (listener) listener->on_output(output);
        if (control) control->on_output(output);
    };
}

// started_ns is set once the run begins; requests: in all.
void follow_steps(DriveHooks& hooks, const Followers& f, const uint64_t& started_ns, size_t requests) {
    const TimeSpan counted = hooks.counted;
    hooks.on_step = [=, &started_ns, reports = f.listener.wants_metrics()](const engine::StepReport& report,
                                                                           size_t finished) {
        if (reports) f.listener.on_step(report);
        const bool counts = report.end_ns >= started_ns + counted.from_ns &&
                            (counted.until_ns == ~uint64_t{0} || report.start_ns <= started_ns + counted.until_ns);
        f.plugins.after_step(report.end_ns - report.start_ns, counts);
        f.listener.on_progress(finished, requests);
    };
}

}  // namespace

void place(RunRecord& run, const RunSlot& slot) {
    run.variant = slot.variant;
    run.repeat = slot.repeat;
    run.attempt = slot.attempt;
    run.rate = slot.rate;
}

std::vector<std::string> changes(const PreparedVariant& then, const LoadedParts& now) {
    std::vector<std::string> out;
    if (then.facts.model.identity != now.facts.model.identity)
        out.push_back("the model changed during the experiment");
    if (then.facts.draft.model != now.facts.draft.model)
        out.push_back("the draft model changed during the experiment");
    const auto compare = [&](const std::vector<host::Identity>& before, const std::vector<host::Identity>& after) {
        for (size_t i = 0; i < after.size(); ++i)
            if (i >= before.size() || before[i].sha256 != after[i].sha256)
                out.push_back(after[i].kind + " '" + after[i].name + "' changed during the experiment");
    };
    compare(then.facts.plugins, now.facts.plugins);
    compare(then.brought_in, now.brought_in);
    return out;
}

Result<RanOnce> run_once(const RunSurroundings& around, const PreparedVariant& variant, const SourceOf& source_of,
                         const RunSlot& slot, RunListener& listener, const engine::StepFilePaths& files) {
    const ExperimentSpec& spec = around.spec;
    const VariantSpec& mine = spec.variants[slot.variant];
    RanOnce out;
    RunRecord& run = out.record;
    place(run, slot);
    run.started = utc_now();
    VirtualClock simulated; // of each run alone, so that its times do not depend on the runs before it
    Clock& clock = variant.facts.device_computes ? around.clock : simulated;
    PluginNumbers plugins(listener.wants_metrics() ? &listener : nullptr);
    PB_TRY(const auto engine,
           engine::Engine::create(variant.loaded.config, around.registry, clock, &plugins, &around.world));
    out.loaded.facts = engine->facts();

    PB_TRY(const WorkloadSource* const source, source_of(*engine));
    const WorkloadSource::Plan plan = source->plan(spec.seed, slot.repeat);
    const PacedRequests paced(plan, slot.rate ? pace_of(mine.workload.arrivals, plan, *slot.rate) : 1);
    const Requests& requests = slot.rate ? static_cast<const Requests&>(paced) : plan;
    JitteredEngine jittered(*engine, simulated, mine.jitter, jitter_draws(spec.seed, slot.repeat, slot.variant));
    const bool noisy = !variant.facts.device_computes && mine.jitter.any();
    engine::SteppingEngine& driven = noisy ? static_cast<engine::SteppingEngine&>(jittered) : *engine;
    PB_TRY(RunSwaps swaps, RunSwaps::prepare(*engine, variant.swaps, around.registry, around.prober));
    out.loaded.brought_in = swaps.brought_in();
    PB_TRY(const auto control, control_of(around, variant, slot, *engine));

    DriveHooks hooks = plain_hooks(around, control.get());
    if (mine.warmup.requests > 0)
        PB_CHECK(warm_up(*engine, driven, clock, GivenRequests(source->warmup(spec.seed, mine.warmup.requests)), hooks,
                         run));
    const Followers followers{listener, control.get(), plugins};
    uint64_t started_ns = 0;
    Result<> traced;
    hooks.counted = planned_span(requests, spec.window);
    hooks.feeding = variant.facts.device_computes ? Feeding::kAhead : Feeding::kAsDue;
    follow_requests(hooks, followers);
    follow_steps(hooks, followers, started_ns, requests.size());
    hooks.on_rows = [&](Rows rows) { listener.on_rows(std::move(rows)); };
    hooks.on_start = [&](uint64_t start_ns) {
        started_ns = start_ns;
        plugins.begin();
        swaps.post(start_ns, requests);
        traced = engine->files().write(files, {mine.name, static_cast<uint32_t>(slot.variant), start_ns});
    };
    listener.on_engine(engine->facts());
    const CpuWatch cpu(around.keeper);
    drive(driven, clock, requests, hooks, run);
    if (variant.facts.device_computes) run.cpu_use = cpu.use();
    for (NamedNumber& n : plugins.numbers()) run.numbers.push_back(std::move(n));
    if (traced) traced = engine->files().close();
    if (!traced) run.faults.push_back("the file of its steps: " + traced.error());
    swaps.write(run);
    if (control)
        for (const std::string& change : control->end()) run.faults.push_back("changed by hand: " + change);
    for (std::string& what : fallbacks(variant.loaded.config, out.loaded.facts)) run.faults.push_back(std::move(what));
    return out;
}

}  // namespace patchbay::experiment
