#include "experiment/run_child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "base/call_watch.hpp"
#include "base/crash_report.hpp"
#include "base/refusals.hpp"
#include "experiment/counted.hpp"
#include "experiment/interruptible_clock.hpp"
#include "experiment/quality.hpp"
#include "experiment/run_wire.hpp"
#include "experiment/spec_load.hpp"
#include "host/prober.hpp"

namespace patchbay::experiment {
namespace {

// Sends what happens to the parent, between two steps.
class Sender final : public RunListener {
  public:
    Sender(FrameWriter& out, bool wants_metrics, spdlog::level::level_enum level)
        : out_(out), wants_metrics_(wants_metrics), level_(level) {}
    bool wants_metrics() const override { return wants_metrics_; }
    void on_engine(const engine::EngineFacts& facts) override {
        spdlog::set_level(level_);
        out_.add(Word::kEngine, facts);
        out_.flush();
    }
    void on_request(engine::RequestId id, uint64_t arrival_ns, uint32_t tokens, uint32_t n) override {
        out_.add(Word::kRequest, id, arrival_ns, tokens, n);
    }
    void on_output(const engine::RequestOutput& output) override { out_.add(Word::kOutput, output); }
    void on_step(const engine::StepReport& report) override { out_.add(Word::kStep, report); }
    void on_rows(Rows rows) override {
        out_.add(Word::kRows, rows);
        out_.flush();
    }
    void on_progress(size_t finished, size_t of) override {
        constexpr uint64_t kBetweenNs = 100'000'000; // of progress bars; metrics are of each step
        const uint64_t now = clock_.now_ns();
        if (!wants_metrics_ && now - last_ns_ < kBetweenNs) return;
        last_ns_ = now;
        out_.add(Word::kProgress, uint64_t{finished}, uint64_t{of});
        out_.flush();
    }
    void add(const std::string& kind, const std::string& component, const std::string& name, double amount) override {
        out_.add(Word::kAdd, kind, component, name, amount);
    }
    void set(const std::string& kind, const std::string& component, const std::string& name, double value) override {
        out_.add(Word::kSet, kind, component, name, value);
    }

  private:
    FrameWriter& out_;
    const bool wants_metrics_;
    const spdlog::level::level_enum level_; // of what is said once the engine is there
    RealClock clock_;
    uint64_t last_ns_ = 0;
};

Result<Job> read_job() {
    Frames frames;
    Job job;
    char part[16384];
    for (;;) {
        if (const auto frame = frames.next()) {
            if (frame->word == Word::kJob && unpack(frame->body, job)) return job;
            return invalid("what was read from descriptor " + std::to_string(kRunFd) + " is not a run");
        }
        const ssize_t n = recv(kRunFd, part, sizeof part, 0);
        if (n <= 0 || frames.broken())
            return invalid("descriptor " + std::to_string(kRunFd) +
                           " is not a socket of an experiment, which alone starts this command");
        frames.add({part, static_cast<size_t>(n)});
    }
}

[[noreturn]] void end_with(const std::string& words) {
    (void)!write(kLastWordsFd, words.data(), words.size());
    _exit(EXIT_FAILURE);
}

Result<> work(const Job& job, const std::function<bool()>& interrupted, const MakeRunControl& make_control,
              FrameWriter& out) {
    constexpr uint64_t kPatienceNs = 400'000'000; // with a call, once the parent wants this process to end
    constexpr config::DocumentLimits kLimits{.bytes = 64 << 20, .nodes = 4'000'000};
    PB_TRY(const auto registry, host::Registry::open({job.plugin_dirs.begin(), job.plugin_dirs.end()}));
    PB_TRY(const config::Node document, config::parse_yaml(job.spec_yaml, job.name, kLimits));
    PB_TRY(ExperimentSpec spec, spec_from(document, job.name));
    if (job.is_steady) spec.window = kSteadyWindow;
    PB_TRY(PreparedVariant variant, prepare_variant(spec, job.variant, registry));
    variant.facts.device_computes = !job.simulated;
    for (size_t i = 0; i < variant.swaps.size() && i < job.swaps.size(); ++i)
        variant.swaps[i].timed.origin = job.swaps[i];
    const auto limit_ns = static_cast<uint64_t>(spec.watchdog.call_s * 1e9);
    const CallWatch watch([&] { return interrupted() ? kPatienceNs : limit_ns; }, end_with);
    RealClock real;
    InterruptibleClock clock(real, interrupted);
    host::Prober prober;
    parallel::World world;
    const auto level = spdlog::get_level();
    if (!job.trial && level >= spdlog::level::info)
        spdlog::set_level(spdlog::level::err); // the trial has said what there is to say of making the engine
    if (job.trial) {
        PB_TRY(const LoadedParts parts,
               try_one(variant, spec.variants[job.variant].workload, registry, prober, clock, world));
        out.add(Word::kTried, parts);
        return {};
    }
    if (job.quality) {
        PB_TRY(const auto engine, engine::Engine::create(variant.loaded.config, registry, clock, nullptr, &world));
        PB_TRY(const QualityScores scores, score_quality(*engine, *spec.quality));
        out.add(Word::kScored, scores);
        return {};
    }
    std::optional<WorkloadSource> source;
    const SourceOf source_of = [&](const engine::Engine& engine) -> Result<const WorkloadSource*> {
        PB_TRY(source, WorkloadSource::open(spec.variants[job.variant].workload,
                                            job.with_text ? engine.tokenizer() : nullptr,
                                            {job.max_model_len, job.vocab_size}, spec.repeats, spec.seed));
        for (const InputFile& file : source->files())
            if (std::ranges::find(job.inputs, file.sha256) == job.inputs.end())
                return fail(file.path + " changed during the experiment");
        return &*source;
    };
    Sender sender(out, job.wants_metrics, level);
    const RunSurroundings around{spec,        registry,     prober,      clock,          world,
                                 interrupted, make_control, job.control, job.plugin_dirs, getppid()};
    PB_TRY(const RanOnce ran, run_once(around, variant, source_of,
                                       {job.variant, job.repeat, job.rate, job.attempt}, sender, job.files));
    out.add(Word::kDone, ran.record, ran.loaded);
    return {};
}

}  // namespace

int serve_run(const std::function<bool()>& interrupted, const MakeRunControl& make_control) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); // a run that hangs must not outlive its experiment
    prctl(PR_SET_NAME, "patchbay");   // else the name of the link that it was started by
    std::signal(SIGPIPE, SIG_IGN);
    for (const int fd : {kRunFd, kLastWordsFd}) fcntl(fd, F_SETFD, FD_CLOEXEC);
    const auto job = read_job();
    FrameWriter out(kRunFd);
    if (job) report_crashes_to(kLastWordsFd);
    const Result<> done = job ? work(*job, interrupted, make_control, out) : Result<>(job.failure());
    report_crashes_to(STDERR_FILENO);
    if (!job) end_with(job.error() + "\n");
    if (!done) out.add(Word::kFailed, done.error());
    out.flush();
    return EXIT_SUCCESS;
}

}  // namespace patchbay::experiment
