// Weights: their shapes and sizes, counted as hardware holds them. Their values are not kept.
#pragma once
#include "hardware.hpp"
#include "memory.hpp"
#include "patchbay/sdk/op_checks.hpp"

struct pb_weight {
    uint64_t uses = 0; // bit set of 1 << role
    int64_t rows = 0, cols = 0;
    uint64_t bytes = 0;
    double flop_per_ns = 0; // the highest rate of linear() with it
};

namespace patchbay {

inline WeightShape shape_of(const pb_weight* w) { return {w->uses, w->rows, w->cols}; }

class Weights {
  public:
    Weights(const Hardware& hardware, CountedMemory& memory) : hardware_(hardware), memory_(memory) {}

    // As sdk/device.hpp wants them.
    pb_weight* prepare(const pb_weight_source&); // throws Error
    void release(pb_weight*);
    uint64_t weight_bytes(const pb_weight* w) const { return w->bytes; }

  private:
    const Hardware& hardware_;
    CountedMemory& memory_;
};

}  // namespace patchbay
