// The host's one thread pool, which plugins get as patchbay.pool/1.
#pragma once
#include <cstdint>
#include <memory>

#include "patchbay/abi/services.h"

namespace patchbay {

enum class Pinning {
    kNone,
    kCores, // each started thread is pinned to a core of its own while there are enough; the caller of run() is not
};

class ThreadPool {
  public:
    // `threads` run at once, including the caller of run(); at least 1. Starts threads − 1.
    explicit ThreadPool(uint32_t threads, Pinning = Pinning::kNone);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    uint32_t threads() const;
    // Calls task(arg, i) for each i in [0, count) and returns when all are done. Callers take turns. [any]
    void run(uint32_t count, void (*task)(void* arg, uint32_t index), void* arg);
    const pb_pool& service() const; // valid as long as the pool

  private:
    struct Workers;
    std::unique_ptr<Workers> workers_;
};

}  // namespace patchbay
