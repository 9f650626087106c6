#include "experiment/campaign.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "base/call_watch.hpp"
#include "base/crash_report.hpp"
#include "base/output_file.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "engine/trace/join_traces.hpp"
#include "experiment/capacity.hpp"
#include "experiment/conclusion.hpp"
#include "experiment/disturbance.hpp"

namespace patchbay::experiment {
namespace {

constexpr int kLookMs = 50; // at whether it is interrupted, while nothing happens
constexpr std::string engine::StepFilePaths::* kStepFiles[] = {
    &engine::StepFilePaths::trace, &engine::StepFilePaths::decisions, &engine::StepFilePaths::kv_events};

RunRecord record_for(const RunSlot& slot, size_t position, std::string started) {
    RunRecord run;
    place(run, slot);
    run.position = static_cast<uint32_t>(position);
    run.started = std::move(started);
    return run;
}

RunRecord failed(RunRecord run, std::string why) {
    run.end = RunEnd::kFailed;
    run.faults.push_back(std::move(why));
    return run;
}

// "'b', repeat 1, 5.00 req/s"
std::string text_of(size_t variant, uint32_t repeat, std::optional<double> rate, const PreparedVariants& prepared) {
    const auto& all = prepared.variants;
    return (variant < all.size() ? "'" + printable(all[variant].name) + "'" : "variant " + std::to_string(variant)) +
           ", repeat " + std::to_string(repeat + 1) + (rate ? ", " + shown(*rate) + " req/s" : "");
}

// Whether a recorded run is the one that has its place in the order.
Result<> check_planned(const RunSummary& r, const RunSlot& slot, const PreparedVariants& prepared) {
    if (r.variant == slot.variant && r.repeat == slot.repeat && r.rate == slot.rate) return {};
    return invalid("run " + std::to_string(r.position + 1) + " of the record is of " +
                   text_of(r.variant, r.repeat, r.rate, prepared) + ", expected " +
                   text_of(slot.variant, slot.repeat, slot.rate, prepared) +
                   ": the record was changed, or is damaged (start the experiment again)");
}

// A file that is there keeps what it has, and none is left that was not there.
Result<> check_writable(const std::string& path) {
    std::error_code error;
    const bool is_new = std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::not_found;
    if (std::filesystem::is_other(path, error)) return {}; // the reader of a pipe would take the closing for its end
    std::ofstream file(path, std::ios::binary | std::ios::app);
    if (!file) return cannot_write(path);
    file.close();
    if (is_new) std::filesystem::remove(path, error);
    return {};
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

engine::StepFilePaths TracedRuns::parts_of(const RunSlot& slot) const {
    if (slot.repeat > 0 || slot.attempt > 0 || slot.rate) return {};
    const auto part = [&](const std::string& file) {
        return file.empty() ? "" : file + ".part-" + std::to_string(slot.variant);
    };
    return {part(files.trace), part(files.decisions), part(files.kv_events)};
}

Result<> TracedRuns::check() const {
    const engine::StepFilePaths parts = parts_of({});
    for (const auto which : kStepFiles) {
        if ((files.*which).empty()) continue;
        PB_CHECK(check_writable(files.*which));
        PB_CHECK(check_writable(parts.*which));
    }
    return {};
}

Result<> TracedRuns::join(size_t variants, engine::StepFilePaths& written) const {
    Result<> ended;
    for (const auto which : kStepFiles) {
        if ((files.*which).empty()) continue;
        std::error_code error;
        std::vector<std::filesystem::path> parts;
        for (size_t v = 0; v < variants; ++v)
            if (std::filesystem::path part = parts_of({.variant = v}).*which; std::filesystem::exists(part, error))
                parts.push_back(std::move(part));
        if (parts.empty()) continue; // as if resumed after these runs: what is there may be theirs
        const auto join = which == &engine::StepFilePaths::trace ? engine::join_traces : engine::join_lines;
        if (auto joined = join(parts, files.*which); !joined) {
            if (ended) ended = std::move(joined);
            continue;
        }
        written.*which = files.*which;
        for (const auto& part : parts) std::filesystem::remove(part, error);
    }
    return ended;
}

// Stores the rows of a run as they come, or, of a search for the capacity, none.
class Campaign::StoredRun final : public RowSink {
  public:
    static Result<std::unique_ptr<StoredRun>> begin(ResultsStore& store, const RunRecord& run, uint64_t seed) {
        uint64_t id = 0;
        if (!run.rate) {
            PB_TRY(id, store.begin_run(run, seed));
        }
        return std::unique_ptr<StoredRun>(new StoredRun(store, id, !run.rate));
    }
    void take(const Rows& rows) override { // some at a time, as each transaction has its price
        constexpr size_t kRows = 256;
        if (!keeps_ || !done_) return;
        rows_.steps.insert(rows_.steps.end(), rows.steps.begin(), rows.steps.end());
        rows_.requests.insert(rows_.requests.end(), rows.requests.begin(), rows.requests.end());
        if (rows_.steps.size() + rows_.requests.size() >= kRows) flush();
    }
    Result<> end(const RunRecord& run, const RunSummary& summary, const ExperimentSpec& spec) {
        if (!keeps_) return store_.add_capacity_run(run, summary, keeps(*spec.capacity, summary));
        flush();
        PB_CHECK(done_);
        std::optional<TimeSpan> counted;
        if (spec.window) counted = counted_span(run, spec.window);
        return store_.end_run(id_, run, summary, counted);
    }

  private:
    StoredRun(ResultsStore& store, uint64_t id, bool keeps) : store_(store), id_(id), keeps_(keeps) {}
    void flush() {
        if (done_) done_ = store_.add_rows(id_, rows_);
        rows_ = {};
    }
    ResultsStore& store_;
    const uint64_t id_;
    const bool keeps_;
    Rows rows_;
    Result<> done_;
};

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

Result<LoadedParts> Campaign::try_variant(const PreparedVariant& prepared, size_t variant) {
    if (here())
        return try_one(prepared, around_.spec.variants[variant].workload, around_.registry, around_.prober,
                       around_.clock, around_.world);
    Job job = job_of(prepared, variant);
    job.trial = true;
    PB_TRY(const auto process, run_alone(job, prepared, variant));
    if (!process->tried()) return fail("its process ended without a result");
    return *process->tried();
}

// To its end. Nothing of it is shown.
Result<std::unique_ptr<RunProcess>> Campaign::run_alone(const Job& job, const PreparedVariant& prepared,
                                                        size_t variant) {
    const Shown nowhere;
    LiveRun unseen(nowhere, prepared.name, {variant, 0}, 0, 1);
    PB_TRY(auto process, RunProcess::start(processes_.program, job, unseen));
    while (process->read()) {
        if (interrupted()) {
            stopped_ = true;
            return fail(StatusCode::kCancelled, job.trial ? "interrupted before its first run" : "interrupted");
        }
        wait_for({process.get()});
    }
    if (!process->why().empty()) return fail(process->why());
    return process;
}

Result<QualityScores> Campaign::score(const PreparedVariant& prepared, size_t variant) {
    if (here()) {
        stopped_ |= interrupted();
        if (stopped_) return fail(StatusCode::kCancelled, "interrupted");
        PB_TRY(const auto engine, engine::Engine::create(prepared.loaded.config, around_.registry, around_.clock,
                                                         nullptr, &around_.world));
        return score_quality(*engine, *around_.spec.quality);
    }
    Job job = job_of(prepared, variant);
    job.quality = true;
    PB_TRY(const auto process, run_alone(job, prepared, variant));
    if (!process->scored()) return fail("its process ended without a result");
    return *process->scored();
}

RunRecord Campaign::run_here(const PreparedVariants& prepared, const Workloads& workloads, const RunSlot& slot,
                             LiveRun& live) {
    constexpr uint64_t kPatienceNs = 800'000'000; // with a call, after Ctrl-C
    const PreparedVariant& variant = prepared.variants[slot.variant];
    const std::string which = "variant '" + printable(variant.name) + "', repeat " + std::to_string(slot.repeat + 1);
    note_for_crashes(which);
    const auto limit_ns = static_cast<uint64_t>(around_.spec.watchdog.call_s * 1e9);
    const CallWatch watch([&] { return interrupted() ? kPatienceNs : limit_ns; },
                          [&](const std::string& what) {
                              std::fprintf(stderr, "patchbay: %s\npatchbay: %s\n", what.c_str(), which.c_str());
                              _exit(EXIT_FAILURE);
                          });
    const std::string started = utc_now();
    const SourceOf source_of = [&](const engine::Engine&) -> Result<const WorkloadSource*> {
        return &workloads.of(slot.variant);
    };
    auto ran = run_once(around_, variant, source_of, slot, live, traced_.parts_of(slot));
    note_for_crashes("");
    if (!ran) return failed(record_for(slot, 0, started), ran.error());
    for (std::string& what : changes(variant, ran->loaded)) ran->record.faults.push_back(std::move(what));
    return std::move(ran->record);
}

Result<Campaign::Active> Campaign::prepared_run(Work& work, const Waiting& waiting, size_t before) {
    RunRecord begun = record_for(waiting.slot, waiting.position, utc_now());
    Active out{waiting.position, waiting.slot, begun.started, {}, {}, {}};
    PB_TRY(out.stored, StoredRun::begin(work.store, begun, around_.spec.seed));
    const std::string& variant = work.prepared.variants[waiting.slot.variant].name;
    out.live = std::make_unique<LiveRun>(shown_, variant, waiting.slot, before, work.first + work.count,
                                         out.stored.get());
    return out;
}

Result<> Campaign::start(Work& work, Active& run) {
    const PreparedVariant& variant = work.prepared.variants[run.slot.variant];
    Job job = job_of(variant, run.slot.variant);
    job.repeat = run.slot.repeat;
    job.attempt = run.slot.attempt;
    job.rate = run.slot.rate;
    job.simulated = !variant.facts.device_computes;
    job.with_text = work.prepared.tokenizer != nullptr;
    for (const InputFile& file : work.workloads.of(run.slot.variant).files()) job.inputs.push_back(file.sha256);
    job.max_model_len = work.prepared.limits.max_model_len;
    job.vocab_size = work.prepared.limits.vocab_size;
    job.wants_metrics = shown_.metrics != nullptr;
    job.is_steady = around_.spec.window_by_rule && around_.spec.window.has_value();
    job.files = traced_.parts_of(run.slot);
    job.control = around_.control;
    PB_TRY(run.process, RunProcess::start(processes_.program, job, *run.live));
    return {};
}

RunRecord Campaign::record_of(const PreparedVariants& prepared, const Active& active) const {
    RunRecord run = record_for(active.slot, active.position, active.started);
    const RunProcess& process = *active.process;
    if (process.ran()) {
        run = process.ran()->record;
        const PreparedVariant& then = prepared.variants[active.slot.variant];
        for (std::string& what : changes(then, process.ran()->loaded)) run.faults.push_back(std::move(what));
        place(run, active.slot);
        run.position = static_cast<uint32_t>(active.position);
        if (!process.why().empty()) run.faults.push_back("after its end: " + process.why());
        return run;
    }
    run = failed(std::move(run), process.why());
    if (stopped_) run.end = RunEnd::kInterrupted;
    return run;
}

Result<> Campaign::keep(Work& work, const Active& active, RunRecord run) {
    drained_ |= run.end == RunEnd::kInterrupted;
    run.requests = active.live->take_requests();
    RunSummary summary = summary_of(run, counting_of(around_.spec));
    PB_CHECK(active.stored->end(run, summary, around_.spec));
    const bool again = is_to_be_repeated(summary);
    work.runs.push_back(std::move(summary));
    RunSlot slot = active.slot;
    if (slot.attempt > 0) return choose_attempt(work, active.position);
    slot.attempt = 1;
    if (again) work.waiting.push_front({slot, active.position});
    return {};
}

bool Campaign::is_to_be_repeated(const RunSummary& run) const {
    return around_.spec.disturbance.repeat && run.attempt == 0 && run.valid() &&
           is_disturbed(around_.spec.disturbance, run);
}

Result<> Campaign::choose_attempt(Work& work, size_t position) {
    RunSummary *first = nullptr, *second = nullptr;
    for (RunSummary& r : work.runs)
        if (r.position == position) (r.attempt == 0 ? first : second) = &r;
    if (!first || !second || second->end == RunEnd::kInterrupted) return {};
    if (second_counts(*first, *second)) std::swap(first, second);
    supersede(*second, *first);
    return work.store.supersede(*second);
}

// What is left to do of a run by what is there of it: the experiment may have been interrupted between two attempts, or
// before one of them was chosen.
Result<> Campaign::go_on_from(Work& work, const RunSlot& slot, size_t position) {
    const RunSummary *first = nullptr, *second = nullptr;
    for (const RunSummary& r : work.runs) {
        if (r.position != position) continue;
        PB_CHECK(check_planned(r, slot, work.prepared));
        (r.attempt == 0 ? first : second) = &r;
    }
    Waiting next{slot, position};
    next.slot.attempt = first ? 1 : 0;
    if (!first || (!second && is_to_be_repeated(*first))) work.waiting.push_back(next);
    else if (second && !first->superseded && !second->superseded) return choose_attempt(work, position);
    return {};
}

Result<> Campaign::run_in_processes(Work& work) {
    std::vector<Active> active;
    Patience patience;
    while (!work.waiting.empty() || !active.empty()) {
        if ((interrupted() || drained_) && !std::exchange(stopped_, true)) patience.begin(active);
        if (stopped_ && active.empty()) return {};
        while (!stopped_ && !work.waiting.empty() && active.size() < processes_.jobs) {
            const Waiting next = work.waiting.front();
            work.waiting.pop_front();
            PB_TRY(Active started, prepared_run(work, next, next.position - active.size()));
            PB_CHECK(start(work, started));
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
            const Active ended = std::move(active[i]);
            active.erase(active.begin() + static_cast<std::ptrdiff_t>(i));
            PB_CHECK(keep(work, ended, record_of(work.prepared, ended)));
        }
    }
    return {};
}

Result<> Campaign::run_one_by_one(Work& work) {
    while (!work.waiting.empty()) {
        if (interrupted() || drained_) {
            stopped_ = true;
            return {};
        }
        const Waiting next = work.waiting.front();
        work.waiting.pop_front();
        PB_TRY(const Active active, prepared_run(work, next, next.position));
        RunRecord run = run_here(work.prepared, work.workloads, next.slot, *active.live);
        run.position = static_cast<uint32_t>(next.position);
        PB_CHECK(keep(work, active, std::move(run)));
    }
    return {};
}

Result<> Campaign::run_all(const PreparedVariants& prepared, const Workloads& workloads,
                           const std::vector<RunSlot>& order, size_t first, ResultsStore& store,
                           std::vector<RunSummary>& runs) {
    Work work{prepared, workloads, store, runs, {}, first, order.size()};
    for (size_t i = 0; i < order.size(); ++i) PB_CHECK(go_on_from(work, order[i], first + i));
    for (const PreparedVariant& e : prepared.variants) mark_running(shown_, e.name, false);
    PB_CHECK(here() ? run_one_by_one(work) : run_in_processes(work));
    std::ranges::sort(runs, {}, [](const RunSummary& r) { return std::pair(r.position, r.attempt); });
    return {};
}

}  // namespace patchbay::experiment
