// A weight as codes of 8 or 4 bits, packed for linear_quantised(). For the files of this folder.
#pragma once
#include <vector>

#include "cpu/quantised_panels.hpp"
#include "kernels/cpu.hpp"

namespace patchbay::kernels {

class QuantisedMatrix {
  public:
    QuantisedMatrix(const Machine&, const QuantisedSource&); // throws std::bad_alloc

    uint64_t bytes() const;
    void read_row(int64_t row, float* out) const; // out (cols)

    const QuantisedLayout& layout() const { return layout_; }
    QuantisedUnits units() const { return units_; }
    const uint8_t* panel(int64_t p) const { return memory_.get() + p * layout_.panel_bytes(); }
    const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); } // padded with 0; nullptr: none
    const int32_t* order() const { return order_.empty() ? nullptr : order_.data(); }

  private:
    QuantisedLayout layout_;
    QuantisedUnits units_;
    std::shared_ptr<uint8_t[]> memory_;
    std::vector<float> bias_;
    std::vector<int32_t> order_;
};

// out (T, rows) = x (T, cols) · wᵀ + bias, x rounded to 8 bits in the groups of w.
void linear_quantised(const Machine&, const pb_tensor& out, const pb_tensor& x, const QuantisedMatrix& w);

const QuantisedTable& quantised_table(Isa, int64_t rows, uint32_t bits, int64_t group); // rows of x

}  // namespace patchbay::kernels
