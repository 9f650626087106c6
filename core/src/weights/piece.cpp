#include "weights/piece.hpp"

#include <algorithm>
#include <cstring>

#include "patchbay/sdk/tensor.hpp"
#include "weights/convert.hpp"
#include "weights/dummy.hpp"
#include "weights/row_tasks.hpp"

namespace patchbay::weights {

bool lies_by_columns(const Piece& piece, const TensorView& view) {
    return view.turned != (piece.stored == Piece::Stored::kTransposed);
}

namespace {

// Of every n rows, r and r + n / 2 are rows 2·r and 2·r + 1.
int64_t in_pairs(int64_t r, int64_t n) {
    if (n == 0) return r;
    const int64_t within = r % n;
    return r - within + within % (n / 2) * 2 + within / (n / 2);
}

bool in_other_order(const Piece& piece, const TensorView& view) {
    return view.interleaved != 0 || view.fused.kv_heads != 0 || view.odd_rows || !piece.order.is_plain();
}

}  // namespace

int64_t RowOrder::operator()(int64_t row) const {
    if (is_plain()) return row;
    const int64_t r = in_pairs(row - first, pairs);
    return first + (unit ? r / unit * stride + r % unit : r);
}

int64_t stored_row(const Piece& piece, const TensorView& view, int64_t r) {
    return in_pairs(view.fused(piece.order(r)), view.interleaved);
}

namespace {

// Rows [begin, end) of the piece, which lies by columns: from each, the numbers between the first of them and the last.
void read_columns(const Piece& piece, const TensorView& view, pb_dtype wanted, std::byte* target, int64_t begin,
                  int64_t end) {
    const auto bytes = static_cast<size_t>(dtype_bytes(wanted));
    std::vector<int64_t> rows;
    for (int64_t r = begin; r < end; ++r) rows.push_back(stored_row(piece, view, piece.row + r));
    const auto [min_row, max_row] = std::ranges::minmax(rows);
    std::vector<std::byte> column(static_cast<size_t>(max_row - min_row + 1) * bytes);
    for (int64_t c = 0; c < piece.cols; ++c) {
        decode(view.encoding, view.data, (piece.col + c) * piece.shape[0] + min_row, max_row - min_row + 1, wanted,
               column.data());
        for (int64_t r = begin; r < end; ++r)
            std::memcpy(target + static_cast<size_t>(r * piece.cols + c) * bytes,
                        column.data() + static_cast<size_t>(rows[static_cast<size_t>(r - begin)] - min_row) * bytes,
                        bytes);
    }
}

// Each number times the scale of its block.
void read_scaled(const Piece& piece, const TensorView& view, pb_dtype wanted, std::byte* target, int64_t begin,
                 int64_t end) {
    std::vector<float> row(static_cast<size_t>(piece.cols));
    target += begin * piece.cols * dtype_bytes(wanted);
    for (int64_t r = begin; r < end; ++r, target += piece.cols * dtype_bytes(wanted)) {
        const int64_t stored = stored_row(piece, view, piece.row + r);
        decode(view.encoding, view.data, stored * piece.width() + piece.col, piece.cols, PB_F32,
               reinterpret_cast<std::byte*>(row.data()));
        for (int64_t c = 0; c < piece.cols; ++c)
            row[static_cast<size_t>(c)] *= piece.scales->at(stored, piece.col + c);
        convert(PB_F32, reinterpret_cast<const std::byte*>(row.data()), wanted, target, piece.cols);
    }
}

void read_rows(const Piece& piece, const TensorView& view, pb_dtype wanted, std::byte* target, int64_t begin,
               int64_t end) {
    const int64_t bytes = dtype_bytes(wanted);
    const bool ordered = in_other_order(piece, view);
    if (piece.shape.size() == 1 && ordered) {  // a bias: its numbers are the rows
        for (int64_t c = 0; c < piece.cols; ++c) {
            const auto [data, row] = view.find_row(stored_row(piece, view, piece.col + c));
            decode(view.encoding, data, row, 1, wanted, target + c * bytes);
        }
        return;
    }
    target += begin * piece.cols * bytes;
    if (piece.cols == piece.width() && !ordered)
        return decode(view.encoding, view.data, (piece.row + begin) * piece.cols, (end - begin) * piece.cols, wanted,
                      target);
    for (int64_t r = begin; r < end; ++r, target += piece.cols * bytes) {
        const auto [data, row] = view.find_row(stored_row(piece, view, piece.row + r));
        decode(view.encoding, data, row * piece.width() + piece.col, piece.cols, wanted, target);
    }
}

}  // namespace

void read_piece(const Piece& piece, const TensorView& view, pb_dtype wanted, std::byte* target, ThreadPool* pool) {
    const auto read = piece.scales ? read_scaled : lies_by_columns(piece, view) ? read_columns : read_rows;
    share_rows(pool, piece.rows, piece.cols,
               [&](int64_t begin, int64_t end) { read(piece, view, wanted, target, begin, end); });
}

void make_piece(const Piece& piece, uint64_t seed, pb_dtype wanted, std::byte* target, ThreadPool* pool) {
    constexpr int64_t kChunk = 4096;  // numbers between making and converting: they stay in the cache
    const int64_t bytes = dtype_bytes(wanted), rows = piece.shape.size() == 1 ? 1 : piece.shape[0];
    share_rows(pool, piece.rows, piece.cols, [&](int64_t begin, int64_t end) {
        std::vector<float> made(static_cast<size_t>(std::min(piece.cols, kChunk)));
        const bool matrix = piece.shape.size() > 1;
        for (int64_t r = begin; r < end; ++r)
            for (int64_t c = 0; c < piece.cols; c += kChunk) {
                const int64_t n = std::min(kChunk, piece.cols - c);
                fill_dummy(seed, piece.name, rows, piece.width(),
                           (matrix ? piece.order(piece.row + r) : r) * piece.width() + piece.col + c, n, made.data());
                if (piece.holds == Piece::Holds::kBias)
                    for (int64_t k = 0; k < n; ++k) made[static_cast<size_t>(k)] -= 1.0f;
                convert(PB_F32, reinterpret_cast<const std::byte*>(made.data()), wanted,
                        target + (r * piece.cols + c) * bytes, n);
            }
    });
}

const std::byte* piece_in_place(const Piece& piece, const TensorView& view, pb_dtype wanted) {
    const bool whole_rows = piece.cols == piece.width() || piece.rows == 1;
    if (dtype_of(view.encoding) != wanted || !whole_rows || in_other_order(piece, view) || lies_by_columns(piece, view))
        return nullptr;
    const int64_t bytes = dtype_bytes(wanted);
    const std::byte* at = view.data + (piece.row * piece.width() + piece.col) * bytes;
    return reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(bytes) == 0 ? at : nullptr;
}

}  // namespace patchbay::weights
