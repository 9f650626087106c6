// Every random choice of a workload, a run order: a pure function of (seed, repeat, purpose, number).
#pragma once
#include <cstdint>
#include <vector>

#include "experiment/spec.hpp"
#include "patchbay/sdk/philox.hpp"

namespace patchbay::experiment {

enum class Purpose : uint32_t {
    kArrival = 1, kPromptLength, kOutputLength, kPromptChoice, kPromptIds, kOffset, kSampling, kRunOrder, kWindow,
    kTenant, kPriority, kDeadline, kStepJitter, kRunJitter, kDeclared, kBlockIds, kPrefixIds, kPrefixLength,
    kPrefixChoice, kHasPrefix, kTurns, kThink, kUserThink, kAnswerIds, kWindowOrder
};

class Draws {
  public:
    Draws(uint64_t seed, uint64_t repeat);

    // 128 bits of draw number `number`; `attempt` distinguishes the draws inside one rejection loop.
    PhiloxBlock bits(Purpose, uint64_t number, uint32_t attempt = 0) const;
    double uniform(Purpose, uint64_t number) const;                        // in (0, 1)
    uint64_t below(Purpose, uint64_t number, uint64_t bound) const;        // in [0, bound)
    uint64_t word(Purpose, uint64_t number) const;                         // 64 bits
    double exponential(Purpose, uint64_t number) const;                    // mean 1
    double normal(Purpose, uint64_t number) const;                         // mean 0, variance 1
    double gamma(Purpose, uint64_t number, double shape) const;            // mean `shape`, scale 1
    double seconds(Purpose, uint64_t number, const Duration&) const;
    std::vector<uint32_t> permutation(Purpose, uint32_t count) const;      // of 0 … count − 1

  private:
    uint64_t key_;
};

// Lengths of one distribution; the table that Zipf needs is built once.
class LengthSource {
  public:
    explicit LengthSource(Length);
    uint32_t draw(const Draws&, Purpose, uint64_t number) const;

  private:
    Length length_;
    std::vector<double> zipf_; // cumulative, not normalised
};

}  // namespace patchbay::experiment
