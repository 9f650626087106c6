// The prefixes that sessions of a workload share: which one each begins with, and its tokens.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "experiment/draws.hpp"
#include "experiment/random_ids.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

class PrefixSource {
  public:
    PrefixSource() = default; // no session has one
    explicit PrefixSource(const SharedPrefixes&);

    // Of session s.
    std::optional<uint32_t> number(const Draws&, uint32_t s) const;  // from 1 on; none: it has none
    uint32_t length(const Draws&, uint32_t s) const;
    TokenIds tokens(const Draws&, uint32_t s, const RandomIds&) const; // empty: it has none

  private:
    double share_ = 0; // of the sessions that have one
    std::shared_ptr<const LengthSource> lengths_, numbers_; // null: no prefixes
};

}  // namespace patchbay::experiment
