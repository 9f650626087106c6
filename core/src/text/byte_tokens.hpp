// The tokens "<0x00>" … "<0xFF>", with which byte_fallback spells characters that the vocabulary lacks.
#pragma once
#include <array>

#include "text/vocabulary.hpp"

namespace patchbay::text {

constexpr TokenId kNoToken = -1;
using ByteTokens = std::array<TokenId, 256>; // kNoToken where the vocabulary has none
ByteTokens byte_tokens(const Vocabulary&);

}  // namespace patchbay::text
