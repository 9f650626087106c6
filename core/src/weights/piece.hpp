// One tensor's share of a weight, and how it gets into memory: from a checkpoint, or random from a seed. The loader
// decides which pieces a weight has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "weights/checkpoint.hpp"

namespace patchbay::weights {

struct Piece {  // of `shape`, rows [row, row + rows) and columns [col, col + cols)
    std::string name;
    std::vector<int64_t> shape;  // whole; two sizes, or one, which is then a single row
    int64_t row, rows, col, cols;
    enum class Holds { kWeights, kBias } holds = Holds::kWeights;
    enum class Stored { kAsIs, kTransposed } stored = Stored::kAsIs;  // in the checkpoint; shape is what it stands for

    int64_t width() const { return shape.back(); }
    int64_t count() const { return rows * cols; }
};

// Whether the tensor has the piece's matrix column by column.
bool lies_by_columns(const Piece&, const TensorView&);
// Where the tensor has row r of what it stands for.
int64_t stored_row(const TensorView&, int64_t r);

// Writes the piece row by row as `wanted` (PB_F32 or PB_BF16). pool: null: with this thread alone.
void read_piece(const Piece&, const TensorView&, pb_dtype wanted, std::byte* target, ThreadPool* pool);
// The values that fill_dummy() makes of seed and name; a bias is made like a norm's vector, near 0 in place of 1.
void make_piece(const Piece&, uint64_t seed, pb_dtype wanted, std::byte* target, ThreadPool* pool);
// The bytes that read_piece() would write, if the checkpoint has them in that form; else null.
const std::byte* piece_in_place(const Piece&, const TensorView&, pb_dtype wanted);

}  // namespace patchbay::weights
