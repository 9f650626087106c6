#include "ranks.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "patchbay/plugin.hpp"

#ifdef PATCHBAY_HAS_NCCL
#include <nccl.h>

namespace patchbay {
namespace {

void check(ncclResult_t result, const char* what) {
    if (result == ncclSuccess) return;
    const pb_status status = result == ncclInvalidUsage ? PB_UNSUPPORTED : PB_FAILED; // two ranks on one GPU, say
    throw Error(status, std::string(what) + ": " + ncclGetErrorString(result) + " (" + ncclGetLastError(nullptr) + ")");
}

// Finds two ranks on one GPU before NCCL fails with a less clear reason.
void expect_own_gpu(const pb_group& group) {
    int device = 0;
    cudaDeviceProp properties{};
    if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&properties, device) != cudaSuccess)
        throw Error(PB_FAILED, "the GPU does not say which it is");
    const auto key = [](uint32_t rank) { return "gpu/" + std::to_string(rank); };
    if (group.set(group.ctx, key(group.rank).c_str(), &properties.uuid, sizeof properties.uuid) != PB_OK)
        throw Error(PB_FAILED, "the ranks' store fails");
    for (uint32_t rank = 0; rank < group.size; ++rank) {
        cudaUUID_t other{};
        uint64_t bytes = sizeof other;
        if (rank == group.rank) continue;
        if (group.get(group.ctx, key(rank).c_str(), &other, &bytes) != PB_OK)
            throw Error(PB_FAILED, "rank " + std::to_string(rank) + " did not say which GPU it uses");
        if (std::memcmp(&other, &properties.uuid, sizeof other) == 0)
            throw Error(PB_UNSUPPORTED, "ranks " + std::to_string(rank) + " and " + std::to_string(group.rank) +
                                            " are on one GPU (CUDA_VISIBLE_DEVICES or `index` gives each its own)");
    }
}

}  // namespace

// NCCL's calls return at once and continue by themselves (blocking = 0); the caller polls until one is done. No call
// is made under the mutex, and none while another thread is in one: abort() leaves the communicator to the thread that
// uses it.
struct Ranks::Links {
    ncclComm_t all = nullptr;
    bool in_use = false;
    std::mutex mutex; // of both
    std::condition_variable changed; // the communicator was given up
    std::thread ending;

    ~Links() {
        if (ending.joinable()) ending.join();
    }

    // Once. Kernels that wait for another rank end at once. NCCL then waits until no graph has captured an exchange;
    // the thread that steps frees those later, so the caller does not wait with it.
    void end(ncclComm_t gone) noexcept {
        try {
            ending = std::thread([gone] { ncclCommAbort(gone); });
        } catch (const std::system_error&) { // no thread is to be had
            ncclCommAbort(gone);
        }
    }
};

namespace {
constexpr auto kPause = std::chrono::milliseconds(1); // between two questions
// Questions without a pause, at first: a thread of NCCL begins a collective within microseconds.
constexpr uint32_t kEagerQuestions = 20000;
}

// Runs f(communicator), unless they have been aborted; then ends the communicator if that was asked for meanwhile.
template <class F>
void Ranks::work(F&& f) {
    struct Use {
        Ranks& ranks;
        explicit Use(Ranks& r) : ranks(r) {
            const std::lock_guard lock(r.links_->mutex);
            if (r.aborted_) throw Error(PB_FAILED, "disconnected from the other ranks");
            r.links_->in_use = true;
        }
        ~Use() {
            ncclComm_t gone = nullptr;
            {
                const std::lock_guard lock(ranks.links_->mutex);
                ranks.links_->in_use = false;
                if (ranks.aborted_) gone = std::exchange(ranks.links_->all, nullptr);
            }
            if (gone) ranks.links_->end(gone);
        }
    } const use(*this);
    f(links_->all);
}

