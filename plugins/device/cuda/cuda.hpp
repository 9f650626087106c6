// One NVIDIA GPU as a device: memory and ops in the order of one stream, products by cuBLASLt, the rest by
// kernels/cuda. One per engine.
#pragma once
#include <memory>
#include <vector>

#include "expert_tables.hpp"
#include "gpu.hpp"
#include "graphs.hpp"
#include "ops.hpp"
#include "patchbay/sdk/device.hpp"
#include "products.hpp"
#include "rank_connection.hpp"
#include "staging.hpp"
#include "steps.hpp"
#include "weights.hpp"

namespace patchbay {

class CudaDevice {
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

    // As sdk/device.hpp wants them.
    pb_device_info info() const;
    std::vector<pb_limit> measure();
    void* queue() const { return gpu_.stream(); }
    const pb_ops* ops() const { return &ops_; }

    void* alloc(uint64_t bytes);
    void free(void* memory);
    void to_device(void* to, const void* from, uint64_t bytes);
    void to_host(void* to, const void* from, uint64_t bytes);
    void to_host_async(void* to, const void* from, uint64_t bytes);
    void copy_page(void* to, const void* from, uint64_t bytes);
    void* host_alloc(uint64_t bytes); // pinned
    void host_free(void* memory) noexcept;
    void page_to_host(void* to, const void* from, uint64_t bytes);
    void page_to_device(void* to, const void* from, uint64_t bytes);

    pb_weight* prepare(const pb_weight_source&);
    void release(pb_weight* weight) { weights_.release(weight); }
    uint64_t weight_bytes(const pb_weight* weight) const { return weight->bytes; }

    void begin_step();
    void end_step();
    void submit_step();
    void wait_step();

    void graph_begin();
    pb_graph* graph_end() { return graphs_.end(); }
    void graph_launch(pb_graph* graph) { graphs_.launch(graph); }
    void graph_free(pb_graph* graph) noexcept { graphs_.release(graph); }
    uint64_t graph_bytes(const pb_graph* graph) const { return graph->bytes; }

    void connect(const pb_group&);
    void disconnect() noexcept { connection_.disconnect(); } // [any]

  private:
    void copy(void* to, const void* from, uint64_t bytes, cudaMemcpyKind, const char* what);

    const pb_dtype activation_dtype_;
    const bool batch_invariant_;
    HostClock clock_;
    Gpu gpu_;
    Staging staging_;
    GpuMemory workspace_; // of products
    Products products_;
    RankConnection connection_;
    Steps steps_;
    Graphs graphs_;
    ExpertTables experts_;
    Weights weights_;
    OpContext context_;
    pb_ops ops_;
};

}  // namespace patchbay
