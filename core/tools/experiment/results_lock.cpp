#include "experiment/results_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include "base/clock.hpp"
#include "base/refusals.hpp"

namespace patchbay::experiment {
namespace {

Descriptor opened(const std::filesystem::path& folder) {
    return Descriptor(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// 0, or the errno.
int lock(const Descriptor& folder, int how) {
    int code = 0;
    do code = flock(folder.get(), how | LOCK_NB) == 0 ? 0 : errno;
    while (code == EINTR);
    return code;
}

}  // namespace

Result<ResultsLock> ResultsLock::take(const std::filesystem::path& folder) {
    Descriptor fd = opened(folder);
    if (fd.get() < 0)
        return fail(code_of_open(errno), system_error("cannot open the folder " + folder.string()));
    RealClock clock;
    constexpr int kAttempts = 5; // writer_of() of another process holds it for some microseconds
    int code = lock(fd, LOCK_EX);
    for (int attempt = 1; attempt < kAttempts && code == EWOULDBLOCK; ++attempt) {
        clock.wait_until_ns(clock.now_ns() + 20'000'000);
        code = lock(fd, LOCK_EX);
    }
    if (code == EWOULDBLOCK)
        return unavailable(folder.string() + " is being written by another patchbay (wait until that has ended)");
    return ResultsLock(folder, std::move(fd));
}

ResultsWriter writer_of(const std::filesystem::path& folder) {
    const Descriptor fd = opened(folder);
    if (fd.get() < 0) return ResultsWriter::kUnknown;
    const int code = lock(fd, LOCK_SH);
    return code == 0 ? ResultsWriter::kNone : code == EWOULDBLOCK ? ResultsWriter::kThere : ResultsWriter::kUnknown;
}

}  // namespace patchbay::experiment
