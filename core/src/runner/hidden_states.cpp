#include "runner/hidden_states.hpp"

#include "patchbay/sdk/tensor.hpp"

namespace patchbay::runner {

Result<> HiddenStates::allocate(const Shape& shape) {
    shape_ = shape;
    return memory_.allocate(uint64_t{count()} * shape.width * static_cast<uint64_t>(dtype_bytes(shape.dtype)));
}

pb_tensor HiddenStates::rows(uint32_t first, uint32_t count) const {
    const uint64_t row_bytes = uint64_t{shape_.width} * static_cast<uint64_t>(dtype_bytes(shape_.dtype));
    return tensor(shape_.computes ? memory_.data() + first * row_bytes : nullptr, shape_.dtype, {count, shape_.width},
                  shape_.device);
}

}  // namespace patchbay::runner
