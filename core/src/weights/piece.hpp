// One tensor's share of a weight, and how it gets into memory: from a checkpoint, or random from a seed. The loader
// decides which pieces a weight has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
#include "weights/checkpoint.hpp"

namespace patchbay::weights {

// Which rows of the tensor they are, where they do not follow one another: as pb_row_order, from row `first` on.
struct RowOrder {
    int64_t first = 0, unit = 0, stride = 0, pairs = 0;
    bool is_plain() const { return unit == 0 && pairs == 0; }
    int64_t operator()(int64_t row) const;  // row: counted as if they followed one another, from `first` on
};

// Real numbers that those of an fp8 tensor are multiplied by, each of a block of it.
struct BlockScales {
    std::vector<float> values;  // (blocks of rows, blocks of columns)
    int64_t block_rows, block_cols, across;  // across: blocks in a row
    float at(int64_t row, int64_t col) const {
        return values[static_cast<size_t>(row / block_rows * across + col / block_cols)];
    }
};

struct Piece {  // of `shape`, rows [row, row + rows) and columns [col, col + cols)
    std::string name;
    std::vector<int64_t> shape;  // whole; two sizes, or one, which is then a single row
    int64_t row, rows, col, cols;
    enum class Holds { kWeights, kBias } holds = Holds::kWeights;
    enum class Stored { kAsIs, kTransposed } stored = Stored::kAsIs;  // in the checkpoint; shape is what it stands for
    RowOrder order = {};
    std::shared_ptr<const BlockScales> scales = {};  // of an fp8 tensor

    int64_t width() const { return shape.back(); }
    int64_t count() const { return rows * cols; }
};

// Whether the tensor has the piece's matrix column by column.
bool lies_by_columns(const Piece&, const TensorView&);
// Where the tensor has the piece's row r, counted from the tensor's first, or its number r of a bias.
int64_t stored_row(const Piece&, const TensorView&, int64_t r);

// Writes the piece row by row as `wanted` (PB_F32 or PB_BF16). pool: null: with this thread alone.
void read_piece(const Piece&, const TensorView&, pb_dtype wanted, std::byte* target, ThreadPool* pool);
// The values that fill_dummy() makes of seed and name; a bias is made like a norm's vector, near 0 in place of 1.
void make_piece(const Piece&, uint64_t seed, pb_dtype wanted, std::byte* target, ThreadPool* pool);
// The bytes that read_piece() would write, if the checkpoint has them in that form; else null.
const std::byte* piece_in_place(const Piece&, const TensorView&, pb_dtype wanted);

}  // namespace patchbay::weights
