// How the ranks are started: here, or by mpirun or srun, whose environment variables number them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/engine_config.hpp"
#include "parallel/address.hpp"
#include "parallel/deadlines.hpp"
#include "parallel/peers.hpp"

namespace patchbay::parallel {

// A process that a launcher started as one of several.
struct Launched {
    config::Launcher by = config::Launcher::kMpirun;
    std::string job;         // equal for all ranks of a job, and different for other jobs
    uint32_t rank = 0, size = 1;
    uint32_t here = 1;       // number of ranks on this host
    std::string first_host;  // where rank 0 is, if the launcher says
};

using Environment = std::function<const char*(const char*)>; // std::getenv
// None: this process was started alone. Fails if the launcher's variables are inconsistent.
Result<std::optional<Launched>> launched(const Environment&);
// Whether the launcher says that it bound no rank to cores of its own. Not all say so.
bool leaves_unbound(const Environment&);
// How many ranks share the cores that this process may use: all on this host, unless a launcher bound them.
uint32_t ranks_on_these_cores(uint32_t size);
// Where rank 0 listens. asked: PATCHBAY_RENDEZVOUS; empty: detected if possible.
Result<Endpoint> rendezvous_of(const Launched&, const std::string& asked);
// address: what rank 0's listener is bound to. Refused: one that the ranks of other hosts cannot reach.
Result<> check_rendezvous(const Launched&, const Endpoint&, const std::string& address);

inline constexpr int kWorkerFd = 3;             // the socket of a rank that is started here
inline constexpr const char* kLocalJob = "local"; // the job of such ranks
// The value of the variable that lists the devices which a process sees (pb_device_info.visible_by), for a rank that
// gets one of its own: the rank-th of its value here, or where it has none the rank-th of the machine.
Result<std::string> device_of_rank(const Environment&, const std::string& visible_by, uint32_t rank);
// Starts ranks 1 to size − 1, as `program worker --fd 3 --rank R --size N`. visible_by: as in pb_device_info. A fault
// ends those that were started.
Result<std::vector<Member>> start_local(const std::filesystem::path& program, uint32_t size, const Deadlines&,
                                        const std::string& visible_by);

}  // namespace patchbay::parallel
