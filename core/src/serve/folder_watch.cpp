#include "serve/folder_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace patchbay::serve {

Result<std::unique_ptr<FolderWatch>> FolderWatch::start(const std::vector<std::filesystem::path>& folders,
                                                        std::function<void(const std::filesystem::path&)> on_file) {
    std::unique_ptr<FolderWatch> out(new FolderWatch(std::move(on_file)));
    out->inotify_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    out->stop_ = eventfd(0, EFD_CLOEXEC);
    const auto refused = [](const std::string& what) {
        return fail(StatusCode::kUnavailable, "cannot watch " + what + ": " + std::strerror(errno));
    };
    if (out->inotify_ < 0 || out->stop_ < 0) return refused("folders");
    for (const std::filesystem::path& folder : folders) {
        const int watch = inotify_add_watch(out->inotify_, folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR);
        if (watch < 0) return refused(folder.string());
        out->folders_[watch] = folder;
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

void FolderWatch::loop() {
    for (;;) {
        pollfd waits[2] = {{inotify_, POLLIN, 0}, {stop_, POLLIN, 0}};
        if (poll(waits, 2, -1) < 0 && errno != EINTR) return;
        if (waits[1].revents) return;
        if (waits[0].revents) read();
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
        const auto folder = folders_.find(event.wd);
        const char* const name = bytes + at + sizeof event;
        if (folder != folders_.end() && event.len > 0 && !(event.mask & IN_ISDIR)) on_file_(folder->second / name);
        at += static_cast<ssize_t>(sizeof event + event.len);
    }
}

}  // namespace patchbay::serve
