// Weights as the fast CPU kernels read them. See docs/cpu-device.md.
#pragma once
#include <cstdint>
#include <memory>

#include "patchbay/abi/tensor.h"

namespace patchbay::kernels {

struct Machine;        // kernels/cpu.hpp
class QuantisedMatrix; // cpu/quantised_matrix.hpp

struct QuantisedSource { // w[r, c] = code · scale + offset, of column c / group: as pb_quant of patchbay/abi/device.h
    pb_dtype dtype = PB_I8;         // I8, I4 or FP8, which has no offsets and no order
    int64_t rows = 0, cols = 0;
    const void* codes = nullptr;    // (rows, cols); of I4 a row takes ⌈cols / 2⌉ bytes
    int64_t group = 0;              // 16, 32, 64 or 128
    const float* scales = nullptr;  // (rows, ⌈cols / group⌉), finite
    const float* offsets = nullptr; // the same, or nullptr
    const int32_t* order = nullptr; // (cols), a permutation, or nullptr
    const float* bias = nullptr;    // (rows), or nullptr
};

// How a weight (rows, cols) lies in panels of output columns.
struct PanelLayout {
    pb_dtype dtype = PB_F32;
    int64_t rows = 0, cols = 0;
    int64_t columns = 0;      // of a panel
    int64_t group = 0;        // of fp8: K that share a scale; else 0
    uint64_t scale_bytes = 0; // that a panel begins with
    uint64_t panel_bytes = 0; // from a panel to the next one

    int64_t panels() const { return (rows + columns - 1) / columns; }
    int64_t padded_rows() const { return panels() * columns; }
    uint64_t bytes() const { return panel_bytes * uint64_t(panels()); }
};

// A weight (rows, cols) as linear() reads it. bf16 stays bf16, and fp8 stays fp8 beside its scales.
class PackedMatrix {
  public:
    static PackedMatrix pack(const Machine&, const QuantisedSource&); // throws std::bad_alloc
    // `data` (rows, cols) and `bias` (rows, or nullptr) are of `dtype`, F32 or BF16; not used afterwards. Throws
    // std::bad_alloc.
    static PackedMatrix pack(const Machine&, pb_dtype dtype, int64_t rows, int64_t cols, const void* data,
                             const void* bias);

    pb_dtype dtype() const { return layout_.dtype; }
    int64_t rows() const { return layout_.rows; }
    int64_t cols() const { return layout_.cols; }
    uint64_t bytes() const;
    void read_row(int64_t row, float* out) const; // out (cols)

    // For the kernels.
    const QuantisedMatrix* quantised() const { return quantised_.get(); } // of I8 and I4: there are no panels here
    const PanelLayout& layout() const { return layout_; }
    const uint8_t* panel(int64_t p) const { return memory_.get() + uint64_t(p) * layout_.panel_bytes; }
    const float* bias() const { return bias_.get(); } // (padded_rows), padded with 0; nullptr: none

  private:
    explicit PackedMatrix(const PanelLayout& layout) : layout_(layout) {}
    template <class PackPanel>
    void fill(const Machine&, PackPanel&&); // pack_panel(p, to)
    void take_bias(pb_dtype, const void*);  // nullptr: none

    PanelLayout layout_;
    std::shared_ptr<uint8_t[]> memory_;
    std::unique_ptr<float[]> bias_;
    std::shared_ptr<const QuantisedMatrix> quantised_;
};

}  // namespace patchbay::kernels
