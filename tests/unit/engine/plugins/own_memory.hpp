// Memory of a device, and the queue of its work: for replays.cpp.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "patchbay/plugin.hpp"
#include "patchbay/sdk/tensor.hpp"

using Call = std::function<void()>;

struct pb_graph {
    std::shared_ptr<std::vector<Call>> calls;
};

namespace replays {

using patchbay::Error;

// The same bytes mapped twice: the host's addresses can be neither read nor written; only this file knows the others,
// which can.
class OwnMemory {
  public:
    OwnMemory() {
        const int file = memfd_create("replays", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, kBytes) != 0) throw Error(PB_FAILED, "no memory for the device replays");
        away_ = map(file, PROT_NONE);
        here_ = map(file, PROT_READ | PROT_WRITE);
        close(file);
    }
    void* take(uint64_t bytes) { // zeroed
        const uint64_t size = (bytes + 4096) / 4096 * 4096;
        const std::lock_guard lock(mutex_);
        if (used_ + size > kBytes) throw Error(PB_FAILED, "the device replays is full");
        used_ += size;
        sizes_[away_ + (used_ - size)] = size;
        return away_ + (used_ - size);
    }
    // A later read of it gives NaN.
    void poison(void* taken) {
        uint64_t size = 0;
        {
            const std::lock_guard lock(mutex_);
            size = sizes_.at(static_cast<char*>(taken));
        }
        std::memset(here(taken), 0xff, size);
    }
    template <class T>
    T* here(T* p) const { // where it can be reached
        const auto* const at = reinterpret_cast<const char*>(p);
        if (at < away_ || at >= away_ + kBytes) return p;
        return reinterpret_cast<T*>(here_ + (at - away_));
    }

  private:
    static constexpr uint64_t kBytes = uint64_t{16} << 30; // of addresses; memory is taken when it is written
    static char* map(int file, int access) {
        void* const p = mmap(nullptr, kBytes, access, MAP_SHARED | MAP_NORESERVE, file, 0);
        if (p == MAP_FAILED) throw Error(PB_FAILED, "no addresses for the device replays");
        return static_cast<char*>(p);
    }
    char *away_ = nullptr, *here_ = nullptr;
    std::mutex mutex_;
    uint64_t used_ = 0; // nothing is used twice
    std::map<char*, uint64_t> sizes_;
};

inline OwnMemory& memory() { // of the devices, their attention and their sampler
    static OwnMemory own;
    return own;
}

inline pb_tensor here(pb_tensor t) {
    t.data = memory().here(t.data);
    return t;
}

// Calls that a thread of its own makes, in order. Late: it makes those of a step only when the next step has been
// submitted or the host waits, which is as late as a device may.
class Queue {
  public:
    explicit Queue(bool late) : late_(late), thread_([this] { work(); }) {}
    ~Queue() {
        {
            const std::lock_guard lock(mutex_);
            released_ = UINT64_MAX;
            ends_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    void push(Call call) {
        const std::lock_guard lock(mutex_);
        calls_.push_back(std::move(call));
        pushed_ += 1;
        if (!late_) release(pushed_);
    }
    // Marks the end of what was pushed; returns whether the previous mark has not been reached yet.
    bool mark() {
        const std::lock_guard lock(mutex_);
        const bool is_late = !marks_.empty() && done_ < marks_.back();
        if (!marks_.empty()) release(marks_.back());
        marks_.push_back(pushed_);
        return is_late;
    }
    void wait_for_mark() { // the oldest
        std::unique_lock lock(mutex_);
        const uint64_t until = marks_.front();
        marks_.pop_front();
        wait(lock, until);
    }
    void wait_for_all() {
        std::unique_lock lock(mutex_);
        wait(lock, pushed_);
    }

  private:
    void release(uint64_t until) {
        released_ = std::max(released_, until);
        changed_.notify_all();
    }
    void wait(std::unique_lock<std::mutex>& lock, uint64_t until) {
        release(until);
        changed_.wait(lock, [&] { return done_ >= until; });
    }
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return ends_ || (!calls_.empty() && done_ < released_); });
            if (calls_.empty()) return; // it ends
            const Call call = std::move(calls_.front());
            calls_.pop_front();
            lock.unlock();
            call();
            lock.lock();
            done_ += 1;
            changed_.notify_all();
        }
    }

    const bool late_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Call> calls_;
    std::deque<uint64_t> marks_;                     // how many calls come before each
    uint64_t pushed_ = 0, released_ = 0, done_ = 0;
    bool ends_ = false;
    std::thread thread_;
};

inline thread_local pb_graph* recording = nullptr; // as a stream that is captured

inline void enqueue(Queue* queue, Call call) { // null: it is made at once
    if (recording) recording->calls->push_back(std::move(call));
    else if (queue) queue->push(std::move(call));
    else call();
}

}  // namespace replays
