#include "parallel/world.hpp"

#include <csignal>
#include <cstdlib>

namespace patchbay::parallel {
namespace {

const char* variable(const char* name) { return std::getenv(name); }

std::string word(config::Launcher by) { return by == config::Launcher::kSrun ? "srun" : "mpirun"; }

// Collective libraries write to sockets of lost ranks: that is an error to report, and must not end the process.
void survive_broken_pipes() {
    struct sigaction now {};
    if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

Deadlines deadlines_of(const config::ParallelSettings& p) {
    return {p.join_timeout_ms * kMillisecond, p.heartbeat_timeout_ms * kMillisecond,
            p.step_timeout_ms * kMillisecond, p.load_timeout_ms * kMillisecond};
}

Result<> World::check_alone() const {
    PB_TRY(const auto job, launched(variable));
    if (!job) return {};
    return fail(StatusCode::kInvalid, word(job->by) + " started " + std::to_string(job->size) +
                " ranks, but engine.tensor_parallel_size is 1 (set it to " + std::to_string(job->size) +
                ", or start one)");
}

Result<std::shared_ptr<Hub>> World::ranks(uint32_t size, const config::ParallelSettings& settings,
                                          const std::string& visible_by) {
    const Deadlines deadlines = deadlines_of(settings);
    survive_broken_pipes();
    PB_TRY(const auto job, launched(variable));
    const config::Launcher by = settings.launcher != config::Launcher::kAuto ? settings.launcher
                                : job                                        ? job->by
                                                                             : config::Launcher::kLocal;
    if (job && by != job->by)
        return fail(StatusCode::kInvalid, word(job->by) + " started " + std::to_string(job->size) +
                    " ranks, but parallel.launcher is another (leave it at auto)");
    if (by == config::Launcher::kLocal) {
        PB_TRY(const auto hub, start(size, deadlines, visible_by));
        PB_CHECK(hub->wait_until_joined());
        return hub;
    }
    if (!job)
        return fail(StatusCode::kInvalid,
                    "parallel.launcher is " + word(by) + ", but this process was not started by it (" + word(by) +
                    " -n " + std::to_string(size) + " patchbay …)");
    if (job->size != size)
        return fail(StatusCode::kInvalid,
                    word(by) + " started " + std::to_string(job->size) + " ranks, but engine.tensor_parallel_size is " +
                    std::to_string(size));
    if (!launched_) {
        const char* const asked = std::getenv("PATCHBAY_RENDEZVOUS");
        PB_TRY(const Endpoint at, rendezvous_of(*job, asked ? asked : ""));
        PB_TRY(Socket listener, listen_at(at));
        PB_CHECK(check_rendezvous(*job, at, local_address(listener)));
        auto hub = std::make_shared<Hub>(job->job, size, std::vector<Member>(), std::move(listener), deadlines);
        PB_CHECK(hub->wait_until_joined());
        launched_ = std::move(hub);
    }
    return launched_;
}

Result<std::shared_ptr<Hub>> World::start(uint32_t size, const Deadlines& deadlines,
                                          const std::string& visible_by) const {
    std::error_code error;
    const std::filesystem::path program =
        program_.empty() ? std::filesystem::read_symlink("/proc/self/exe", error) : program_;
    PB_TRY(std::vector<Member> members, start_local(program, size, deadlines, visible_by));
    return std::make_shared<Hub>(kLocalJob, size, std::move(members), Socket(), deadlines);
}

}  // namespace patchbay::parallel
