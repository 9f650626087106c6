// A device for models under test: every op on host memory in f32, each sum in double, from a sequence's first token on.
// Its ops check their arguments as those of any device do; the first fault is kept.
#pragma once
#include <string>
#include <vector>

#include "patchbay/sdk/op_checks.hpp"

struct pb_weight { // f32, row-major
    int64_t rows = 0, cols = 0; // a vector has rows 1
    uint64_t uses = 0;          // as pb_weight_source.uses
    std::vector<float> values, bias; // bias: (rows), or empty
};

namespace patchbay::conformance {

class ReferenceDevice {
  public:
    ReferenceDevice();
    ReferenceDevice(const ReferenceDevice&) = delete;
    ReferenceDevice& operator=(const ReferenceDevice&) = delete;

    const pb_ops& ops() const { return ops_; }
    bool faulty() const { return !fault_.empty(); }
    const std::string& fault() const { return fault_; } // "linear: x is f32 (3, 8), expected f32 (3, 16)"
    void set_fault(std::string fault) noexcept {
        if (fault_.empty()) fault_ = std::move(fault);
    }
    OpChecks op_checks() const;

  private:
    pb_ops ops_;
    std::string fault_;
};

}  // namespace patchbay::conformance
