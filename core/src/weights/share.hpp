// What a rank's share of a weight is made of: pieces of the tensors that its pb_weight_spec names. Used by the loader.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "patchbay/abi/model.h"
#include "weights/codes.hpp"
#include "weights/piece.hpp"
#include "weights/stored_tensors.hpp"

namespace patchbay::weights {

struct Share {
    std::vector<Piece> pieces, biases;  // of each part; a bias of no name: zeros
    CodeSources packed;                 // likewise; null: it is not an AWQ or GPTQ linear
    bool has_bias = false;
    int64_t rows = 0, cols = 0;
};

template <size_t n>
std::string text_of(const char (&field)[n]) { // a plugin's field: perhaps not terminated
    return std::string(field, strnlen(field, n));
}

// Refused: a spec that no checkpoint can serve, and tensors that are not as it says.
Result<Share> share_of(const pb_weight_spec&, uint32_t rank, uint32_t size, const StoredTensors&);

}  // namespace patchbay::weights
