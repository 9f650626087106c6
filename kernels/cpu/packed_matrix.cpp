#include <cstring>

#include "cpu/quantised_matrix.hpp"
#include "cpu/tables.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::kernels {
namespace {

float read_as_f32(pb_dtype dtype, const void* data, int64_t i) {
    if (dtype == PB_BF16) return bf16_to_f32(static_cast<const uint16_t*>(data)[i]);
    return static_cast<const float*>(data)[i];
}

}  // namespace

// Layout of a panel: f32 (cols, columns); bf16 (⌈cols / 2⌉, columns, 2), so that one load brings two elements of K for
// each lane and a shift or a mask makes either an f32. Tiles are read out of the same layout: 16 pairs of K, 16
// columns.
PackedMatrix PackedMatrix::pack(const Machine& machine, pb_dtype dtype, int64_t rows, int64_t cols, const void* data,
                                const void* bias) {
    PackedMatrix m;
    m.dtype_ = dtype;
    m.rows_ = rows;
    m.cols_ = cols;
    m.columns_ = table_of(machine.isa).panel_columns;
    const TileTable* tiles = tiles_of(machine.isa);
    const int64_t unit = dtype != PB_BF16 ? 1 : tiles ? tiles->depth : 2; // of K
    const uint64_t depth = uint64_t((cols + unit - 1) / unit * unit);
    m.panel_bytes_ = (depth * uint64_t(m.columns_) * (dtype == PB_BF16 ? 2 : 4) + 63) / 64 * 64;
    const uint64_t bytes = m.panel_bytes_ * uint64_t(m.panels());
    m.memory_ = machine.matrices ? machine.matrices->take(bytes) : allocate_aligned(bytes);
    split_rows(machine.workers, m.panels(), m.columns_ * cols, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) m.pack_panel(p, data);
    });
    if (bias) {
        m.bias_ = std::make_unique<float[]>(size_t(m.panels() * m.columns_));
        for (int64_t r = 0; r < rows; ++r) m.bias_[size_t(r)] = read_as_f32(dtype, bias, r);
    }
    return m;
}

PackedMatrix PackedMatrix::pack(const Machine& machine, const QuantisedSource& source) {
    PackedMatrix m;
    m.dtype_ = source.dtype;
    m.rows_ = source.rows;
    m.cols_ = source.cols;
    m.quantised_ = std::make_shared<const QuantisedMatrix>(machine, source);
    return m;
}

uint64_t PackedMatrix::bytes() const {
    return quantised_ ? quantised_->bytes() : panel_bytes_ * uint64_t(panels()) + bias_bytes();
}

void PackedMatrix::pack_panel(int64_t p, const void* data) {
    uint8_t* panel = memory_.get() + uint64_t(p) * panel_bytes_;
    std::memset(panel, 0, panel_bytes_);
    for (int64_t c = 0; c < columns_ && p * columns_ + c < rows_; ++c) {
        const int64_t from = (p * columns_ + c) * cols_;
        if (dtype_ == PB_BF16) {
            const auto* row = static_cast<const uint16_t*>(data) + from;
            auto* to = reinterpret_cast<uint16_t*>(panel);
            for (int64_t k = 0; k < cols_; ++k) to[(k / 2 * columns_ + c) * 2 + k % 2] = row[k];
        } else {
            const auto* row = static_cast<const float*>(data) + from;
            auto* to = reinterpret_cast<float*>(panel);
            for (int64_t k = 0; k < cols_; ++k) to[k * columns_ + c] = row[k];
        }
    }
}

void PackedMatrix::read_row(int64_t row, float* out) const {
    if (quantised_) return quantised_->read_row(row, out);
    const uint8_t* from = panel(row / columns_);
    const int64_t c = row % columns_;
    if (dtype_ == PB_BF16) {
        const auto* pairs = reinterpret_cast<const uint16_t*>(from);
        for (int64_t k = 0; k < cols_; ++k) out[k] = bf16_to_f32(pairs[(k / 2 * columns_ + c) * 2 + k % 2]);
    } else {
        const auto* values = reinterpret_cast<const float*>(from);
        for (int64_t k = 0; k < cols_; ++k) out[k] = values[k * columns_ + c];
    }
}

}  // namespace patchbay::kernels
