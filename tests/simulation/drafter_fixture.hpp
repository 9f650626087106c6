// A proposer for simulations: drafts the right tokens, now and then wrong ones, fewer than allowed, none, or a fault.
#pragma once
#include <functional>

#include "host/registry.hpp"

namespace patchbay::engine::testing {

struct Drafting {
    std::function<int32_t(uint64_t id, uint64_t position)> what_comes;
    std::function<uint32_t(uint32_t n)> below; // a draw
};

Result<host::Proposer> drafter(Drafting&); // which must outlive it

}  // namespace patchbay::engine::testing
