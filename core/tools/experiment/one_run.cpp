#include "experiment/one_run.hpp"

#include "config/slots.hpp"
#include "experiment/cpu_use.hpp"
#include "experiment/jitter.hpp"
#include "experiment/pace.hpp"
#include "experiment/plugin_numbers.hpp"
#include "experiment/run_metrics.hpp"

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
        {engine, variant.loaded.config, around.plugin_dirs, around.control, task, variant.facts.simulated});
}

}  // namespace

std::vector<std::string> changes(const engine::EngineFacts& then, const engine::EngineFacts& now) {
    std::vector<std::string> out;
    if (then.model_identity != now.model_identity) out.push_back("the model changed during the experiment");
    if (then.draft_model != now.draft_model) out.push_back("the draft model changed during the experiment");
    for (size_t i = 0; i < now.plugins.size(); ++i)
        if (i >= then.plugins.size() || then.plugins[i].sha256 != now.plugins[i].sha256)
            out.push_back(now.plugins[i].kind + " '" + now.plugins[i].name + "' changed during the experiment");
    return out;
}

Result<RanOnce> run_once(const RunSurroundings& around, const PreparedVariant& variant, const SourceOf& source_of,
                         const RunSlot& slot, RunListener& listener, const std::string& trace_file) {
    const ExperimentSpec& spec = around.spec;
    const VariantSpec& mine = spec.variants[slot.variant];
    RanOnce out;
    RunRecord& run = out.record;
    run.variant = slot.variant;
    run.repeat = slot.repeat;
    run.attempt = slot.attempt;
    run.rate = slot.rate;
    run.started = utc_now();
    VirtualClock simulated; // of each run alone, so that its times do not depend on the runs before it
    Clock& clock = variant.facts.simulated ? simulated : around.clock;
    PluginNumbers plugins(listener.wants_metrics() ? &listener : nullptr);
    PB_TRY(const auto engine,
           engine::Engine::create(variant.loaded.config, around.registry, clock, &plugins, &around.world));
    PB_TRY(const WorkloadSource* const source, source_of(*engine));
    const WorkloadSource::Plan plan = source->plan(spec.seed, slot.repeat);
    const PacedRequests paced(plan, slot.rate ? pace_of(mine.workload.arrivals, plan, *slot.rate) : 1);
    const Requests& requests = slot.rate ? static_cast<const Requests&>(paced) : plan;
    RealEngine plain(*engine);
    JitteredEngine jittered(plain, simulated, mine.jitter, jitter_draws(spec.seed, slot.repeat, slot.variant));
    const bool noisy = variant.facts.simulated && mine.jitter.any();
    DrivenEngine& driven = noisy ? static_cast<DrivenEngine&>(jittered) : plain;
    out.facts = engine->facts();
    PB_TRY(RunSwaps swaps, RunSwaps::prepare(*engine, variant.swaps, around.registry, around.prober));
    PB_TRY(const auto control, control_of(around, variant, slot, *engine));
    DriveHooks hooks;
    uint64_t started_ns = 0;
    hooks.interrupted = around.interrupted;
    if (control) {
        hooks.between_steps = [&] { control->between_steps(); };
        hooks.draining = [&] { return control->draining(); };
        hooks.on_step = [&](const engine::StepReport& report, size_t) { control->on_step(report); };
    }
    if (mine.warmup_requests > 0) {
        RunRecord discarded;
        drive(driven, clock, GivenRequests(source->warmup(spec.seed, mine.warmup_requests)), hooks, discarded);
        for (const std::string& fault : discarded.faults) run.faults.push_back("warm-up: " + fault);
        if (discarded.end == RunEnd::kComplete) PB_CHECK(engine->reset_prefix_cache());
    }
    const bool reports = listener.wants_metrics();
    if (reports || control) {
        hooks.on_request = [&](engine::RequestId id, uint64_t arrival, uint32_t tokens, uint32_t n) {
            if (reports) listener.on_request(id, arrival, tokens, n);
            if (control) control->on_request(id, arrival, tokens, n);
        };
        hooks.on_output = [&](const engine::RequestOutput& output) {
            if (reports) listener.on_output(output);
            if (control) control->on_output(output);
        };
    }
    hooks.on_step = [&](const engine::StepReport& report, size_t finished) {
        if (reports) listener.on_step(report);
        if (control) control->on_step(report);
        const TimeSpan& counted = hooks.counted;
        const bool counts = report.end_ns >= started_ns + counted.from_ns &&
                            (counted.until_ns == ~uint64_t{0} || report.start_ns <= started_ns + counted.until_ns);
        plugins.after_step(report.end_ns - report.start_ns, counts);
        listener.on_progress(finished, requests.size());
    };
    Result<> traced;
    hooks.on_start = [&](uint64_t start_ns) {
        started_ns = start_ns;
        plugins.begin();
        swaps.post(start_ns, requests);
        if (!trace_file.empty())
            traced = engine->write_trace(trace_file, {mine.name, static_cast<uint32_t>(slot.variant), start_ns});
    };
    hooks.counted = planned_span(requests, spec.window);
    hooks.on_rows = [&](Rows rows) { listener.on_rows(std::move(rows)); };
    hooks.feeding = variant.facts.simulated ? Feeding::kAsDue : Feeding::kAhead;
    listener.on_engine(engine->facts());
    const CpuWatch cpu;
    drive(driven, clock, requests, hooks, run);
    if (!variant.facts.simulated) run.cpu_use = cpu.use();
    for (NamedNumber& n : plugins.numbers()) run.numbers.push_back(std::move(n));
    if (traced) traced = engine->end_trace();
    if (!traced) run.faults.push_back("its trace: " + traced.error());
    swaps.write(run);
    if (control)
        for (const std::string& change : control->end()) run.faults.push_back("changed by hand: " + change);
    for (std::string& what : fallbacks(variant.loaded.config, out.facts)) run.faults.push_back(std::move(what));
    return out;
}

}  // namespace patchbay::experiment
