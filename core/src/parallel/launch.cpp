#include "parallel/launch.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/child_process.hpp"
#include "base/cores.hpp"
#include "base/numbers.hpp"
#include "base/refusals.hpp"

extern char** environ;

namespace patchbay::parallel {
namespace {

std::string value_of(const Environment& env, const char* name) {
    const char* value = env(name);
    return value ? value : "";
}

Result<uint32_t> number_of(const Environment& env, const char* name) {
    const std::string text = value_of(env, name);
    if (const auto value = parse_number<uint32_t>(text)) return *value;
    return invalid(std::string(name) + " is '" + text + "', expected a number (was it set by hand?)");
}

// "node[07-09,12],login1" → "node07"
std::string first_of(const std::string& hosts) {
    const size_t end = hosts.find_first_of(",[");
    std::string out = hosts.substr(0, end);
    if (end != hosts.npos && hosts[end] == '[') out += hosts.substr(end + 1, hosts.find_first_of("-,]", end) - end - 1);
    return out;
}

Result<std::optional<Launched>> checked(Launched l) {
    if (l.size < 2) return std::optional<Launched>();
    if (l.rank >= l.size)
        return invalid("the launcher says that this is rank " + std::to_string(l.rank) + " of " +
                       std::to_string(l.size));
    return std::optional(std::move(l));
}

}  // namespace

Result<std::optional<Launched>> launched(const Environment& env) {
    Launched out;
    if (env("OMPI_COMM_WORLD_RANK")) {
        PB_TRY(out.rank, number_of(env, "OMPI_COMM_WORLD_RANK"));
        PB_TRY(out.size, number_of(env, "OMPI_COMM_WORLD_SIZE"));
        PB_TRY(out.here, number_of(env, "OMPI_COMM_WORLD_LOCAL_SIZE"));
        out.job = "mpirun " + value_of(env, "PMIX_NAMESPACE");
        return checked(std::move(out));
    }
    if (env("SLURM_PROCID") && env("SLURM_STEP_ID")) { // a batch script is not a job step
        out.by = config::Launcher::kSrun;
        PB_TRY(out.rank, number_of(env, "SLURM_PROCID"));
        PB_TRY(out.size, number_of(env, "SLURM_STEP_NUM_TASKS"));
        PB_TRY(const uint32_t hosts, number_of(env, "SLURM_STEP_NUM_NODES"));
        out.here = hosts == 1 ? out.size : std::max(1u, out.size / std::max(hosts, 1u));
        out.first_host = first_of(value_of(env, "SLURM_STEP_NODELIST"));
        out.job = "srun " + value_of(env, "SLURM_JOB_ID") + "." + value_of(env, "SLURM_STEP_ID");
        return checked(std::move(out));
    }
    return std::optional<Launched>();
}

bool leaves_unbound(const Environment& env) {
    if (env("OMPI_MCA_orte_launch")) return !env("OMPI_MCA_orte_bound_at_launch"); // of Open MPI 4
    return value_of(env, "SLURM_CPU_BIND_TYPE").starts_with("none");
}

uint32_t ranks_on_these_cores(uint32_t size) {
    const Environment env = [](const char* name) -> const char* { return std::getenv(name); };
    const auto job = launched(env);
    if (!job || !*job) return size; // started by us
    const bool may_be_bound = allowed_cores() < sysconf(_SC_NPROCESSORS_ONLN) && !leaves_unbound(env);
    return may_be_bound ? 1 : (*job)->here;
}

Result<Endpoint> rendezvous_of(const Launched& l, const std::string& asked) {
    constexpr uint32_t kFirstPort = 20'000, kPorts = 10'000; // below the ephemeral ports of operating systems
    if (!asked.empty()) return parse_endpoint(asked);
    const auto port = static_cast<uint16_t>(kFirstPort + XXH32(l.job.data(), l.job.size(), 0) % kPorts);
    if (l.here == l.size) return Endpoint{"127.0.0.1", port};
    if (!l.first_host.empty()) return Endpoint{l.first_host, port};
    return invalid("the ranks are on several hosts: say where rank 0 can be reached by PATCHBAY_RENDEZVOUS=HOST:PORT "
                   "(mpirun -x PATCHBAY_RENDEZVOUS=…)");
}

Result<> check_rendezvous(const Launched& l, const Endpoint& at, const std::string& address) {
    if (l.here == l.size || (!address.starts_with("127.") && address != "::1")) return {};
    return invalid(at.host + " is " + address + " on its own host (see /etc/hosts), where the ranks of other hosts "
                   "cannot reach it: give an address that they can reach, by PATCHBAY_RENDEZVOUS=ADDRESS:PORT");
}

Result<std::string> device_of_rank(const Environment& env, const std::string& visible_by, uint32_t rank) {
    if (!env(visible_by.c_str())) return std::to_string(rank);
    const std::string list = value_of(env, visible_by.c_str());
    uint32_t count = 0;
    for (size_t from = 0; from < list.size(); ++count) { // numbers or names, "GPU-8932f937"
        const size_t end = std::min(list.find(',', from), list.size());
        if (count == rank) return list.substr(from, end - from);
        from = end + 1;
    }
    return invalid(visible_by + " is '" + list + "': rank " + std::to_string(rank) +
                   " finds no device of its own there (name as many as tensor_parallel_size)");
}

Result<std::vector<Member>> start_local(const std::filesystem::path& program, uint32_t size,
                                        const Deadlines& deadlines, const std::string& visible_by) {
    std::vector<Member> out;
    const auto give_up = [&](Failure why) {
        for (const Member& m : out) {
            kill(m.child, SIGKILL);
            while (waitpid(m.child, nullptr, 0) < 0 && errno == EINTR) {
            }
        }
        return why;
    };
    for (uint32_t rank = 1; rank < size; ++rank) {
        std::vector<std::string> variables;
        for (char** v = environ; *v; ++v) variables.emplace_back(*v);
        if (!visible_by.empty()) {
            const auto own =
                device_of_rank([](const char* name) -> const char* { return std::getenv(name); }, visible_by, rank);
            if (!own) return give_up(own.failure());
            const std::string head = visible_by + "=";
            std::erase_if(variables, [&](const std::string& v) { return v.starts_with(head); });
            variables.push_back(head + *own);
        }
        const SpawnWords environment(std::move(variables));
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
            return give_up(fail(system_error("cannot make a socket pair")));
        Socket ours(ends[0]);
        const Socket theirs(ends[1]);
        const SpawnWords arguments({program.string(), "worker", "--fd", std::to_string(kWorkerFd), "--rank",
                               std::to_string(rank), "--size", std::to_string(size), "--heartbeat-ms",
                               std::to_string(deadlines.heartbeat / 1'000'000)});
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO); // keeps it out of our results
        posix_spawn_file_actions_adddup2(&actions, theirs.get(), kWorkerFd);      // onto itself: clears close-on-exec
        pid_t child = 0;
        const int failed = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.get(),
                                       environment.get());
        posix_spawn_file_actions_destroy(&actions);
        if (failed)
            return give_up(
                fail(code_of_open(failed), "cannot start " + program.string() + ": " + std::strerror(failed)));
        out.push_back({std::move(ours), rank, child});
    }
    return out;
}

}  // namespace patchbay::parallel
