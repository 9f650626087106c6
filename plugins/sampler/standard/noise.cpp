#include "noise.hpp"

namespace patchbay {
namespace {

constexpr int kLanes = 16; // Philox blocks computed together

// philox4x32() of draw(), kLanes counters at a time.
[[gnu::always_inline]] inline void fill(NoiseChunk& out, uint64_t seed, uint64_t position, uint32_t chunk) {
    const PhiloxBlock first = draw_counter(position, Stream::kSample, chunk * (kNoiseTokens / 4));
    for (uint32_t block = 0; block < kNoiseTokens / 4; block += kLanes) {
        uint32_t a[kLanes], b[kLanes], c[kLanes], d[kLanes];
        for (uint32_t i = 0; i < kLanes; ++i) {
            a[i] = first[0];
            b[i] = first[1];
            c[i] = first[2] + block + i;
            d[i] = first[3];
        }
        PhiloxKey key = draw_key(seed);
        for (int round = 0; round < kPhiloxRounds; ++round, key = next_key(key))
            for (int i = 0; i < kLanes; ++i) {
                const uint64_t p = uint64_t{kPhiloxFirst} * a[i], q = uint64_t{kPhiloxSecond} * c[i];
                a[i] = static_cast<uint32_t>(q >> 32) ^ b[i] ^ key[0];
                b[i] = static_cast<uint32_t>(q);
                c[i] = static_cast<uint32_t>(p >> 32) ^ d[i] ^ key[1];
                d[i] = static_cast<uint32_t>(p);
            }
        uint32_t* to = out.data() + 4 * block;
        for (int i = 0; i < kLanes; ++i) {
            to[4 * i] = a[i];
            to[4 * i + 1] = b[i];
            to[4 * i + 2] = c[i];
            to[4 * i + 3] = d[i];
        }
    }
}

void fill_plain(NoiseChunk& out, uint64_t seed, uint64_t position, uint32_t chunk) {
    fill(out, seed, position, chunk);
}

#if defined(__x86_64__)
[[gnu::target("avx2"), gnu::optimize("O3")]] void fill_avx2(NoiseChunk& out, uint64_t seed, uint64_t position,
                                                          uint32_t chunk) {
    fill(out, seed, position, chunk);
}
[[gnu::target("avx512f,avx512dq"), gnu::optimize("O3")]] void fill_avx512(NoiseChunk& out, uint64_t seed,
                                                                        uint64_t position, uint32_t chunk) {
    fill(out, seed, position, chunk);
}
#endif

}  // namespace

FillNoise fill_noise() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return fill_avx512;
    if (__builtin_cpu_supports("avx2")) return fill_avx2;
#endif
    return fill_plain;
}

}  // namespace patchbay
