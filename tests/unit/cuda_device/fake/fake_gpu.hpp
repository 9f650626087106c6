// What a test sets and sees of the GPU that cuda_runtime_api.h stands for.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace patchbay::fake {

struct FakeGpu {
    int count = 1, major = 9;
    cudaError_t kernels = cudaSuccess;        // what starting one brings
    cudaError_t work = cudaSuccess;           // what waiting for work brings: a GPU that stopped stays so
    cudaError_t events = cudaSuccess, records = cudaSuccess, graphs_made = cudaSuccess; // what making one brings
    enum class Pace { kEarly, kLate } pace = Pace::kEarly; // whether more is done than is waited for
    uint64_t capacity = uint64_t{1} << 30;    // of its memory, in bytes
    std::map<void*, uint64_t> memory, pinned; // taken and not given back: how many bytes
    int streams = 0, live_events = 0;         // likewise
    int graphs = 0, launchable = 0;           // likewise: that were recorded; that can be launched
    int current = 0;                          // device of the thread

    uint64_t bytes() const;                                        // of memory
    void start(cudaStream_t, std::function<void()> kernel) const; // as a kernel of some plugin would
    void fail_to_start(cudaError_t);                               // likewise, one that does not
};

FakeGpu& gpu(); // of this process; a test begins with a new one

}  // namespace patchbay::fake
