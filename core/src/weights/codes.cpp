#include "weights/codes.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/refusals.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "weights/convert.hpp"
#include "weights/row_tasks.hpp"

namespace patchbay::weights {
namespace {

constexpr int64_t kMaxRows = 32;  // unpacked at a time: they stay in the cache

// Calls work(begin, rows) for pieces of [begin, end), with one buffer for all.
template <class F>
void in_blocks_of_rows(const CodeSource& source, int64_t cols, int64_t begin, int64_t end, F&& work) {
    CodeRows rows(source.form(), std::min(kMaxRows, end - begin), cols);
    for (; begin < end; begin += rows.rows) {
        rows.rows = std::min(rows.rows, end - begin);
        source.unpack(begin, begin + rows.rows, rows);
        work(begin, rows);
    }
}

// Eight pairs at a time: compilers leave such loops scalar at -O2.
void pack_pairs(const int8_t* codes, int64_t cols, std::byte* target) {
    using Pairs = uint16_t __attribute__((vector_size(16)));
    using Bytes = uint8_t __attribute__((vector_size(8)));
    constexpr int64_t kPairs = 8;
    const auto* const bits = reinterpret_cast<const uint8_t*>(codes);
    int64_t i = 0;
    for (; i + kPairs <= cols / 2; i += kPairs) {
        Pairs pairs; // the even code in the low byte
        std::memcpy(&pairs, bits + 2 * i, sizeof pairs);
        const Bytes packed = __builtin_convertvector((pairs & 15) | (pairs >> 4 & 0xf0), Bytes);
        std::memcpy(target + i, &packed, sizeof packed);
    }
    for (; i < cols / 2; ++i) target[i] = static_cast<std::byte>((bits[2 * i] & 15) | bits[2 * i + 1] << 4);
    if (cols % 2) target[i] = static_cast<std::byte>(bits[cols - 1] & 15);
}

// A group of the source is one of the target's or some.
void spread(const float* from, uint32_t group, const CodeTarget& target, float* to) {
    const int64_t groups = target.form.groups(target.cols);
    for (int64_t g = 0; g < groups; ++g) to[g] = from[g * target.form.group / group];
}

bool all_finite(const std::vector<float>& values, int64_t count) {
    return std::all_of(values.begin(), values.begin() + count, [](float x) { return std::isfinite(x); });
}

bool no_nan(const int8_t* fp8, int64_t count) {
    return std::none_of(fp8, fp8 + count, [](int8_t code) { return (code & 0x7f) == 0x7f; });
}

}  // namespace

uint32_t device_group(int64_t stored, int64_t cols) {
    uint32_t group = 128;
    while (group >= 16 && stored < cols && stored % group != 0) group /= 2;
    return group;
}

CodeForm holding_both(const CodeForm& a, const CodeForm& b) {
    return {a.dtype == b.dtype ? a.dtype : pb_dtype{PB_I8}, std::min(a.group, b.group),
            std::max(a.offsets, b.offsets)};
}

CodeRows::CodeRows(const CodeForm& form, int64_t rows_, int64_t cols_)
    : rows(rows_), cols(cols_), groups(form.groups(cols_)), group(form.group), codes(static_cast<size_t>(rows * cols)),
      scales(static_cast<size_t>(rows * groups)), offsets(scales.size()) {}

Result<> write_codes(const CodeSource& source, int64_t rows, const CodeTarget& target, const std::string& name,
                     ThreadPool* pool) {
    std::atomic<bool> finite{true};
    const int64_t groups = target.form.groups(target.cols), row_bytes = target.form.row_bytes(target.cols);
    share_rows(pool, rows, target.cols, [&](int64_t begin, int64_t end) {
        in_blocks_of_rows(source, target.cols, begin, end, [&](int64_t first, CodeRows& some) {
            if (!all_finite(some.scales, some.rows * some.groups) || !all_finite(some.offsets, some.rows * some.groups))
                finite = false;
            if (target.form.dtype == PB_FP8 && !no_nan(some.codes.data(), some.rows * some.cols)) finite = false;
            for (int64_t r = 0; r < some.rows; ++r) {
                std::byte* const codes = target.codes + (first + r) * row_bytes;
                if (target.form.dtype == PB_I4) pack_pairs(some.codes_of(r), target.cols, codes);
                else std::memcpy(codes, some.codes_of(r), static_cast<size_t>(row_bytes));
                spread(some.scales_of(r), some.group, target, target.scales + (first + r) * groups);
                if (!target.offsets) continue;
                spread(some.offsets_of(r), some.group, target, target.offsets + (first + r) * groups);
            }
        });
    });
    if (!finite) return invalid("tensor '" + name + "' holds numbers that are not finite (is the file damaged?)");
    return {};
}

void write_real(const CodeSource& source, int64_t rows, int64_t cols, pb_dtype wanted, std::byte* target,
                ThreadPool* pool) {
    const std::span<const int32_t> order = source.order();
    share_rows(pool, rows, cols, [&](int64_t begin, int64_t end) {
        std::vector<float> row(static_cast<size_t>(cols));
        in_blocks_of_rows(source, cols, begin, end, [&](int64_t first, CodeRows& some) {
            for (int64_t r = 0; r < some.rows; ++r) {
                const int8_t* const codes = some.codes_of(r);
                const float *const scales = some.scales_of(r), *const offsets = some.offsets_of(r);
                for (int64_t c = 0; c < cols; ++c) {
                    const auto at = static_cast<size_t>(order.empty() ? c : order[static_cast<size_t>(c)]);
                    row[at] = static_cast<float>(codes[c]) * scales[c / some.group] + offsets[c / some.group];
                }
                convert(PB_F32, reinterpret_cast<const std::byte*>(row.data()), wanted,
                        target + (first + r) * cols * dtype_bytes(wanted), cols);
            }
        });
    });
}

}  // namespace patchbay::weights
