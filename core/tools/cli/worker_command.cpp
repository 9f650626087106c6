#include "cli/commands.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "base/printable.hpp"
#include "cli/print_error.hpp"
#include "execution/worker.hpp"
#include "parallel/launch.hpp"
#include "parallel/world.hpp"

namespace patchbay::cli {
namespace {

using parallel::Launched;

struct WorkerOptions {
    int fd = -1;
    uint32_t rank = 0, size = 0, heartbeat_ms = 0;
};

int serve(parallel::Socket socket, const parallel::Hello& hello, const parallel::Deadlines& deadlines) {
    for (const int to_all : {SIGINT, SIGTERM}) // of a terminal, or a service manager: rank 0 decides what becomes of it
        std::signal(to_all, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN); // of a rank that is gone, which rank 0 will name
    parallel::Spoke spoke(std::move(socket), hello, deadlines, [] { _exit(kFailed); });
    return exit_code("patchbay: rank " + std::to_string(hello.rank),
                     execution::serve_rank(spoke, hello.rank, hello.size), print_error);
}

parallel::Hello hello_of(std::string job, uint32_t rank, uint32_t size) {
    return {std::move(job), rank, size, static_cast<uint32_t>(getpid()), parallel::host_name()};
}

Result<int> join(const Launched& job, const config::ParallelSettings& settings) {
    const parallel::Deadlines deadlines = parallel::deadlines_of(settings);
    const char* const asked = std::getenv("PATCHBAY_RENDEZVOUS");
    PB_TRY(const auto at, parallel::rendezvous_of(job, asked ? asked : ""));
    PB_TRY(auto socket, parallel::connect_to(at, deadlines.join));
    return serve(std::move(socket), hello_of(job.job, job.rank, job.size), deadlines);
}

}  // namespace

void add_worker_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("worker", "A rank that another patchbay started")->group("");
    const auto o = std::make_shared<WorkerOptions>();
    app->add_option("--fd", o->fd, "socket to rank 0")->required();
    app->add_option("--rank", o->rank)->required();
    app->add_option("--size", o->size)->required();
    app->add_option("--heartbeat-ms", o->heartbeat_ms)->required();
    app->callback([&commands, o] {
        commands.chosen = [o] {
            parallel::Deadlines deadlines;
            deadlines.heartbeat = uint64_t{o->heartbeat_ms} * 1'000'000;
            return serve(parallel::Socket(o->fd), hello_of(parallel::kLocalJob, o->rank, o->size), deadlines);
        };
    });
}

std::optional<int> run_as_rank(const std::function<Result<config::ParallelSettings>()>& parallel) {
    const auto job = parallel::launched([](const char* name) -> const char* { return std::getenv(name); });
    if (job && (!*job || (*job)->rank == 0)) return std::nullopt;
    const auto code = [&]() -> Result<int> {
        if (!job) return fail(job.code(), printable_message(job.error()));
        PB_TRY(const config::ParallelSettings settings, parallel());
        return in_one_line(join(**job, settings));
    }();
    if (code) return *code;
    print_faults("patchbay", code.error());
    return kFailed;
}

}  // namespace patchbay::cli
