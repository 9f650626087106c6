#include "serve/folder_watch.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"

namespace patchbay::serve {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kGone = IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT;
constexpr uint64_t kRetryMs = 500; // while a folder is gone

}  // namespace

Result<std::unique_ptr<FolderWatch>> FolderWatch::start(const std::vector<fs::path>& folders, OnFile on_file) {
    std::unique_ptr<FolderWatch> out(new FolderWatch(std::move(on_file)));
    out->inotify_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    out->stop_ = eventfd(0, EFD_CLOEXEC);
    const auto refused = [](const std::string& what) {
        return fail(StatusCode::kUnavailable, "cannot watch " + what + ": " + std::strerror(errno));
    };
    if (out->inotify_ < 0 || out->stop_ < 0) return refused("folders");
    for (const fs::path& folder : folders) {
        struct stat info {};
        const int watch = out->add(folder);
        if (watch < 0 || stat(folder.c_str(), &info) != 0) return refused(folder.string());
        out->watched_[watch] = {folder, info.st_uid, info.st_mode};
    }
    out->thread_ = std::thread([w = out.get()] { w->loop(); });
    return out;
}

void FolderWatch::stop() {
    const uint64_t one = 1;
    (void)!write(stop_, &one, sizeof one);
}

FolderWatch::~FolderWatch() {
    if (thread_.joinable()) {
        stop();
        thread_.join();
    }
    for (const int fd : {inotify_, stop_})
        if (fd >= 0) close(fd);
}

int FolderWatch::add(const fs::path& folder) const {
    return inotify_add_watch(inotify_, folder.c_str(),
                             IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
}

void FolderWatch::loop() {
    const RealClock clock;
    for (uint64_t tried_ns = 0;;) {
        pollfd waits[2] = {{inotify_, POLLIN, 0}, {stop_, POLLIN, 0}};
        const int ready = poll(waits, 2, lost_.empty() ? -1 : int{kRetryMs});
        if (ready < 0 && errno != EINTR) return;
        if (ready > 0 && waits[1].revents) return;
        if (ready > 0 && waits[0].revents) read();
        if (lost_.empty() || clock.now_ns() - tried_ns < kRetryMs * 1'000'000) continue;
        tried_ns = clock.now_ns();
        watch_again();
    }
}

void FolderWatch::lose(std::map<int, Watched>::iterator at) {
    spdlog::warn("the watched folder {} is gone: it is watched again once it is back", at->second.folder.string());
    inotify_rm_watch(inotify_, at->first); // one that was moved away is watched yet
    lost_.push_back(std::move(at->second));
    watched_.erase(at);
}

// What the folder holds by then has had no watch, and is new. Where others may write to folders above, another user may
// have made it: what lies there is not run.
void FolderWatch::watch_again() {
    for (Watched& w : std::exchange(lost_, {})) {
        struct stat info {};
        const bool is_ours = stat(w.folder.c_str(), &info) == 0 && info.st_uid == w.owner &&
                             (info.st_mode & ~w.mode & (S_IWGRP | S_IWOTH)) == 0;
        const int watch = is_ours ? add(w.folder) : -1;
        if (watch < 0) {
            lost_.push_back(std::move(w));
            continue;
        }
        spdlog::info("the folder {} is back, and watched again", w.folder.string());
        std::error_code error;
        for (fs::directory_iterator at(w.folder, error), end; !error && at != end && !stops(); at.increment(error)) {
            std::error_code ignored;
            if (at->is_regular_file(ignored)) on_file_(at->path(), stop_);
        }
        watched_[watch] = std::move(w);
    }
}

bool FolderWatch::stops() const {
    pollfd stop{stop_, POLLIN, 0};
    return poll(&stop, 1, 0) > 0;
}

void FolderWatch::read() {
    alignas(inotify_event) char bytes[16 << 10];
    const ssize_t n = ::read(inotify_, bytes, sizeof bytes);
    for (ssize_t at = 0; at < n && !stops();) {
        inotify_event event;
        std::memcpy(&event, bytes + at, sizeof event);
        const auto watched = watched_.find(event.wd);
        const char* const name = bytes + at + sizeof event;
        at += static_cast<ssize_t>(sizeof event + event.len);
        if (event.mask & IN_Q_OVERFLOW)
            spdlog::warn("too many files at once appeared in watched folders: some were missed (`patchbay reload`)");
        if (watched == watched_.end()) continue;
        if (event.mask & kGone) lose(watched);
        else if (event.len > 0 && !(event.mask & IN_ISDIR)) on_file_(watched->second.folder / name, stop_);
    }
}

}  // namespace patchbay::serve
