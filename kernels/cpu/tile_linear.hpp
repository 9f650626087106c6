// Multiplications of bf16 and fp8 weights in tiles, split over the workers. For linear() and gated_mlp().
#pragma once
#include "cpu/tables.hpp"

namespace patchbay::kernels {

void linear_tiles(const Machine&, const TileTable&, const pb_tensor& out, const pb_tensor& x, const PackedMatrix& w);

// Halves of gate_up that begin with a panel, n a multiple of TileTable::depth; a gate that is not kNone.
void gated_mlp_tiles(const Machine&, const TileTable&, const pb_tensor& out, const pb_tensor& x,
                     const PackedMatrix& gate_up, const PackedMatrix& down, TileGateKind);

}  // namespace patchbay::kernels
