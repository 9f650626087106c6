// Weights in the layouts that kernels read.
#pragma once
#include <optional>
#include <vector>

#include "kernels/cpu.hpp"
#include "patchbay/sdk/op_checks.hpp"

struct pb_weight {
    uint64_t uses = 0; // bit set of 1 << role
    int64_t rows = 0, cols = 0;
    std::optional<patchbay::kernels::PackedMatrix> matrix; // linear and embedding, both from one copy
    std::vector<float> vector;
};

namespace patchbay {

inline WeightShape shape_of(const pb_weight* w) { return {w->uses, w->rows, w->cols}; }

class Weights {
  public:
    explicit Weights(const kernels::Machine& machine) : machine_(machine) {}

    pb_weight* prepare(const pb_weight_source&) const; // for release(); throws Error
    void release(pb_weight* weight) const { delete weight; }
    uint64_t bytes(const pb_weight*) const;

  private:
    const kernels::Machine& machine_;
};

}  // namespace patchbay
