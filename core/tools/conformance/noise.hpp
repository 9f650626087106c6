// Numbers for the checks: reproducible, of a named seed.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "patchbay/sdk/philox.hpp"

namespace patchbay::conformance {

class Noise {
  public:
    explicit Noise(uint64_t seed) : seed_(seed ^ of_process()) {}
    uint32_t bits() { return draw(seed_, at_++, Stream::kTest, 0)[0]; }
    uint32_t below(uint32_t n) { return static_cast<uint32_t>(uint64_t{bits()} * n >> 32); }      // [0, n)
    uint32_t between(uint32_t low, uint32_t high) { return low + below(high - low + 1); }         // [low, high]
    bool one_in(uint32_t n) { return below(n) == 0; }
    float real(float low, float high) { return low + static_cast<float>(uniform(bits())) * (high - low); }
    std::vector<float> reals(size_t n, float low = -1, float high = 1) {
        std::vector<float> out(n);
        for (float& x : out) x = real(low, high);
        return out;
    }

  private:
    // $PATCHBAY_PROBE_SEED in the high half: other random cases for all checks of a process. 0 where it is not set.
    static uint64_t of_process() {
        static const uint64_t seed = [] {
            const char* const text = std::getenv("PATCHBAY_PROBE_SEED");
            return text ? std::strtoull(text, nullptr, 10) << 32 : 0;
        }();
        return seed;
    }
    uint64_t seed_, at_ = 0;
};

}  // namespace patchbay::conformance
