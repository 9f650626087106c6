// patchbay/sdk/philox.hpp - Philox4x32-10, the counter-based generator of every draw. No state: a draw is a pure
// function of (seed, position, stream, index). Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
// 2011.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>

namespace patchbay {

enum class Stream : uint32_t {
    kSample = 0,
    kReject = 1,
    kWorkload = 2,
    kWeights = 3,
    kTest = 4,
    kDraft = 5,
    kExclude = 6
};

using PhiloxBlock = std::array<uint32_t, 4>;

using PhiloxKey = std::array<uint32_t, 2>;

constexpr int kPhiloxRounds = 10;
constexpr uint32_t kPhiloxFirst = 0xD2511F53, kPhiloxSecond = 0xCD9E8D57;

constexpr PhiloxKey next_key(PhiloxKey key) { return {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u}; }

constexpr PhiloxBlock philox4x32(PhiloxBlock counter, PhiloxKey key) {
    for (int round = 0; round < kPhiloxRounds; ++round, key = next_key(key)) {
        const uint64_t a = uint64_t{kPhiloxFirst} * counter[0];
        const uint64_t b = uint64_t{kPhiloxSecond} * counter[2];
        counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
                   static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    }
    return counter;
}

constexpr PhiloxBlock draw_counter(uint64_t position, Stream stream, uint32_t index) {
    return {static_cast<uint32_t>(position),
            static_cast<uint32_t>(position >> 32) ^ (static_cast<uint32_t>(stream) << 24), index, 0x50424159u};
}
constexpr PhiloxKey draw_key(uint64_t seed) {
    return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

// 128 random bits of (seed, position, stream, index): position of the token, index of the draw within it.
constexpr PhiloxBlock draw(uint64_t seed, uint64_t position, Stream stream, uint32_t index) {
    return philox4x32(draw_counter(position, stream, index), draw_key(seed));
}

// Uniform in the open interval (0, 1), 32 bits of it: never 0, so that log() is finite.
constexpr double uniform(uint32_t bits) { return (bits + 0.5) * 0x1p-32; }

// Standard Gumbel noise that 32 random bits stand for: it grows with them.
inline double gumbel_of(uint32_t bits) { return -std::log(-std::log(uniform(bits))); }

// Standard Gumbel noise of token `token`: argmax over tokens of (log p + gumbel) samples from p.
inline double gumbel(uint64_t seed, uint64_t position, uint32_t token) {
    const PhiloxBlock bits = draw(seed, position, Stream::kSample, token / 4);
    return gumbel_of(bits[token % 4]);
}

}  // namespace patchbay
