#include "experiment/campaign.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/call_watch.hpp"

namespace patchbay::experiment {
namespace {

constexpr int kLookMs = 50; // at whether it is interrupted, while nothing happens

RunRecord record_for(const RunSlot& slot, size_t position, std::string started) {
    RunRecord run;
    run.variant = slot.variant;
    run.repeat = slot.repeat;
    run.position = static_cast<uint32_t>(position);
    run.started = std::move(started);
    return run;
}

RunRecord failed(RunRecord run, std::string why) {
    run.end = RunEnd::kFailed;
    run.faults.push_back(std::move(why));
    return run;
}

void wait_for(const std::vector<const RunProcess*>& processes) {
    std::vector<pollfd> waits;
    bool ending = false; // its socket is closed, and it has yet to end
    for (const RunProcess* p : processes) {
        waits.push_back({p->fd(), POLLIN, 0});
        ending |= p->fd() < 0;
    }
    poll(waits.data(), waits.size(), ending ? 1 : kLookMs);
}

}  // namespace

// With processes that were asked to end: as long as they go on delivering, and a little longer.
class Campaign::Patience {
  public:
    void begin(std::vector<Active>& active) {
        for (Active& a : active) a.process->ask_to_end();
        last_ns_ = clock_.now_ns();
    }
    void look(std::vector<Active>& active) {
        uint64_t bytes = 0;
        for (const Active& a : active) bytes += a.process->read_bytes();
        if (std::exchange(bytes_, bytes) != bytes) last_ns_ = clock_.now_ns();
        if (clock_.now_ns() - last_ns_ < kNs) return;
        for (Active& a : active) a.process->kill();
    }

