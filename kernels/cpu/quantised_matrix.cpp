#include "cpu/quantised_matrix.hpp"

#include <algorithm>

#include "cpu/tables.hpp"

namespace patchbay::kernels {

QuantisedMatrix::QuantisedMatrix(const Machine& machine, const QuantisedSource& source)
    : layout_(quantised_layout(source)),
      units_(quantised_units(source)),
      memory_(machine.matrices ? machine.matrices->take(layout_.bytes()) : allocate_aligned(layout_.bytes())) {
    if (source.bias) {
        bias_.resize(size_t(layout_.padded_rows()));
        std::copy_n(source.bias, layout_.rows, bias_.begin());
    }
    if (source.order) order_.assign(source.order, source.order + layout_.cols);
    split_rows(machine.workers, layout_.panels(), kQuantisedColumns * layout_.cols, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p)
            pack_quantised_panel(layout_, units_, p, source, memory_.get() + p * layout_.panel_bytes());
    });
}

uint64_t QuantisedMatrix::bytes() const {
    return layout_.bytes() + bias_.size() * sizeof(float) + order_.size() * sizeof(int32_t);
}

void QuantisedMatrix::read_row(int64_t row, float* out) const {
    read_quantised_row(layout_, units_, panel(row / kQuantisedColumns), row % kQuantisedColumns, order(), out);
}

}  // namespace patchbay::kernels
