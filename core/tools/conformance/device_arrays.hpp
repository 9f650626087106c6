// Arrays in a device's memory, put there and read back by its own functions, and weights, for the device's checks.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "conformance/check.hpp"

namespace patchbay::conformance {

using Floats = std::vector<float>;

enum class Rows { kDense, kStrided /* elements of padding after each row */ };

// As the device holds them, in F32 or BF16; F16 devices are compared once there is one.
std::vector<uint8_t> encode(const Floats&, pb_dtype);

class DeviceArrays {
  public:
    // lent: what a call is given is overwritten when it returns
    DeviceArrays(const host::Component& c, const pb_device_info& info, Rows rows, bool lent)
        : component_(c), info_(info), rows_(rows), lent_(lent) {}
    DeviceArrays(DeviceArrays&&) noexcept = default;
    ~DeviceArrays();

    Result<pb_tensor> put(const Floats&, std::initializer_list<int64_t> shape); // as activations
    Result<pb_tensor> poison(std::initializer_list<int64_t> shape);             // activations, all NaN
    Result<pb_tensor> put_ints(const std::vector<int32_t>&);
    Result<pb_tensor> put_ints(const std::vector<int32_t>&, std::initializer_list<int64_t> shape);
    Result<pb_tensor> put_f32(const Floats&, std::initializer_list<int64_t> shape); // dense, whatever activations are
    Result<> write(const pb_tensor&, const Floats&); // dense rows, over what is there
    Result<Floats> get(const pb_tensor&);
    Result<> check_padding(const pb_tensor&); // still NaN
    Result<> restore();                       // each holds what was put there

  private:
    const pb_device& table() const { return *static_cast<const pb_device*>(component_.type().vtable); }
    Result<pb_tensor> place(const void* bytes, size_t size, pb_dtype, std::initializer_list<int64_t> shape,
                            int64_t row);
    Result<Floats> read_all(const pb_tensor&, int64_t row);

    const host::Component& component_;
    pb_device_info info_;
    Rows rows_;
    bool lent_;
    struct Placed { // memory of the device, and what was put there
        void* memory;
        std::vector<uint8_t> bytes;
    };
    std::vector<Placed> placed_;
};

// Weights that a device has prepared; lent: as above.
class DeviceWeights {
  public:
    DeviceWeights(const host::Component& c, bool lent) : component_(c), lent_(lent) {}
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
