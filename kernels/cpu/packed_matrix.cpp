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

int64_t padded(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

// Layout of a panel: f32 (cols, columns); bf16 (⌈cols / 2⌉, columns, 2), so that one load brings two elements of K for
// each lane and a shift or a mask makes either an f32; fp8 the scales (groups, columns), then the codes (cols,
// columns). Tiles are read out of the same layouts, with K padded.
PackedMatrix PackedMatrix::pack(const Machine& machine, pb_dtype dtype, int64_t rows, int64_t cols, const void* data,
                                const void* bias) {
    PackedMatrix m;
    m.dtype_ = dtype;
    m.rows_ = rows;
    m.cols_ = cols;
    m.columns_ = table_of(machine.isa).panel_columns;
    const TileTable* tiles = tiles_of(machine.isa);
    const int64_t depth = padded(cols, dtype != PB_BF16 ? 1 : tiles ? tiles->depth : 2);
    m.take_memory(machine, uint64_t(depth * m.columns_) * (dtype == PB_BF16 ? 2 : 4));
    split_rows(machine.workers, m.panels(), m.columns_ * cols, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) m.pack_panel(p, data);
    });
    m.take_bias(dtype, bias);
    return m;
}

PackedMatrix PackedMatrix::pack(const Machine& machine, const QuantisedSource& source) {
    PackedMatrix m;
    m.dtype_ = source.dtype;
    m.rows_ = source.rows;
    m.cols_ = source.cols;
    if (source.dtype != PB_FP8) {
        m.quantised_ = std::make_shared<const QuantisedMatrix>(machine, source);
        return m;
    }
    m.columns_ = table_of(machine.isa).panel_columns;
    m.group_ = source.group;
    const TileTable* tiles = tiles_of(machine.isa);
    const int64_t depth = padded(source.cols, tiles ? tiles->depth : 1), groups = (depth + m.group_ - 1) / m.group_;
    m.scale_bytes_ = uint64_t(groups * m.columns_) * sizeof(float);
    m.take_memory(machine, m.scale_bytes_ + uint64_t(depth * m.columns_));
    split_rows(machine.workers, m.panels(), m.columns_ * m.cols_, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) m.pack_fp8_panel(p, source);
    });
    m.take_bias(PB_F32, source.bias);
    return m;
}

void PackedMatrix::take_memory(const Machine& machine, uint64_t panel_bytes) {
    panel_bytes_ = (panel_bytes + 63) / 64 * 64;
    const uint64_t bytes = panel_bytes_ * uint64_t(panels());
    memory_ = machine.matrices ? machine.matrices->take(bytes) : allocate_aligned(bytes);
}

void PackedMatrix::take_bias(pb_dtype dtype, const void* bias) {
    if (!bias) return;
    bias_ = std::make_unique<float[]>(size_t(panels() * columns_));
    for (int64_t r = 0; r < rows_; ++r) bias_[size_t(r)] = read_as_f32(dtype, bias, r);
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

void PackedMatrix::pack_fp8_panel(int64_t p, const QuantisedSource& source) {
    uint8_t* const panel = memory_.get() + uint64_t(p) * panel_bytes_;
    std::memset(panel, 0, panel_bytes_);
    auto* const scales = reinterpret_cast<float*>(panel);
    uint8_t* const codes = panel + scale_bytes_;
    const int64_t groups = (cols_ + group_ - 1) / group_;
    for (int64_t c = 0; c < columns_ && p * columns_ + c < rows_; ++c) {
        const int64_t row = p * columns_ + c;
        for (int64_t g = 0; g < groups; ++g) scales[g * columns_ + c] = source.scales[row * groups + g];
        const uint8_t* const from = static_cast<const uint8_t*>(source.codes) + row * cols_;
        for (int64_t k = 0; k < cols_; ++k) codes[k * columns_ + c] = from[k];
    }
}

void PackedMatrix::read_fp8_row(int64_t row, float* out) const {
    const uint8_t* const from = panel(row / columns_) + row % columns_;
    const float* const scales = reinterpret_cast<const float*>(panel(row / columns_)) + row % columns_;
    for (int64_t k = 0; k < cols_; ++k)
        out[k] = fp8_to_f32(from[scale_bytes_ + uint64_t(k * columns_)]) * scales[k / group_ * columns_];
}

void PackedMatrix::read_row(int64_t row, float* out) const {
    if (quantised_) return quantised_->read_row(row, out);
    if (dtype_ == PB_FP8) return read_fp8_row(row, out);
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