  private:
    static constexpr uint64_t kNs = 700'000'000;
    RealClock clock_;
    uint64_t last_ns_ = 0, bytes_ = 0;
};

Job Campaign::job_of(const PreparedVariant& prepared, size_t variant) const {
    Job job;
    job.spec_yaml = processes_.spec_yaml;
    job.name = around_.spec.name;
    job.plugin_dirs = processes_.plugin_dirs;
    job.variant = variant;
    for (const SwapTask& swap : prepared.swaps) job.swaps.push_back(swap.timed.origin);
    return job;
}

Result<engine::EngineFacts> Campaign::try_variant(const PreparedVariant& prepared, size_t variant) {
    if (here()) return try_one(prepared, around_.registry, around_.prober, around_.clock, around_.world);
    Job job = job_of(prepared, variant);
    job.trial = true;
    const Shown nowhere;
    LiveRun unseen(nowhere, prepared.name, {variant, 0}, 0, 1);
    PB_TRY(const auto process, RunProcess::start(processes_.program, job, unseen));
    while (process->read()) {
        if (interrupted()) return fail("interrupted before its first run");
        wait_for({process.get()});
    }
    if (!process->why().empty()) return fail(process->why());
    if (!process->tried()) return fail("its process ended without a result");
    return *process->tried();
}

RunRecord Campaign::run_here(const PreparedVariants& prepared, const WorkloadSource& source, const RunSlot& slot,
                             LiveRun& live) {
    const CallWatch watch([&] { return static_cast<uint64_t>(around_.spec.watchdog.call_s * 1e9); },
                          [](const std::string& what) {
                              std::fprintf(stderr, "patchbay: %s\n", what.c_str());
                              _exit(EXIT_FAILURE);
                          });
    const std::string started = utc_now();
    const PreparedVariant& variant = prepared.variants[slot.variant];
    const SourceOf source_of = [&](const engine::Engine&) -> Result<const WorkloadSource*> { return &source; };
    auto ran = run_once(around_, variant, source_of, slot, live);
    if (!ran) return failed(record_for(slot, 0, started), ran.error());
    for (std::string& what : changes(variant.facts, ran->facts)) ran->record.faults.push_back(std::move(what));
    return std::move(ran->record);
}

Result<Campaign::Active> Campaign::start(const PreparedVariants& prepared, const RunSlot& slot, size_t position,
                                         size_t finished, size_t runs) {
    const PreparedVariant& variant = prepared.variants[slot.variant];
    Job job = job_of(variant, slot.variant);
    job.repeat = slot.repeat;
    job.simulated = variant.facts.simulated;
    job.with_text = prepared.tokenizer != nullptr;
    job.max_model_len = prepared.limits.max_model_len;
    job.vocab_size = prepared.limits.vocab_size;
    job.wants_metrics = shown_.metrics != nullptr;
    Active out{position, slot, utc_now(), {}, {}};
    out.live = std::make_unique<LiveRun>(shown_, variant.name, slot, finished, runs);
    PB_TRY(out.process, RunProcess::start(processes_.program, job, *out.live));
    return out;
}

RunRecord Campaign::record_of(const PreparedVariants& prepared, const Active& active) const {
    RunRecord run = record_for(active.slot, active.position, active.started);
    const RunProcess& process = *active.process;
    if (process.ran()) {
        run = process.ran()->record;
        const engine::EngineFacts& then = prepared.variants[active.slot.variant].facts;
        for (std::string& what : changes(then, process.ran()->facts)) run.faults.push_back(std::move(what));
        run.variant = active.slot.variant;
        run.repeat = active.slot.repeat;
        run.position = static_cast<uint32_t>(active.position);
        if (!process.why().empty()) run.faults.push_back("after its end: " + process.why());
        return run;
    }
    run = failed(std::move(run), process.why());
    if (stopped_) run.end = RunEnd::kInterrupted;
    return run;
}

Result<> Campaign::run_in_processes(const PreparedVariants& prepared, const std::vector<RunSlot>& order,
                                    const std::vector<size_t>& positions,
                                    const std::function<Result<>(RunRecord)>& keep) {
    std::vector<Active> active;
    Patience patience;
    for (size_t next = 0; next < positions.size() || !active.empty();) {
        if (interrupted() && !std::exchange(stopped_, true)) patience.begin(active);
        if (stopped_ && active.empty()) return {};
        while (!stopped_ && next < positions.size() && active.size() < processes_.jobs) {
            const size_t position = positions[next++];
            PB_TRY(Active started, start(prepared, order[position], position, position - active.size(), order.size()));
            active.push_back(std::move(started));
        }
        std::vector<const RunProcess*> waits;
        for (const Active& a : active) waits.push_back(a.process.get());
        wait_for(waits);
        if (stopped_) patience.look(active);
        for (size_t i = 0; i < active.size();) {
            if (active[i].process->read()) {
                ++i;
                continue;
            }
            RunRecord run = record_of(prepared, active[i]);
            active.erase(active.begin() + static_cast<std::ptrdiff_t>(i));
            PB_CHECK(keep(std::move(run)));
        }
    }
    return {};
}

Result<> Campaign::run_all(const PreparedVariants& prepared, const WorkloadSource& source,
                           const std::vector<RunSlot>& order, ResultsStore& store, std::vector<RunRecord>& runs) {
    std::set<size_t> there;
    for (const RunRecord& r : runs) there.insert(r.position);
    std::vector<size_t> positions;
    for (size_t i = 0; i < order.size(); ++i)
        if (!there.contains(i)) positions.push_back(i);
    for (const PreparedVariant& e : prepared.variants) mark_running(shown_, e.name, false);
    const auto keep = [&](RunRecord run) -> Result<> {
        PB_CHECK(store.add_run(run, around_.spec.seed));
        run.steps = std::vector<engine::StepReport>(); // stored; {} would keep their memory
        runs.push_back(std::move(run));
        return {};
    };
    if (!here()) PB_CHECK(run_in_processes(prepared, order, positions, keep));
    for (size_t i = 0; here() && i < positions.size(); ++i) {
        if (interrupted()) {
            stopped_ = true;
            break;
        }
        const RunSlot& slot = order[positions[i]];
        LiveRun live(shown_, prepared.variants[slot.variant].name, slot, positions[i], order.size());
        RunRecord run = run_here(prepared, source, slot, live);
        run.position = static_cast<uint32_t>(positions[i]);
        PB_CHECK(keep(std::move(run)));
    }
    std::sort(runs.begin(), runs.end(), [](const RunRecord& a, const RunRecord& b) { return a.position < b.position; });
    return {};
}

}  // namespace patchbay::experiment
