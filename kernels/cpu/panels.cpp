#include "cpu/panels.hpp"

#include <algorithm>
#include <cstring>

#include "patchbay/sdk/tensor.hpp"

namespace patchbay::kernels {
namespace {

int64_t padded(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

uint64_t whole_cache_lines(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Of panel p; the last one may have fewer than `columns`.
int64_t columns_used(const PanelLayout& l, int64_t p) { return std::min(l.columns, l.rows - p * l.columns); }

}  // namespace

// A panel: f32 (cols, columns); bf16 (⌈cols / 2⌉, columns, 2), so that one load brings two elements of K for each lane
// and a shift or a mask makes either an f32; fp8 the scales (groups, columns), then the codes (cols, columns). Tiles
// are read out of the same layouts, with K padded.
PanelLayout plain_panels(pb_dtype dtype, int64_t rows, int64_t cols, int64_t columns, int64_t depth) {
    const auto numbers = uint64_t(padded(cols, depth) * columns);
    return {.dtype = dtype, .rows = rows, .cols = cols, .columns = columns,
            .panel_bytes = whole_cache_lines(numbers * (dtype == PB_BF16 ? 2 : 4))};
}

PanelLayout fp8_panels(int64_t rows, int64_t cols, int64_t columns, int64_t depth, int64_t group) {
    const int64_t padded_cols = padded(cols, depth), groups = (padded_cols + group - 1) / group;
    const uint64_t scale_bytes = uint64_t(groups * columns) * sizeof(float);
    return {.dtype = PB_FP8, .rows = rows, .cols = cols, .columns = columns, .group = group, .scale_bytes = scale_bytes,
            .panel_bytes = whole_cache_lines(scale_bytes + uint64_t(padded_cols * columns))};
}

void pack_panel(const PanelLayout& l, int64_t p, const void* data, uint8_t* to) {
    std::memset(to, 0, l.panel_bytes);
    const int64_t columns = l.columns, cols = l.cols;
    for (int64_t c = 0; c < columns_used(l, p); ++c) {
        const int64_t from = (p * columns + c) * cols;
        if (l.dtype == PB_BF16) {
            const auto* row = static_cast<const uint16_t*>(data) + from;
            auto* pairs = reinterpret_cast<uint16_t*>(to);
            for (int64_t k = 0; k < cols; ++k) pairs[(k / 2 * columns + c) * 2 + k % 2] = row[k];
        } else {
            const auto* row = static_cast<const float*>(data) + from;
            auto* values = reinterpret_cast<float*>(to);
            for (int64_t k = 0; k < cols; ++k) values[k * columns + c] = row[k];
        }
    }
}

void pack_fp8_panel(const PanelLayout& l, int64_t p, const QuantisedSource& source, uint8_t* to) {
    std::memset(to, 0, l.panel_bytes);
    auto* const scales = reinterpret_cast<float*>(to);
    uint8_t* const codes = to + l.scale_bytes;
    const int64_t columns = l.columns, cols = l.cols, groups = (cols + l.group - 1) / l.group;
    for (int64_t c = 0; c < columns_used(l, p); ++c) {
        const int64_t row = p * columns + c;
        for (int64_t g = 0; g < groups; ++g) scales[g * columns + c] = source.scales[row * groups + g];
        const uint8_t* const from = static_cast<const uint8_t*>(source.codes) + row * cols;
        for (int64_t k = 0; k < cols; ++k) codes[k * columns + c] = from[k];
    }
}

void read_panel_row(const PanelLayout& l, const uint8_t* panel, int64_t column, float* out) {
    const int64_t columns = l.columns, cols = l.cols;
    if (l.dtype == PB_FP8) {
        const uint8_t* const codes = panel + l.scale_bytes + column;
        const float* const scales = reinterpret_cast<const float*>(panel) + column;
        for (int64_t k = 0; k < cols; ++k) out[k] = fp8_to_f32(codes[k * columns]) * scales[k / l.group * columns];
    } else if (l.dtype == PB_BF16) {
        const auto* pairs = reinterpret_cast<const uint16_t*>(panel);
        for (int64_t k = 0; k < cols; ++k) out[k] = bf16_to_f32(pairs[(k / 2 * columns + column) * 2 + k % 2]);
    } else {
        const auto* values = reinterpret_cast<const float*>(panel);
        for (int64_t k = 0; k < cols; ++k) out[k] = values[k * columns + column];
    }
}

}  // namespace patchbay::kernels
