#include "ranks.hpp"

#include <cstring>
#include <mutex>
#include <string>

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

// Two ranks on one GPU are told apart from other trouble before NCCL is asked.
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

struct Ranks::Links {
    ncclComm_t all = nullptr;
    std::mutex mutex; // abort() comes from another thread
};

Ranks::Ranks(const pb_group& group, cudaStream_t stream)
    : size_(group.size), stream_(stream), links_(std::make_unique<Links>()) {
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
    check(ncclCommInitRank(&links_->all, static_cast<int>(group.size), id, static_cast<int>(group.rank)),
          "ncclCommInitRank");
}

Ranks::~Ranks() {
    if (links_->all) ncclCommDestroy(links_->all);
}

void Ranks::all_gather(void* gathered, const void* x, int64_t count, pb_dtype dtype) {
    const std::lock_guard lock(links_->mutex);
    if (aborted_) throw Error(PB_FAILED, "disconnected from the other ranks");
    check(ncclAllGather(x, gathered, static_cast<size_t>(count), dtype == PB_BF16 ? ncclBfloat16 : ncclFloat32,
                        links_->all, stream_),
          "ncclAllGather");
}

void Ranks::abort() noexcept {
    const std::lock_guard lock(links_->mutex);
    if (aborted_.exchange(true)) return;
    ncclCommAbort(links_->all);
    links_->all = nullptr;
}

}  // namespace patchbay

#else
namespace patchbay {

struct Ranks::Links {};
Ranks::Ranks(const pb_group& group, cudaStream_t stream) : size_(group.size), stream_(stream) {
    throw Error(PB_UNSUPPORTED, "this build of the device cuda has no NCCL (scripts/install-deps --cuda)");
}
Ranks::~Ranks() = default;
void Ranks::all_gather(void*, const void*, int64_t, pb_dtype) {}
void Ranks::abort() noexcept {}

}  // namespace patchbay
#endif
