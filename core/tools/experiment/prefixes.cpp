#include "experiment/prefixes.hpp"

namespace patchbay::experiment {

PrefixSource::PrefixSource(const SharedPrefixes& given) : share_(given.share) {
    if (given.number == 0) return;
    lengths_ = std::make_shared<LengthSource>(given.tokens);
    numbers_ = std::make_shared<LengthSource>(ZipfLength{given.exponent, 1, given.number});
}

std::optional<uint32_t> PrefixSource::number(const Draws& draws, uint32_t s) const {
    if (!numbers_ || draws.uniform(Purpose::kHasPrefix, s) > share_) return std::nullopt;
    return numbers_->draw(draws, Purpose::kPrefixChoice, s);
}

uint32_t PrefixSource::length(const Draws& draws, uint32_t s) const {
    const auto k = number(draws, s);
    return k ? lengths_->draw(draws, Purpose::kPrefixLength, *k) : 0;
}

TokenIds PrefixSource::tokens(const Draws& draws, uint32_t s, const RandomIds& random) const {
    TokenIds ids;
    if (const auto k = number(draws, s)) random.append(ids, draws, Purpose::kPrefixIds, *k, length(draws, s));
    return ids;
}

}  // namespace patchbay::experiment
