#include "weights/dummy.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "patchbay/sdk/philox.hpp"

namespace patchbay::weights {
namespace {

uint64_t fnv1a(std::string_view text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

constexpr size_t kBlocks = 32;  // of Philox at a time: the compiler makes vectors of loops that it does not unroll
using Blocks = std::array<std::array<uint32_t, kBlocks>, 4>;  // by word, then by block

// draw(seed, position, Stream::kWeights, index + i) for each i below kBlocks.
Blocks draw_blocks(uint64_t seed, uint64_t position, uint32_t index) {
    Blocks x;
    for (size_t i = 0; i < kBlocks; ++i) {
        x[0][i] = static_cast<uint32_t>(position);
        x[1][i] = static_cast<uint32_t>(position >> 32) ^ static_cast<uint32_t>(Stream::kWeights) << 24;
        x[2][i] = index + static_cast<uint32_t>(i);
        x[3][i] = 0x50424159u;
    }
    auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u)
        for (size_t i = 0; i < kBlocks; ++i) {
            const uint64_t a = uint64_t{0xD2511F53} * x[0][i], b = uint64_t{0xCD9E8D57} * x[2][i];
            x[0][i] = static_cast<uint32_t>(b >> 32) ^ x[1][i] ^ key0;
            x[1][i] = static_cast<uint32_t>(b);
            x[2][i] = static_cast<uint32_t>(a >> 32) ^ x[3][i] ^ key1;
            x[3][i] = static_cast<uint32_t>(a);
        }
    return x;
}

}  // namespace

void fill_dummy(uint64_t seed, std::string_view name, int64_t rows, int64_t cols, int64_t first, int64_t count,
                float* out) {
    // A uniform value in [-w, w) has variance w²/3; 1/cols keeps the sum over cols inputs of size 1.
    const float centre = rows == 1 ? 1.0f : 0.0f;
    const float width = rows == 1 ? 0.02f : std::sqrt(3.0f / static_cast<float>(cols > 0 ? cols : 1));
    const float step = width * 0x1p-15f;
    const float lowest = centre - width + step / 2;  // the middle of the first of 2^16 steps, so that the mean is exact
    const uint64_t position = fnv1a(name);
    // One Philox block gives eight values of 16 bits: enough for weights that mean nothing, and twice as fast.
    constexpr int64_t kValues = 8 * kBlocks;
    std::array<std::array<float, kBlocks>, 8> lanes;  // of a block's values, each in turn
    std::array<float, kValues> made;                  // the same, in order
    for (int64_t i = first; i < first + count;) {
        const Blocks blocks = draw_blocks(seed, position, static_cast<uint32_t>(i / 8));
        for (size_t word = 0; word < 4; ++word)
            for (size_t block = 0; block < kBlocks; ++block) {
                const auto low = static_cast<int>(blocks[word][block] & 0xffffu);
                const auto high = static_cast<int>(blocks[word][block] >> 16);
                lanes[2 * word][block] = lowest + step * static_cast<float>(low);
                lanes[2 * word + 1][block] = lowest + step * static_cast<float>(high);
            }
        for (size_t block = 0; block < kBlocks; ++block)
            for (size_t lane = 0; lane < 8; ++lane) made[block * 8 + lane] = lanes[lane][block];
        const int64_t n = std::min(kValues - i % 8, first + count - i);
        out = std::copy_n(made.begin() + i % 8, n, out);
        i += n;
    }
}

}  // namespace patchbay::weights
