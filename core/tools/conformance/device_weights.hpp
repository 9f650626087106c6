// Weights that a device has prepared, for its checks.
#pragma once
#include <cstdint>
#include <vector>

#include "conformance/check.hpp"
#include "conformance/device_arrays.hpp"

namespace patchbay::conformance {

class DeviceWeights {
  public:
    DeviceWeights(const host::Component& c, bool lent) : component_(c), lent_(lent) {} // lent: as of DeviceArrays
    DeviceWeights(DeviceWeights&&) noexcept = default;
    ~DeviceWeights();

    Result<const pb_weight*> make(pb_weight_role, int64_t rows, int64_t cols, const Floats&, const Floats& bias = {},
                                  uint64_t uses = 0, pb_dtype = PB_F32);
    Result<const pb_weight*> prepare(const pb_weight_source&);

  private:
    const pb_device& table() const { return *static_cast<const pb_device*>(component_.type().vtable); }

    const host::Component& component_;
    bool lent_;
    std::vector<pb_weight*> weights_;
};

}  // namespace patchbay::conformance
