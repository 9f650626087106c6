// Linears of AWQ and GPTQ checkpoints: integers of 4 or 8 bits, packed into words of 32, with a scale and a zero
// point for each group of columns: w = (q − zero) · scale. Stored as (in, out). Used by the loader.
// Layouts: https://github.com/casper-hansen/AutoAWQ (gemm), https://github.com/AutoGPTQ/AutoGPTQ.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "weights/checkpoint.hpp"
#include "weights/codes.hpp"
#include "weights/piece.hpp"

namespace patchbay::weights {

struct PackedFormat {
    enum class Method { kAwq, kGptq } method;
    uint32_t bits;        // 4; of GPTQ 8 too
    int64_t group_size;   // columns; −1: all of them
    uint32_t zero_short;  // added to stored zero points: 1 in GPTQ's first format, else 0
    enum class Columns { kInOrder, kByGroup } columns;  // kByGroup: g_idx says which group each is in

    // Columns that share a scale on a device, of a matrix with `cols`: scales may be repeated, so that a group is one
    // that devices support. Below 16: unsupported.
    uint32_t device_group(int64_t cols) const;
    const char* name() const { return method == Method::kAwq ? "awq" : "gptq"; }
};
// Parses config.json's quantization_config; none: it has none. Refused: unsupported methods and settings.
Result<std::optional<PackedFormat>> packed_format(const FlatConfig&);

// A piece of the linear that is stored as `module`.qweight, .qzeros, .scales and, for kByGroup, .g_idx.
Result<std::shared_ptr<const CodeSource>> packed_codes(const PackedFormat&, const Checkpoint&,
                                                       const std::string& module, const Piece&);

}  // namespace patchbay::weights
