// The ranks of one model, a GPU each: what they exchange, over NCCL. For the CUDA device.
#pragma once
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "patchbay/abi/device.h"

struct ncclComm; // of nccl.h

namespace patchbay {

class Ranks {
  public:
    // Waits for the others, at most as long as the group says, or until `given_up`, which outlives this. Throws Error:
    // PB_UNSUPPORTED where this plugin was built without NCCL, or GPUs are too few.
    Ranks(const pb_group&, cudaStream_t, const std::atomic<bool>& given_up);
    ~Ranks(); // graphs that have captured an exchange are freed before
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;

    uint32_t size() const { return size_; }
    // In order with the stream; x and gathered are dense, of `count` and size · count elements. Throw Error.
    void all_gather(void* gathered, const void* x, int64_t count, pb_dtype);
    void abort() noexcept; // [any] what waits goes on, with whatever it has, and what follows throws
    bool aborted() const { return aborted_; }

  private:
    struct Links;
    template <class F>
    void work(F&&);
    void wait(ncclComm*, int begun, const char* what, uint32_t max_pauses);

    uint32_t size_, timeout_ms_ = 0;
    cudaStream_t stream_;
    const std::atomic<bool>& given_up_;
    std::atomic<bool> aborted_ = false;
    std::unique_ptr<Links> links_;
};

}  // namespace patchbay
