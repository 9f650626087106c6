#include "weights/dummy.hpp"

#include <cmath>

#include "patchbay/sdk/philox.hpp"
#include "weights/checkpoint.hpp"

namespace patchbay::weights {
namespace {

uint64_t fnv1a(std::string_view text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

}  // namespace

void fill_dummy_slice(uint64_t seed, std::string_view name, int64_t rows, int64_t cols, int64_t first, int64_t count,
                      float* out) {
    // A uniform value in [-w, w) has variance w²/3; 1/cols keeps the sum over cols inputs of size 1.
    const float centre = rows == 1 ? 1.0f : 0.0f;
    const float width = rows == 1 ? 0.02f : std::sqrt(3.0f / static_cast<float>(cols > 0 ? cols : 1));
    const float step = width * 0x1p-15f;
    const float lowest = centre - width + step / 2; // the middle of the first of 2^16 steps, so that the mean is exact
    const uint64_t position = fnv1a(name);
    // One Philox block gives eight values of 16 bits: enough for weights that mean nothing, and twice as fast.
    for (int64_t i = first; i < first + count;) {
        const PhiloxBlock block = draw(seed, position, Stream::kWeights, static_cast<uint32_t>(i / 8));
        for (int64_t lane = i % 8; lane < 8 && i < first + count; ++lane, ++i) {
            const uint32_t bits = block[static_cast<size_t>(lane / 2)] >> (16 * (lane % 2)) & 0xffffu;
            *out++ = lowest + step * static_cast<float>(bits);
        }
    }
}

void fill_dummy(uint64_t seed, std::string_view name, int64_t rows, int64_t cols, float* out) {
    fill_dummy_slice(seed, name, rows, cols, 0, rows * cols, out);
}

}  // namespace patchbay::weights
