// The random bits of many consecutive tokens at once, with vectors if the machine has them; the bits equal those of
// draw(). Used by standard.cpp.
#pragma once
#include <array>
#include <cstdint>

#include "patchbay/sdk/philox.hpp"

namespace patchbay {

constexpr uint32_t kNoiseTokens = 256; // of a chunk

using NoiseChunk = std::array<uint32_t, kNoiseTokens>;

// Bits of the tokens [chunk · kNoiseTokens, …): out[i] is draw(seed, position, kSample, token / 4)[token % 4].
using FillNoise = void (*)(NoiseChunk& out, uint64_t seed, uint64_t position, uint32_t chunk);
FillNoise fill_noise(); // for this machine

}  // namespace patchbay
