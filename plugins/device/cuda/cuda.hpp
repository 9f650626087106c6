// One NVIDIA GPU as a device: memory and ops in the order of one stream, products by cuBLASLt, the rest by
// kernels/cuda. One per engine.
#pragma once
#include <cuda_runtime_api.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda.hpp"
#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/op_checks.hpp"

#include "products.hpp"
#include "ranks.hpp"
#include "staging.hpp"

struct pb_weight {
    uint64_t uses = 0; // bit set of 1 << role
    patchbay::kernels::cuda::DeviceMatrix matrix; // rows 0: none
    const float* vector = nullptr;                // (vector_size)
    int64_t vector_size = 0;
    std::vector<void*> memory; // all that it holds
    uint64_t bytes = 0;
};

struct pb_graph {
    cudaGraphExec_t exec = nullptr;
    uint64_t bytes = 0;
};

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

    pb_device_info info() const;
    void* alloc(uint64_t bytes);
    void free(void* memory);
    void to_device(void* to, const void* from, uint64_t bytes);
    void to_host(void* to, const void* from, uint64_t bytes);
    void to_host_async(void* to, const void* from, uint64_t bytes);
    pb_weight* prepare(const pb_weight_source&); // weights.cpp
    void release(pb_weight*);
    uint64_t weight_bytes(const pb_weight* w) const { return w->bytes; }
    const pb_ops* ops() const { return &ops_; }
    void begin_step();
    void end_step();
    void submit_step();
    void wait_step();
    void copy_page(void* to, const void* from, uint64_t bytes);
    void* host_alloc(uint64_t bytes); // pinned
    void host_free(void* memory) noexcept;
    void page_to_host(void* to, const void* from, uint64_t bytes);
    void page_to_device(void* to, const void* from, uint64_t bytes);
    std::vector<pb_limit> measure(); // measure.cpp
    void graph_begin();
    pb_graph* graph_end();
    void graph_launch(pb_graph*);
    void graph_free(pb_graph*) noexcept;
    uint64_t graph_bytes(const pb_graph* graph) const { return graph->bytes; }
    void* queue() const { return stream_; }
    void connect(const pb_group&);
    void disconnect() noexcept; // [any]

    // For ops.cpp. [step]
    OpChecks op_checks() const {
        return {activation_dtype_, true, ranks_ ? ranks_->size() : 1, shape_of};
    }
    int32_t* kernel_fault() const { return kernel_fault_; }
    bool batch_invariant() const { return batch_invariant_; }
    void* scratch(uint64_t bytes); // until the next call; it moves only to grow, and what graphs hold of it stays
    const kernels::cuda::DeviceMatrix* expert_table(const pb_weight* const* experts, uint32_t count);
    Products& products() { return *products_; }
    Ranks& ranks() { return *ranks_; } // of ops that are there only once they are connected
    bool faulty() const { return !fault_.empty(); }
    void set_fault(std::string text) noexcept { fault_ = std::move(text); }
    void before_op(const char* next) noexcept; // sets the fault where a kernel of other plugins did not start
    void after_op(const char* op) noexcept;    // the same for one of this op

  private:
    static WeightShape shape_of(const pb_weight*);
    void use() const; // makes this thread's calls go to this GPU
    void* take(uint64_t bytes); // not zeroed; also while a step is captured
    void upload_table(void* to, const void* from, uint64_t bytes); // likewise, into memory that nothing has used yet
    cudaError_t latest_error() const; // of this thread; with check_each_op of all that the GPU has been given
    template <class T>
    const T* upload(pb_weight&, const T* from, uint64_t count);

    int index_;
    pb_dtype activation_dtype_;
    bool batch_invariant_, check_each_op_;
    HostClock clock_;
    cudaDeviceProp properties_{};
    cudaStream_t stream_ = nullptr;
    cudaStream_t unrecorded_ = nullptr; // for what a captured step needs at once and is not to be part of its graph
    void* workspace_ = nullptr; // of products
    std::unique_ptr<Staging> staging_;
    std::unique_ptr<Products> products_;
    std::mutex connecting_; // disconnect() comes from another thread
    std::atomic<bool> disconnected_ = false;
    std::unique_ptr<Ranks> ranks_;
    pb_ops ops_;
    int32_t* kernel_fault_ = nullptr; // written by kernels, of the step that the GPU is at
    std::vector<std::pair<void*, uint64_t>> scratch_; // the last is in use; earlier ones may be of graphs
    std::map<std::vector<const pb_weight*>, void*> expert_tables_;
    bool capturing_ = false;
    std::string fault_; // of this step; ops after it do nothing
    struct Pinned {
        void* memory;
        uint64_t bytes;
    };
    struct Later { // a copy that goes on from pinned memory when its step is over
        Pinned pinned;
        void* to;
        uint64_t bytes;
    };
    struct Submitted {
        cudaEvent_t done;
        std::string fault;
        std::vector<Later> later;
        std::unique_ptr<int32_t> kernel_fault; // once it is done
    };
    void finish(const Submitted&);    // waits
    std::vector<Later> later_;        // of this step
    std::deque<Submitted> submitted_; // steps in flight, the oldest first
    std::vector<Pinned> pinned_;      // that no copy uses
};

pb_ops cuda_ops(CudaDevice&); // ops.cpp
void add_collectives(pb_ops&); // ops.cpp

// Throws Error(PB_FAILED) that says what was being done, unless `code` is success.
void check_cuda(cudaError_t code, const char* what);

}  // namespace patchbay
