#include "cpu/panels.hpp"
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

PackedMatrix PackedMatrix::pack(const Machine& machine, pb_dtype dtype, int64_t rows, int64_t cols, const void* data,
                                const void* bias) {
    const TileTable* tiles = tiles_of(machine.isa);
    const int64_t depth = dtype != PB_BF16 ? 1 : tiles ? tiles->depth : 2;
    PackedMatrix m(plain_panels(dtype, rows, cols, table_of(machine.isa).matrices.panel_columns, depth));
    m.fill(machine, [&](int64_t p, uint8_t* to) { pack_panel(m.layout_, p, data, to); });
    m.take_bias(dtype, bias);
    return m;
}

PackedMatrix PackedMatrix::pack(const Machine& machine, const QuantisedSource& source) {
    if (source.dtype != PB_FP8) {
        PackedMatrix m({.dtype = source.dtype, .rows = source.rows, .cols = source.cols});
        m.quantised_ = std::make_shared<const QuantisedMatrix>(machine, source);
        return m;
    }
    const TileTable* tiles = tiles_of(machine.isa);
    PackedMatrix m(fp8_panels(source.rows, source.cols, table_of(machine.isa).matrices.panel_columns,
                              tiles ? tiles->depth : 1, source.group));
    m.fill(machine, [&](int64_t p, uint8_t* to) { pack_fp8_panel(m.layout_, p, source, to); });
    m.take_bias(PB_F32, source.bias);
    return m;
}

template <class PackPanel>
void PackedMatrix::fill(const Machine& machine, PackPanel&& pack_panel) {
    memory_ = machine.matrices ? machine.matrices->take(layout_.bytes()) : allocate_aligned(layout_.bytes());
    split_rows(machine.workers, layout_.panels(), layout_.columns * layout_.cols, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) pack_panel(p, memory_.get() + uint64_t(p) * layout_.panel_bytes);
    });
}

void PackedMatrix::take_bias(pb_dtype dtype, const void* bias) {
    if (!bias) return;
    bias_ = std::make_unique<float[]>(size_t(layout_.padded_rows()));
    for (int64_t r = 0; r < layout_.rows; ++r) bias_[size_t(r)] = read_as_f32(dtype, bias, r);
}

uint64_t PackedMatrix::bytes() const {
    if (quantised_) return quantised_->bytes();
    return layout_.bytes() + (bias_ ? uint64_t(layout_.padded_rows()) * sizeof(float) : 0);
}

void PackedMatrix::read_row(int64_t row, float* out) const {
    if (quantised_) return quantised_->read_row(row, out);
    read_panel_row(layout_, panel(row / layout_.columns), row % layout_.columns, out);
}

}  // namespace patchbay::kernels
