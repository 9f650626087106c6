// What models ask the loader for, and the numbers that it gives: for tests.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "patchbay/sdk/tensor.hpp"
#include "patchbay/sizes.hpp"
#include "weights/convert.hpp"
#include "weights/loader.hpp"

namespace patchbay::weights {

inline pb_weight_part part(const std::string& name, int64_t rows, const std::string& bias = "", int64_t unit = 0) {
    pb_weight_part out{};
    name.copy(out.name, sizeof out.name - 1);
    bias.copy(out.bias, sizeof out.bias - 1);
    out.rows = rows;
    out.shard_unit = unit;
    return out;
}

inline pb_weight_spec spec(int64_t cols, const std::vector<pb_weight_part>& parts, pb_shard shard = PB_SHARD_NONE,
                    pb_weight_role role = PB_WEIGHT_LINEAR) {
    pb_weight_spec out = patchbay::sized<pb_weight_spec>();
    out.role = role;
    out.shard = shard;
    out.cols = cols;
    out.part_count = static_cast<uint32_t>(parts.size());
    std::copy(parts.begin(), parts.end(), out.parts);
    return out;
}

inline std::vector<float> values(std::span<const std::byte> bytes, pb_dtype dtype) {
    std::vector<float> out(bytes.size() / static_cast<size_t>(dtype_bytes(dtype)));
    convert(dtype, bytes.data(), PB_F32, reinterpret_cast<std::byte*>(out.data()), static_cast<int64_t>(out.size()));
    return out;
}

// code · scale + offset of each number, row-major in the matrix's own order of columns.
inline std::vector<float> meant(const LoadedWeight& w) {
    std::vector<float> out(static_cast<size_t>(w.rows * w.cols));
    const int64_t groups = (w.cols + w.group - 1) / w.group;
    for (int64_t r = 0; r < w.rows; ++r)
        for (int64_t c = 0; c < w.cols; ++c) {
            int code;
            if (w.dtype == PB_I4) {
                const int pair = static_cast<int>(w.data[static_cast<size_t>(r * ((w.cols + 1) / 2) + c / 2)]);
                code = pair >> (c % 2 * 4) & 15;
                if (code > 7) code -= 16;
            } else {
                code = static_cast<int8_t>(w.data[static_cast<size_t>(r * w.cols + c)]);
            }
            const auto g = static_cast<size_t>(r * groups + c / w.group);
            const int64_t at = w.order.empty() ? c : w.order[static_cast<size_t>(c)];
            out[static_cast<size_t>(r * w.cols + at)] =
                static_cast<float>(code) * w.scales[g] + (w.offsets.empty() ? 0.0f : w.offsets[g]);
        }
    return out;
}

}  // namespace patchbay::weights
