// What a SentencePiece model file (tokenizer.model) holds, as far as encoding and decoding need it. Read from its
// protobuf by parse_sentencepiece(); a GGUF file has the same under other names. sentencepiece_tokenizer.hpp uses it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace patchbay::text {

struct SentencePieceModel {
    enum class Kind : uint8_t { kUnigram = 1, kBpe = 2 };
    enum class PieceKind : uint8_t {
        kNormal = 1,
        kUnknown = 2,
        kControl = 3,
        kUserDefined = 4,
        kUnused = 5,
        kByte = 6
    };
    struct Piece {
        std::string text; // UTF-8
        float score = 0;
        PieceKind kind = PieceKind::kNormal;
    };
    Kind kind = Kind::kUnigram;
    std::vector<Piece> pieces; // by id
    int32_t eos_id = 2;        // −1: none
    bool byte_fallback = false;
    std::string charsmap; // precompiled; empty: none
    bool add_dummy_prefix = true;
    bool remove_extra_whitespaces = true;
    bool escape_whitespaces = true;
};

Result<SentencePieceModel> parse_sentencepiece(std::string_view file);

}  // namespace patchbay::text
