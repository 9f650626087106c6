// The CPU as a device: host memory, packed weights, and the ops over kernels/cpu. One per engine.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "communicator.hpp"
#include "kernels/cpu.hpp"
#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/op_checks.hpp"

struct pb_weight {
    uint64_t uses = 0; // bit set of 1 << role
    int64_t rows = 0, cols = 0;
    std::optional<patchbay::kernels::PackedMatrix> matrix; // linear and embedding, both from one copy
    std::vector<float> vector;
};

namespace patchbay {

class CpuDevice {
  public:
    static constexpr const char* kIsas[] = {"auto", "plain", "avx2", "avx512", "amx", nullptr};
    static constexpr pb_param kParams[] = {
        param::choice("isa", "auto", kIsas, "instructions to use; PATCHBAY_CPU_ISA may lower it"),
    };

    explicit CpuDevice(const Context&);

    pb_device_info info() const;
    void* alloc(uint64_t bytes);
    void free(void* memory);
    void to_device(void* to, const void* from, uint64_t bytes);
    void to_host(void* to, const void* from, uint64_t bytes);
    pb_weight* prepare(const pb_weight_source&);
    void release(pb_weight*);
    uint64_t weight_bytes(const pb_weight*) const;
    const pb_ops* ops() const { return &ops_; }
    void begin_step();
    void end_step(); // throws the step's first fault
    void copy_page(void* to, const void* from, uint64_t bytes);
    std::vector<pb_limit> measure() const;
    void connect(const pb_group&);
    void disconnect() noexcept;

    // For the files of the ops.
    const kernels::Machine& machine() const { return machine_; }
    kernels::Scratch& expert_rows() { return expert_rows_; }
    kernels::Scratch& mlp_rows() { return mlp_rows_; }
    template <class F>
    void communicate(double bytes, F&& f) { // calls and times f(communicator)
        const uint64_t start = clock_ ? clock_.now_ns() : 0;
        f(*communicator_);
        if (clock_) metrics_.add("collective_seconds", static_cast<double>(clock_.now_ns() - start) * 1e-9);
        metrics_.add("collective_bytes", bytes);
    }
    OpChecks op_checks() const {
        return {PB_F32, true, communicator_ ? communicator_->size() : 1,
                [](const pb_weight* w) { return WeightShape{w->uses, w->rows, w->cols}; }};
    }
    bool faulty() const { return !fault_.empty(); }
    void set_fault(std::string text) noexcept { fault_ = std::move(text); }

  private:
    Pool pool_;
    HostClock clock_;
    Metrics metrics_;
    kernels::Scratch scratch_, expert_rows_, mlp_rows_;
    kernels::MatrixMemory matrices_;
    kernels::Machine machine_;
    pb_ops ops_;
    std::string fault_; // the first one of this step; later ops do nothing
    std::mutex connecting_; // guards the members below: disconnect() may come at any time
    bool disconnected_ = false;
    std::unique_ptr<Communicator> communicator_; // null: one rank
};

pb_ops cpu_ops(CpuDevice&);    // ops.cpp
void add_collectives(pb_ops&); // collectives.cpp
void add_recurrent_ops(pb_ops&); // recurrent_ops.cpp

// Physical memory in bytes; 0: the system does not say. (memory.cpp)
struct HostMemory {
    uint64_t total = 0, available = 0;
};
HostMemory host_memory();

void* allocate_zeroed(uint64_t bytes); // 64-byte aligned; throws Error. Pages are touched when they are first used
void free_zeroed(void* memory);

}  // namespace patchbay
