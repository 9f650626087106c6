// Linears of AWQ, GPTQ and compressed-tensors checkpoints: integers of 4 or 8 bits with a scale and a zero point for
// each group of columns: w = (q − zero) · scale. AWQ and GPTQ store them as (in, out), compressed-tensors as (out,
// in), in words of 32 bits or, of 8 bits, one in each byte. And what fp8 checkpoints say of their scales. Used by the
// loader. Layouts: https://github.com/casper-hansen/AutoAWQ (gemm), https://github.com/AutoGPTQ/AutoGPTQ,
// https://github.com/vllm-project/compressed-tensors.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "weights/checkpoint.hpp"
#include "weights/codes.hpp"
#include "weights/piece.hpp"

namespace patchbay::weights {

struct PackedFormat {
    enum class Method { kAwq, kGptq, kCompressed, kFp8, kMxfp4 } method;
    uint32_t bits;        // of a code, 4 or 8; of AWQ 4; of MXFP4 8, though it stores numbers of 4
    int64_t group_size;   // columns; −1: all of them
    uint32_t zero_short;  // added to stored zero points: 1 in GPTQ's first format, else 0
    enum class Columns { kInOrder, kByGroup } columns;  // kByGroup: g_idx says which group each is in

    uint32_t device_group(int64_t cols) const;
    const char* name() const;
    // Of kFp8: rows and columns that share a scale; 0: all of them.
    int64_t block_rows = 0, block_cols = 0;
    bool is_integers() const { return method != Method::kFp8; }
};
// The scales of an fp8 tensor of this name and shape: of each block_rows rows and block_cols columns one.
Result<std::shared_ptr<const BlockScales>> fp8_scales(const std::optional<PackedFormat>&, const Checkpoint&,
                                                      const std::string& name, const std::vector<int64_t>& shape);
// Parses config.json's quantization_config; none: it has none. Refused: unsupported methods and settings.
Result<std::optional<PackedFormat>> packed_format(const FlatConfig&);

// A piece of the linear that is stored as `module`.qweight, .qzeros, .scales and, for kByGroup, .g_idx; of compressed-
// tensors as .weight_packed (or .weight, of int8), .weight_scale and perhaps .weight_zero_point; of MXFP4 as
// mxfp4_codes() says.
Result<std::shared_ptr<const CodeSource>> packed_codes(const PackedFormat&, const Checkpoint&,
                                                       const std::string& module, const Piece&);

}  // namespace patchbay::weights
