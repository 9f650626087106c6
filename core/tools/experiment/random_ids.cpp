#include "experiment/random_ids.hpp"

#include "base/refusals.hpp"

namespace patchbay::experiment {

Result<RandomIds> RandomIds::open(const text::Tokenizer* tokenizer, uint32_t vocab_size) {
    RandomIds out;
    for (uint32_t id = 0; id < vocab_size; ++id)
        if (!tokenizer || (id < tokenizer->vocab_size() && !tokenizer->is_special(static_cast<text::TokenId>(id))))
            out.plain_.push_back(static_cast<text::TokenId>(id));
    if (out.plain_.empty()) return invalid("workload: the tokenizer has only special tokens");
    return out;
}

void RandomIds::append(TokenIds& ids, const Draws& draws, Purpose purpose, uint64_t number, uint32_t tokens) const {
    PhiloxBlock block{};
    for (uint32_t k = 0; k < tokens; ++k) {
        if (k % 4 == 0) block = draws.bits(purpose, number, k / 4);
        ids.push_back(plain_[uint64_t{block[k % 4]} * plain_.size() >> 32]);
    }
}

}  // namespace patchbay::experiment
