// GGUF's blocks of quantised numbers, 32 or 256 each (the kinds that end in K or XS). Layouts:
// https://github.com/ggml-org/ggml (block_q4_0 and the others). Used by decode() and block_codes().
#pragma once
#include <cstddef>
#include <cstdint>

#include "weights/codes.hpp"
#include "weights/encoding.hpp"

namespace patchbay::weights {

constexpr int64_t kMaxBlock = 256, kMinGroup = 16;
constexpr int64_t kMaxGroups = kMaxBlock / kMinGroup;  // of a block

// A block as w = code · scale + offset, unrounded: a code for each number, a scale and an offset for each group.
struct BlockCodes {
    int8_t* codes;
    float *scales, *offsets;
};

struct BlockKind {
    Encoding encoding;
    void (*unpack)(const std::byte* block, const BlockCodes&);
    CodeForm form;  // that holds its codes, less `zero`
    int8_t zero = 0;
};
const BlockKind* block_kind(Encoding);  // null: it has no such blocks

}  // namespace patchbay::weights
