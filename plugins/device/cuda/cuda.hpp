// One NVIDIA GPU as a device: memory and ops in the order of one stream, products by cuBLASLt, the rest by
// kernels/cuda. One per engine.
#pragma once
#include <memory>
#include <vector>

#include "expert_tables.hpp"
#include "gpu.hpp"
#include "graphs.hpp"
#include "memory.hpp"
#include "ops.hpp"
#include "patchbay/sdk/device.hpp"
#include "products.hpp"
#include "rank_connection.hpp"
#include "staging.hpp"
#include "steps.hpp"
#include "weights.hpp"

namespace patchbay {

struct SharedParts { // what the other bases of the device work with
    SharedParts(int index, bool checks_each_op)
        : gpu(index, checks_each_op), staging(gpu.stream()), connection(gpu) {}

    Gpu gpu;
    Staging staging;
    RankConnection connection;
};

// sdk/device.hpp finds the functions of a device in its bases, too.
class CudaDevice : private SharedParts, public DeviceMemory, public Steps, public Graphs {
  public:
    static constexpr const char* kDtypes[] = {"bf16", "f32", nullptr};
    static constexpr pb_param kParams[] = {
        param::integer("index", "0", 0, 1023, "", "which GPU, in the order of CUDA_VISIBLE_DEVICES"),
        param::choice("activation_dtype", "bf16", kDtypes, "of activations"),
        param::boolean("batch_invariant", "false",
                       "give a row the same bits whatever is in the batch: products by one algorithm for all sizes"),
        param::boolean("check_each_op", "false", "wait after each op, so that a fault names the op; slow"),
        param::integer("workspace_mib", "32", 1, 1024, "MiB", "memory that cuBLASLt may use while it multiplies"),
    };

    explicit CudaDevice(const Context&);
    ~CudaDevice();
    CudaDevice(const CudaDevice&) = delete;
    CudaDevice& operator=(const CudaDevice&) = delete;

    pb_device_info info() const;
    std::vector<pb_limit> measure();
    void* queue() const { return gpu.stream(); }
    const pb_ops* ops() const { return &ops_; }
    pb_weight* prepare(const pb_weight_source&);
    void release(pb_weight* weight) { weights_.release(weight); }
    uint64_t weight_bytes(const pb_weight* weight) const { return weight->bytes; }
    void connect(const pb_group&);
    void disconnect() noexcept { connection.disconnect(); } // [any]

  private:
    const pb_dtype activation_dtype_;
    const bool batch_invariant_;
    HostClock clock_;
    GpuMemory workspace_; // of products
    Products products_;
    ExpertTables experts_;
    Weights weights_;
    OpContext context_;
    pb_ops ops_;
};

}  // namespace patchbay
