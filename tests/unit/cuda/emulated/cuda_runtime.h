// Stands in for the CUDA Toolkit's header of this name where tests compile kernels as C++: a block's threads are fibers
// that run one after the other between barriers, blocks run one by one. Shared memory begins as NaN.
#pragma once
#include <ucontext.h>

#include <cmath>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

struct dim3 {
    uint32_t x, y, z;
    dim3(uint32_t across = 1, uint32_t down = 1, uint32_t deep = 1) : x(across), y(down), z(deep) {}
};
struct float4 {
    float x, y, z, w;
};

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

enum class Order { kAscending, kDescending }; // in which a block's threads get their turns
inline Order order = Order::kAscending;

[[noreturn]] inline void stop(const char* why) {
    std::fprintf(stderr, "emulated kernel, block %u thread %u: %s\n", blockIdx.x, threadIdx.x, why);
    std::abort();
}

struct Barrier {
    uint32_t size = 0, arrived = 0, generation = 0;
};

struct Warp {
    Barrier barrier;
    uint32_t slots[32][8]; // what lanes show each other
};

struct Copy {
    void* to;
    const void* from; // nullptr: zeros
};

struct Fiber { // begun by setcontext(), from then on switched to by a jump, which needs no system call
    ucontext_t context;
    jmp_buf jump;
    bool begun = false;
    std::unique_ptr<char[]> stack;
    bool done = true;
    std::vector<std::vector<Copy>> groups; // of asynchronous copies, the oldest first
    std::vector<Copy> open;                // not in a group yet
};

struct Block {
    static constexpr size_t kStack = 128 << 10;
    jmp_buf main;
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    Barrier barrier;
    std::unique_ptr<uint8_t[]> shared;
    uint8_t* shared_line = nullptr; // of 128 bytes
    std::function<void()> body;
    uint32_t current = 0;
    uint64_t progress = 0; // counts barriers passed and threads that ended
};
inline Block block;

inline void yield() {
    if (_setjmp(block.fibers[block.current].jump) == 0) _longjmp(block.main, 1);
}

__attribute__((noinline)) inline void resume(Fiber& fiber) {
    if (_setjmp(block.main) != 0) return;
    if (std::exchange(fiber.begun, true)) _longjmp(fiber.jump, 1);
    setcontext(&fiber.context);
}

inline void wait_at(Barrier& barrier) {
    const uint32_t generation = barrier.generation;
    if (++barrier.arrived == barrier.size) {
        barrier.arrived = 0;
        ++barrier.generation;
        ++block.progress;
        return;
    }
    while (barrier.generation == generation) yield();
}

inline Warp& warp() { return block.warps[threadIdx.x / 32]; }

inline void perform(const std::vector<Copy>& copies) {
    for (const Copy& c : copies) {
        if (c.from) std::memcpy(c.to, c.from, 16);
        else std::memset(c.to, 0, 16);
    }
}

inline void thread_main() {
    block.body();
    Fiber& fiber = block.fibers[block.current];
    if (!fiber.open.empty() || !fiber.groups.empty()) stop("it ends with copies under way");
    fiber.done = true;
    ++block.progress;
    yield();
}

inline void run_block(uint32_t threads) {
    block.barrier = {threads, 0, 0};
    block.warps.assign((threads + 31) / 32, Warp{});
    for (Warp& w : block.warps) w.barrier.size = 32;
    if (block.fibers.size() < threads) block.fibers.resize(threads);
    for (uint32_t i = 0; i < threads; ++i) {
        Fiber& f = block.fibers[i];
        if (!f.stack) f.stack = std::make_unique<char[]>(Block::kStack);
        f.done = f.begun = false;
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.get();
        f.context.uc_stack.ss_size = Block::kStack;
        f.context.uc_link = nullptr;
        makecontext(&f.context, thread_main, 0);
    }
    for (bool live = true; live;) {
        live = false;
        const uint64_t before = block.progress;
        for (uint32_t turn = 0; turn < threads; ++turn) {
            const uint32_t i = order == Order::kAscending ? turn : threads - 1 - turn;
            if (block.fibers[i].done) continue;
            live = true;
            block.current = i;
            threadIdx = dim3(i);
            resume(block.fibers[i]);
        }
        if (live && block.progress == before) stop("threads wait at a barrier that others never reach");
    }
}

inline void run_grid(dim3 grid, dim3 threads, size_t shared_bytes, std::function<void()> body) {
    if (threads.x % 32 != 0 || threads.x > 1024 || threads.x == 0) stop("a block is not of whole warps");
    block.body = std::move(body);
    gridDim = grid;
    blockDim = threads;
    for (uint32_t x = 0; x < grid.x; ++x) {
        blockIdx = dim3(x);
        block.shared = std::make_unique<uint8_t[]>(shared_bytes + 128);
        std::memset(block.shared.get(), 0xff, shared_bytes + 128);
        const auto from = reinterpret_cast<uintptr_t>(block.shared.get());
        block.shared_line = reinterpret_cast<uint8_t*>((from + 127) / 128 * 128);
        run_block(threads.x);
    }
}

}  // namespace emulated

inline void __syncthreads() { emulated::wait_at(emulated::block.barrier); }
