// A weight as codes of 8 or 4 bits, packed for linear_quantised(): layout and arithmetic in docs/cpu-device.md. For the
// files of this folder.
#pragma once
#include <vector>

#include "cpu/quantised_table.hpp"
#include "kernels/cpu.hpp"

namespace patchbay::kernels {

class QuantisedMatrix {
  public:
    QuantisedMatrix(const Machine&, const QuantisedSource&); // throws std::bad_alloc

    uint64_t bytes() const;
    void read_row(int64_t row, float* out) const; // out (cols)

    int64_t rows() const { return rows_; }
    int64_t cols() const { return cols_; }
    uint32_t bits() const { return bits_; }
    int64_t group() const { return group_; }
    int64_t groups() const { return groups_; }
    bool has_offsets() const { return has_offsets_; }
    int64_t panels() const { return (rows_ + kQuantisedColumns - 1) / kQuantisedColumns; }
    int64_t panel_bytes() const { return groups_ * group_bytes_; }
    const uint8_t* panel(int64_t p) const { return memory_.get() + p * panel_bytes(); }
    const float* bias() const { return bias_.empty() ? nullptr : bias_.data(); } // padded with 0; nullptr: none
    const int32_t* order() const { return order_.empty() ? nullptr : order_.data(); }
    float scale_unit() const { return scale_unit_; }   // a power of two: the value of 1 in a panel's scales
    float offset_unit() const { return offset_unit_; } // the same for offsets

  private:
    void pack_panel(int64_t p, const QuantisedSource&);

    int64_t rows_, cols_, group_, groups_;
    uint32_t bits_;
    bool has_offsets_;
    int64_t code_bytes_, group_bytes_; // of a group of a panel: its codes; with scales and offsets
    float scale_unit_ = 1, offset_unit_ = 1;
    std::shared_ptr<uint8_t[]> memory_;
    std::vector<float> bias_;
    std::vector<int32_t> order_;
};

// out (T, rows) = x (T, cols) · wᵀ + bias, x rounded to 8 bits in the groups of w.
void linear_quantised(const Machine&, const pb_tensor& out, const pb_tensor& x, const QuantisedMatrix& w);

const QuantisedTable& quantised_table(Isa, int64_t rows, uint32_t bits, int64_t group); // rows of x

}  // namespace patchbay::kernels
