// A target's hidden states where a head goes on from them: the rows of its latest batch, and after them those that the
// head made itself for drafts. Owned by the target's ModelRunner, read and written by the head's. [step thread]
#pragma once
#include <cstdint>

#include "base/result.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "runner/device_memory.hpp"

namespace patchbay::runner {

class HiddenStates {
  public:
    struct Shape {
        uint32_t target_rows;         // of a batch of the target's, at most
        uint32_t passes, pass_rows;   // of the head, before the target's next batch
        uint32_t width;               // elements of a row
        pb_dtype dtype;
        int32_t device;               // of a tensor
        bool computes;
    };
    explicit HiddenStates(const host::Device& device) : memory_(device) {}

    Result<> allocate(const Shape& shape) {
        shape_ = shape;
        return memory_.allocate(count() * row_bytes());
    }
    pb_tensor all() const { return rows(0, count()); }
    pb_tensor rows(uint32_t first, uint32_t count) const { // (count, width)
        return tensor(shape_.computes ? memory_.data() + first * row_bytes() : nullptr, shape_.dtype,
                      {count, shape_.width}, shape_.device);
    }
    uint32_t target_rows() const { return shape_.target_rows; }
    uint32_t passes() const { return shape_.passes; }
    uint32_t row_of_pass(uint32_t pass) const { return shape_.target_rows + pass * shape_.pass_rows; }

  private:
    uint32_t count() const { return row_of_pass(shape_.passes); }
    uint64_t row_bytes() const { return uint64_t{shape_.width} * static_cast<uint64_t>(dtype_bytes(shape_.dtype)); }

    Shape shape_{};
    DeviceMemory memory_;
};

}  // namespace patchbay::runner
