// The CPU as a device: host memory, packed weights, and the ops over kernels/cpu. One per engine.
#pragma once
#include <vector>

#include "machine.hpp"
#include "memory.hpp"
#include "ops.hpp"
#include "patchbay/sdk/device.hpp"
#include "patchbay/sdk/step_fault.hpp"
#include "rank_connection.hpp"
#include "weights.hpp"

namespace patchbay {

// sdk/device.hpp finds the functions of a device in its bases, too.
class CpuDevice : public CpuMemory, public StepFault {
  public:
    static constexpr const char* kIsas[] = {"auto", "plain", "avx2", "avx512", "amx", nullptr};
    static constexpr pb_param kParams[] = {
        param::choice("isa", "auto", kIsas, "instructions to use; PATCHBAY_CPU_ISA may lower it"),
    };

    explicit CpuDevice(const Context&);
    CpuDevice(const CpuDevice&) = delete;
    CpuDevice& operator=(const CpuDevice&) = delete;

    pb_device_info info() const;
    const pb_ops* ops() const { return &ops_; }
    std::vector<pb_limit> measure() const;
    pb_weight* prepare(const pb_weight_source& source) { return weights_.prepare(source); }
    void release(pb_weight* weight) { weights_.release(weight); }
    uint64_t weight_bytes(const pb_weight* weight) const { return weights_.bytes(weight); }
    void connect(const pb_group&);
    void disconnect() noexcept { connection_.disconnect(); } // [any]

  private:
    HostClock clock_;
    CpuMachine machine_;
    Weights weights_;
    RankConnection connection_;
    OpContext context_;
    pb_ops ops_;
};

}  // namespace patchbay
