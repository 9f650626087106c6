#include "probe/child.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "conformance/run.hpp"
#include "host/probe_wire.hpp"

namespace patchbay::probe {
namespace {

void limit(__rlimit_resource what, uint64_t max_value) {
    const rlimit value{max_value, max_value};
    setrlimit(what, &value);
}

void raise_loopback() { // ranks of one process meet there
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
}

// Each is best effort: a machine that allows less is no reason to refuse a plugin.
void give_away() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (unshare(CLONE_NEWNET) == 0) raise_loopback(); // no network but that of itself; needs privileges
    limit(RLIMIT_CORE, 0);
    const auto limits = host::probe_limits(); // the parent has read them, too
    if (!kSanitized && limits && limits->memory_mib > 0)
        limit(RLIMIT_DATA, limits->memory_mib << 20); // not of address space, which GPU runtimes reserve freely
}

host::CheckOutcome outcome_of(const conformance::Outcome& o) {
    using What = conformance::Outcome::What;
    return o.what == What::kOk       ? host::CheckOutcome::kOk
           : o.what == What::kFailed ? host::CheckOutcome::kFailed
                                     : host::CheckOutcome::kSkipped;
}

}  // namespace

int run_child(int fd, uint32_t timeout_s, const std::filesystem::path& library,
              const std::optional<host::ProbedComponent>& only) {
    give_away();
    limit(RLIMIT_CPU, uint64_t{timeout_s} * 2 + 1); // on two threads
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    host::ProbeWriter verdict(fd);
    const conformance::Listener listener{
        [&](const std::string& component, const std::string& check) { verdict.begin(component, check); },
        [&](const conformance::Outcome& o) { verdict.end(outcome_of(o), o.reason); }};
    const auto manifest = conformance::run_all(library, only, listener);
    verdict.done(manifest ? &*manifest : nullptr);
    return 0;
}

}  // namespace patchbay::probe
