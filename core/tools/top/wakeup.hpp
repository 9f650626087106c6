// A file descriptor that becomes readable when another thread, or a signal handler, has news for the thread that polls.
#pragma once
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace patchbay::top {

class Wakeup {
  public:
    Wakeup() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    ~Wakeup() { close(fd_); }
    Wakeup(const Wakeup&) = delete;
    Wakeup& operator=(const Wakeup&) = delete;

    int fd() const { return fd_; }
    void wake() const { // async-signal-safe
        const uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = write(fd_, &one, sizeof one);
    }
    void clear() const {
        uint64_t count = 0;
        [[maybe_unused]] const ssize_t got = read(fd_, &count, sizeof count);
    }

  private:
    const int fd_;
};

}  // namespace patchbay::top
