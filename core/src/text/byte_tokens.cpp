#include "text/byte_tokens.hpp"

namespace patchbay::text {

ByteTokens byte_tokens(const Vocabulary& vocabulary) {
    constexpr const char* kHex = "0123456789ABCDEF";
    ByteTokens out;
    for (uint32_t b = 0; b < 256; ++b)
        out[b] = vocabulary.find(std::string{'<', '0', 'x', kHex[b >> 4], kHex[b & 15], '>'}).value_or(kNoToken);
    return out;
}

}  // namespace patchbay::text
