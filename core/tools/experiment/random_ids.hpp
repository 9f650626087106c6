// Token ids that stand for text where a workload has none: any but special ones, by draws.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "experiment/draws.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::experiment {

using TokenIds = std::vector<text::TokenId>;

class RandomIds {
  public:
    RandomIds() = default; // open() makes one that has ids
    // Without a tokenizer no id is special.
    static Result<RandomIds> open(const text::Tokenizer*, uint32_t vocab_size);

    void append(TokenIds&, const Draws&, Purpose, uint64_t number, uint32_t tokens) const;
    text::TokenId largest() const { return plain_.back(); }
    // An id of any vocabulary as one of these: equal ids remain equal.
    text::TokenId folded(text::TokenId id) const { return plain_[static_cast<size_t>(id) % plain_.size()]; }

  private:
    TokenIds plain_;
};

}  // namespace patchbay::experiment