// Until the latest call is done. max_pauses: 0: only abort() ends it.
void Ranks::wait(ncclComm* all, int begun, const char* what, uint32_t max_pauses) {
    auto result = static_cast<ncclResult_t>(begun);
    for (uint32_t questions = 0, pauses = 0; result == ncclInProgress;) {
        if (given_up_ || aborted_) throw Error(PB_FAILED, std::string(what) + ": disconnected from the other ranks");
        if (max_pauses > 0 && pauses >= max_pauses)
            throw Error(PB_FAILED, std::string(what) + ": not all ranks were there within " +
                                       std::to_string(max_pauses) +
                                       " ms (has one no GPU, or is there a firewall? NCCL_DEBUG=INFO says more)");
        if (questions < kEagerQuestions) {
            ++questions;
            std::this_thread::yield(); // NCCL's thread may want this core
        } else {
            ++pauses;
            std::unique_lock lock(links_->mutex);
            links_->changed.wait_for(lock, kPause);
        }
        ncclResult_t state = ncclSuccess;
        check(ncclCommGetAsyncError(all, &state), "ncclCommGetAsyncError");
        result = state;
    }
    check(result, what);
}

Ranks::Ranks(const pb_group& group, cudaStream_t stream, const std::atomic<bool>& given_up)
    : size_(group.size), timeout_ms_(group.timeout_ms), stream_(stream), given_up_(given_up),
      links_(std::make_unique<Links>()) {
    expect_own_gpu(group);
    constexpr const char* kKey = "nccl/id";
    ncclUniqueId id{};
    if (group.rank == 0) {
        check(ncclGetUniqueId(&id), "ncclGetUniqueId");
        if (group.set(group.ctx, kKey, &id, sizeof id) != PB_OK) throw Error(PB_FAILED, "the ranks' store fails");
    } else {
        uint64_t bytes = sizeof id;
        if (group.get(group.ctx, kKey, &id, &bytes) != PB_OK || bytes != sizeof id)
            throw Error(PB_FAILED, "rank 0 did not say where it is");
    }
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    constexpr const char* kWhat = "ncclCommInitRankConfig";
    const ncclResult_t begun = ncclCommInitRankConfig(&links_->all, static_cast<int>(group.size), id,
                                                      static_cast<int>(group.rank), &config);
    try {
        wait(links_->all, begun, kWhat, std::max(timeout_ms_, 1u));
    } catch (...) {
        if (links_->all) ncclCommAbort(links_->all);
        throw;
    }
}

Ranks::~Ranks() {
    if (!links_->all) return;
    try {
        wait(links_->all, ncclCommFinalize(links_->all), "ncclCommFinalize", std::max(timeout_ms_, 1u));
        ncclCommDestroy(links_->all);
    } catch (const std::exception&) { // others are gone
        ncclCommAbort(links_->all);
    }
}

void Ranks::all_gather(void* gathered, const void* x, int64_t count, pb_dtype dtype) {
    work([&](ncclComm_t all) {
        const ncclResult_t begun = ncclAllGather(x, gathered, static_cast<size_t>(count),
                                                 dtype == PB_BF16 ? ncclBfloat16 : ncclFloat32, all, stream_);
        wait(all, begun, "ncclAllGather", 0);
    });
}

void Ranks::abort() noexcept {
    ncclComm_t gone = nullptr;
    {
        const std::lock_guard lock(links_->mutex);
        if (aborted_.exchange(true)) return;
        if (!links_->in_use) gone = std::exchange(links_->all, nullptr);
    }
    links_->changed.notify_all();
    if (gone) links_->end(gone);
}

}  // namespace patchbay

#else
namespace patchbay {

struct Ranks::Links {};
Ranks::Ranks(const pb_group& group, cudaStream_t stream, const std::atomic<bool>& given_up)
    : size_(group.size), stream_(stream), given_up_(given_up) {
    throw Error(PB_UNSUPPORTED, "this build of the device cuda has no NCCL (scripts/install-deps --cuda)");
}
Ranks::~Ranks() = default;
void Ranks::all_gather(void*, const void*, int64_t, pb_dtype) {}
void Ranks::abort() noexcept {}

}  // namespace patchbay
#endif
