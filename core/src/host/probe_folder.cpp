#include "host/probe_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/temporary_folder.hpp"

namespace patchbay::host {
namespace {

namespace fs = std::filesystem;
constexpr auto kBeforeItsLock = std::chrono::minutes(1); // between making a folder and locking it

// Folders of this user's probes that were killed: no process holds their locks.
void remove_left(const fs::path& in) {
    std::error_code error;
    const auto oldest = fs::file_time_type::clock::now() - kBeforeItsLock;
    for (fs::directory_iterator at(in, error), end; !error && at != end; at.increment(error)) {
        if (!at->path().filename().string().starts_with(ProbeFolder::kPrefix)) continue;
        const int fd = open(at->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat info {};
        std::error_code ignored;
        if (fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
            at->last_write_time(ignored) < oldest)
            fs::remove_all(at->path(), ignored);
        if (fd >= 0) close(fd);
    }
}

}  // namespace

Result<std::unique_ptr<ProbeFolder>> ProbeFolder::make() {
    PB_TRY(const fs::path in, temporary_folder());
    remove_left(in);
    std::string path = (in / (std::string(kPrefix) + "XXXXXX")).string();
    if (!mkdtemp(path.data()))
        return fail("cannot make a temporary folder in " + in.string() + ": " + std::strerror(errno));
    const int lock = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock >= 0) flock(lock, LOCK_EX | LOCK_NB);
    return std::unique_ptr<ProbeFolder>(new ProbeFolder(path, lock));
}

ProbeFolder::~ProbeFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    if (lock_ >= 0) close(lock_);
}

}  // namespace patchbay::host
