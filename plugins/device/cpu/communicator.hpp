// The exchange of the ranks of a model: sums and rows, over Gloo. Every rank adds in the order of ranks, so
// that all have the same bits in any batch; a ring would add in an order that depends on the place.
#pragma once
#include <cstdint>
#include <memory>

#include "patchbay/abi/device.h"

namespace patchbay {

class Communicator {
  public:
    // Throws Error: PB_UNSUPPORTED if this plugin was built without Gloo.
    explicit Communicator(const pb_group&);
    ~Communicator();
    // Waits for the others, until abort(). Throws Error.
    void connect(const pb_group&);

    uint32_t size() const { return size_; }
    // x[i] = sum over the ranks of their x[i]. Throws Error.
    void all_reduce(float* x, int64_t count);
    // out (rows, size · n) from each rank's x (rows, n).
    void all_gather(float* out, const float* x, int64_t rows, int64_t n);
    void abort() noexcept; // [any] waits throw, and so do all later calls

  private:
    struct Links;
    uint32_t rank_, size_;
    std::unique_ptr<Links> links_;
};

}  // namespace patchbay
