// gated_mlp(): in tiles what lies between its two multiplications is rounded where it is made, and never f32 in memory.
#include "cpu/tile_linear.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::kernels {

void gated_mlp(const Machine& machine, Scratch& rows, const pb_tensor& out, const pb_tensor& x,
               const PackedMatrix& gate_up, const PackedMatrix& down, Gate gate) {
    const int64_t count = x.shape[0], n = down.cols();
    if (count == 0) return;
    const auto takes_tiles = [](const PackedMatrix& w) { return w.dtype() == PB_BF16 || w.dtype() == PB_FP8; };
    const TileTable* tiles = takes_tiles(gate_up) && takes_tiles(down) ? tiles_of(machine.isa) : nullptr;
    if (tiles && n % tiles->depth == 0 && n % gate_up.layout().columns == 0)
        return gated_mlp_tiles(machine, *tiles, out, x, gate_up, down,
                               gate == Gate::kSilu ? TileGateKind::kSilu : TileGateKind::kGeluTanh);
    auto* const memory = static_cast<float*>(rows.at_least(uint64_t(count * 3 * n) * sizeof(float)));
    const pb_tensor halves = tensor(memory, PB_F32, {count, 2 * n}),
                    gated = tensor(memory + count * 2 * n, PB_F32, {count, n});
    linear(machine, halves, x, gate_up);
    if (gate == Gate::kSilu) silu_mul(machine, gated, halves);
    else gelu_tanh_mul(machine, gated, halves);
    linear(machine, out, gated, down);
}

}  // namespace patchbay::kernels
