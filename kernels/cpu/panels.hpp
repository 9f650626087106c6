// Panels of a packed matrix: how large they are, and how rows get in and out. For the files of this folder.
#pragma once
#include "kernels/packed_matrix.hpp"

namespace patchbay::kernels {

// Of f32 or bf16; K is padded to a multiple of `depth`, which for bf16 is even.
PanelLayout plain_panels(pb_dtype dtype, int64_t rows, int64_t cols, int64_t columns, int64_t depth);
PanelLayout fp8_panels(int64_t rows, int64_t cols, int64_t columns, int64_t depth, int64_t group);

// `to`: panel p, all of which is written.
void pack_panel(const PanelLayout&, int64_t p, const void* data, uint8_t* to); // data (rows, cols) of its dtype
void pack_fp8_panel(const PanelLayout&, int64_t p, const QuantisedSource&, uint8_t* to);
void read_panel_row(const PanelLayout&, const uint8_t* panel, int64_t column, float* out); // out (cols)

}  // namespace patchbay::kernels
