#include "text/sentencepiece_model.hpp"

#include <bit>
#include <cmath>

#include "base/refusals.hpp"
#include "base/utf8.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {
namespace {

struct Field {
    uint64_t number = 0;
    uint64_t value = 0;     // of a varint, or of four or eight bytes
    std::string_view bytes; // of what has a length
    enum class Wire : uint8_t { kVarint = 0, kEight = 1, kBytes = 2, kFour = 5 } wire = Wire::kVarint;
};

// The fields of a protobuf message, one after the other.
class Message {
  public:
    explicit Message(std::string_view bytes) : left_(bytes) {}
    bool done() const { return left_.empty(); }

    Result<Field> next() {
        PB_TRY(const uint64_t tag, varint());
        Field out;
        out.number = tag >> 3;
        switch (tag & 7) {
            case 0: {
                PB_TRY(out.value, varint());
                return out;
            }
            case 1:
            case 5: {
                out.wire = (tag & 7) == 1 ? Field::Wire::kEight : Field::Wire::kFour;
                PB_TRY(const std::string_view bytes, take((tag & 7) == 1 ? 8 : 4));
                for (size_t i = 0; i < bytes.size(); ++i)
                    out.value |= uint64_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
                return out;
            }
            case 2: {
                out.wire = Field::Wire::kBytes;
                PB_TRY(const uint64_t size, varint());
                PB_TRY(out.bytes, take(size));
                return out;
            }
            default: return invalid("a field of the wire type " + std::to_string(tag & 7));
        }
    }

  private:
    Result<std::string_view> take(uint64_t size) {
        if (size > left_.size())
            return invalid("a field of " + std::to_string(size) + " bytes where " + std::to_string(left_.size()) +
                           " are left");
        const std::string_view out = left_.substr(0, size);
        left_.remove_prefix(size);
        return out;
    }

    Result<uint64_t> varint() {
        uint64_t out = 0;
        for (uint32_t shift = 0; shift < 64; shift += 7) {
            PB_TRY(const std::string_view byte, take(1));
            const auto bits = static_cast<unsigned char>(byte[0]);
            out |= uint64_t{bits & 0x7Fu} << shift;
            if (bits < 0x80) return out;
        }
        return invalid("a number of more than 64 bits");
    }

    std::string_view left_;
};

Result<SentencePieceModel::Piece> read_piece(std::string_view bytes) {
    SentencePieceModel::Piece out;
    for (Message message(bytes); !message.done();) {
        PB_TRY(const Field field, message.next());
        if (field.number == 1 && field.wire == Field::Wire::kBytes) out.text = field.bytes;
        if (field.number == 2 && field.wire == Field::Wire::kFour)
            out.score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
        if (field.number == 3 && field.wire == Field::Wire::kVarint) {
            if (field.value < 1 || field.value > 6)
                return invalid("kind " + std::to_string(field.value) + " is unknown");
            out.kind = static_cast<SentencePieceModel::PieceKind>(field.value);
        }
    }
    if (out.text.empty()) return invalid("it is empty");
    if (valid_prefix(out.text) != out.text.size()) return invalid("it is not UTF-8");
    if (!std::isfinite(out.score)) return invalid("its score is not finite");
    return out;
}

Result<> read_trainer(std::string_view bytes, SentencePieceModel& out) {
    for (Message message(bytes); !message.done();) {
        PB_TRY(const Field field, message.next());
        if (field.wire != Field::Wire::kVarint) continue;
        if (field.number == 3) {
            if (field.value != 1 && field.value != 2)
                return unsupported("model type " + std::to_string(field.value) +
                                   " is not supported (supported: 1, Unigram; 2, BPE)");
            out.kind = static_cast<SentencePieceModel::Kind>(field.value);
        }
        if (field.number == 24 && field.value != 0) return unsupported("treat_whitespace_as_suffix is not supported");
        if (field.number == 35) out.byte_fallback = field.value != 0;
        if (field.number == 42) out.eos_id = static_cast<int32_t>(field.value);
    }
    return {};
}

Result<> read_normalizer(std::string_view bytes, SentencePieceModel& out) {
    for (Message message(bytes); !message.done();) {
        PB_TRY(const Field field, message.next());
        if (field.number == 2 && field.wire == Field::Wire::kBytes) out.charsmap = field.bytes;
        if (field.wire != Field::Wire::kVarint) continue;
        if (field.number == 3) out.add_dummy_prefix = field.value != 0;
        if (field.number == 4) out.remove_extra_whitespaces = field.value != 0;
        if (field.number == 5) out.escape_whitespaces = field.value != 0;
    }
    return {};
}

Result<SentencePieceModel> read_model(std::string_view file) {
    SentencePieceModel out;
    for (Message message(file); !message.done();) {
        PB_TRY(const Field field, message.next());
        if (field.wire != Field::Wire::kBytes) continue;
        if (field.number == 1) {
            auto piece = read_piece(field.bytes);
            if (!piece) return prefixed("piece " + std::to_string(out.pieces.size()), piece.failure());
            if (out.pieces.size() > static_cast<size_t>(kMaxTokenId))
                return invalid("more than " + std::to_string(kMaxTokenId) + " pieces");
            out.pieces.push_back(*std::move(piece));
        }
        if (field.number == 2) PB_CHECK(read_trainer(field.bytes, out));
        if (field.number == 3) PB_CHECK(read_normalizer(field.bytes, out));
    }
    if (out.pieces.empty()) return invalid("there are no pieces");
    return out;
}

}  // namespace

Result<SentencePieceModel> parse_sentencepiece(std::string_view file) {
    auto out = read_model(file);
    if (!out) return prefixed("no SentencePiece model that can be read", out.failure());
    return out;
}

}  // namespace patchbay::text
