#include "serve/socket_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace patchbay::serve {
namespace {

namespace fs = std::filesystem;

class FolderLock { // released with it, or with the process
  public:
    FolderLock(const fs::path& folder, Clock& clock)
        : fd_(open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
        const uint64_t limit_ns = clock.now_ns() + kMaxLockWaitSeconds * 1'000'000'000;
        while (fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
            const uint64_t now_ns = clock.now_ns();
            taken_ = now_ns >= limit_ns;
            if (taken_) break;
            clock.wait_until_ns(now_ns + 20'000'000);
        }
    }
    ~FolderLock() {
        if (fd_ >= 0) close(fd_);
    }
    FolderLock(const FolderLock&) = delete;
    FolderLock& operator=(const FolderLock&) = delete;
    bool there() const { return fd_ >= 0; }
    bool taken() const { return taken_; } // by another one, which may be any user who may read the folder

  private:
    const int fd_;
    bool taken_ = false;
};

// Refused where something is there that may not be taken away.
Result<> make_room(const fs::path& path) {
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0) return {};
    if (!S_ISSOCK(info.st_mode)) return fail(StatusCode::kInvalid, path.string() + " is there, and is not a socket");
    if (is_live_socket(path))
        return fail(StatusCode::kUnavailable, "another process listens on " + path.string() + " already");
    if (unlink(path.c_str()) == 0) return {};
    return fail("cannot replace " + path.string() + ", which a process left: " + std::strerror(errno));
}

}  // namespace

bool is_live_socket(const fs::path& path) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    const std::string& name = path.native();
    if (name.size() >= sizeof to.sun_path) return false;
    std::memcpy(to.sun_path, name.c_str(), name.size() + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool refused = connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 &&
                         (errno == ECONNREFUSED || errno == ENOENT || errno == ENOTDIR);
    close(fd);
    return !refused; // with a full backlog, or where it may not be asked, it lives
}

void remove_dead_sockets(const fs::path& folder) {
    RealClock clock;
    const FolderLock lock(folder, clock); // else a new one that does not listen yet would look dead
    if (lock.taken()) return;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        if (at->path().extension() == ".sock" && !is_live_socket(at->path())) unlink(at->path().c_str());
}

SocketFile::SocketFile(fs::path path, dev_t device, ino_t inode)
    : path_(std::move(path)), device_(device), inode_(inode) {}

Result<std::unique_ptr<SocketFile>> SocketFile::make(const fs::path& path, const std::function<Result<>()>& bind,
                                                     const std::function<Result<>()>& listen, Clock&& clock) {
    if (path.native().size() >= kMaxSocketPath)
        return fail(StatusCode::kInvalid, "a Unix socket's path has at most " + std::to_string(kMaxSocketPath - 1) +
                                              " bytes, got " + std::to_string(path.native().size()) + ": " +
                                              path.string());
    const FolderLock lock(path.parent_path(), clock);
    if (!lock.there())
        return fail(StatusCode::kInvalid,
                    "cannot listen on " + path.string() + ": its folder: " + std::strerror(errno));
    if (lock.taken())
        return fail(StatusCode::kUnavailable, "cannot listen on " + path.string() + ": for " +
                                                  std::to_string(kMaxLockWaitSeconds) +
                                                  " s another process has kept its folder locked (flock)");
    PB_CHECK(make_room(path));
    PB_CHECK(bind());
    struct stat info {};
    if (chmod(path.c_str(), 0600) != 0 || lstat(path.c_str(), &info) != 0)
        return fail("cannot keep others from " + path.string() + ": " + std::strerror(errno));
    PB_CHECK(listen());
    return std::unique_ptr<SocketFile>(new SocketFile(path, info.st_dev, info.st_ino));
}

SocketFile::~SocketFile() {
    struct stat info {};
    const bool own = lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
    if (own) unlink(path_.c_str());
}

}  // namespace patchbay::serve
