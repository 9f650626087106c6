// Floats rounded to codes at load (`model.quantization: int8` and `int4`). Used by the loader.
#pragma once
#include <functional>

#include "weights/codes.hpp"
#include "weights/piece.hpp"

namespace patchbay::weights {

// `count` numbers that share a scale, which is returned; 0 if all are 0 or nearly 0, not finite if one is not.
// int8: the largest becomes ±127. int4: of a few scales, the one with the least squared error, which may be negative.
float round_to_int8(const float* numbers, int64_t count, int8_t* codes);
float round_to_int4(const float* numbers, int64_t count, int8_t* codes);

class RoundedCodes final : public CodeSource {
  public:
    using Read = std::function<void(const Piece&, float* target)>;  // all numbers of a piece [any thread]
    enum class Scales { kOfGroups, kOfRows };  // kOfRows: all groups of a row have one
    RoundedCodes(Piece piece, const CodeForm& form, Scales scales, Read read)
        : piece_(std::move(piece)), form_(form), scales_(scales), read_(std::move(read)) {}

    CodeForm form() const override { return form_; }
    void unpack(int64_t begin, int64_t end, CodeRows& out) const override;

  private:
    Piece piece_;
    CodeForm form_;
    Scales scales_;
    Read read_;
};

}  // namespace patchbay::weights
