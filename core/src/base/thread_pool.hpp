// The host's one thread pool, handed to plugins as patchbay.pool/1.
#pragma once
#include <cstdint>
#include <memory>

#include "patchbay/abi/services.h"

namespace patchbay {

enum class Pinning {
    kNone,
    kCores, // each started thread stays on one core, another for each while there are; the caller of run() moves freely
};

class ThreadPool {
  public:
    // `threads` run at once, the caller of run() among them; at least 1. Starts threads − 1.
    explicit ThreadPool(uint32_t threads, Pinning = Pinning::kNone);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    uint32_t threads() const;
    // Calls task(arg, i) for each i in [0, count) and returns when all are done. Callers take turns. [any]
    void run(uint32_t count, void (*task)(void* arg, uint32_t index), void* arg);
    const pb_pool& service() const; // lives as long as the pool

  private:
    struct Workers;
    std::unique_ptr<Workers> workers_;
};

}  // namespace patchbay
