#include "weights/rounded_codes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

namespace patchbay::weights {
namespace {

// Four numbers at a time, for which every x86-64 and aarch64 has instructions; compilers leave the loops scalar at -O2.
using Floats = float __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(16)));
using Shorts = int16_t __attribute__((vector_size(16)));
using Bytes = int8_t __attribute__((vector_size(8)));
constexpr int64_t kLanes = 4, kMultiple = 8;  // numbers in a vector; that a group is padded to a multiple of
constexpr float kLeast = 0x1p-100f;  // of a group's largest number: its scale's inverse is finite

Floats load(const float* at) {
    Floats out;
    std::memcpy(&out, at, sizeof out);
    return out;
}

// The largest magnitude; of numbers that are not finite one of those.
float largest(const float* numbers, int64_t count) {
    Ints max_bits{};  // bits of positive floats are in the floats' order, NaN above all
    for (int64_t i = 0; i < count; i += kLanes) {
        const Ints bits = std::bit_cast<Ints>(load(numbers + i)) & 0x7fffffff;
        max_bits = bits > max_bits ? bits : max_bits;
    }
    return std::bit_cast<float>(std::max(std::max(max_bits[0], max_bits[1]), std::max(max_bits[2], max_bits[3])));
}

// To the nearest whole numbers, ties to even, for |x| < 2^22.
Floats nearest(Floats x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

Floats clamped(Floats x, float min_code, float max_code) {
    const Floats low = Floats{} + min_code, high = Floats{} + max_code;
    x = x < low ? low : x;
    return x > high ? high : x;
}

void write_codes(const float* numbers, int64_t count, float inverse, float min_code, float max_code, int8_t* codes) {
    const auto four = [&](int64_t i) {
        return __builtin_convertvector(clamped(nearest(load(numbers + i) * inverse), min_code, max_code), Ints);
    };
    for (int64_t i = 0; i < count; i += kMultiple) {
        const Ints a = four(i), b = four(i + kLanes);
        const Shorts both = __builtin_shufflevector(std::bit_cast<Shorts>(a), std::bit_cast<Shorts>(b), 0, 2, 4, 6, 8,
                                                    10, 12, 14);  // the low halves
        const Bytes bytes = __builtin_convertvector(both, Bytes);
        std::memcpy(codes + i, &bytes, sizeof bytes);
    }
}

// Into how many steps the largest number is divided. The codes' range is not symmetric, hence both signs; of 9 the
// outermost is cut off, which pays where it stands alone.
constexpr float kSteps[] = {7, 8, -8, 9, -9};
constexpr size_t kTried = std::size(kSteps);

struct Fit {  // of codes q to x = w / step
    float xq, qq;
    // The scale for these codes that leaves the least squared error, in steps.
    float scale() const { return qq > 0 ? xq / qq : 0; }
};

// All at once, so that sums do not wait for one another: one of each k.
template <size_t... k>
std::array<Fit, kTried> fits(const float* numbers, int64_t count, float max_magnitude, std::index_sequence<k...>) {
    Floats xq[kTried] = {}, qq[kTried] = {};
    const float inverses[kTried] = {kSteps[k] / max_magnitude...};
    const auto add = [](Floats w, float inverse, Floats& sum_xq, Floats& sum_qq) {
        const Floats x = w * inverse, q = clamped(nearest(x), -8, 7);
        sum_xq += x * q;
        sum_qq += q * q;
    };
    for (int64_t i = 0; i < count; i += kLanes) {
        const Floats w = load(numbers + i);
        (add(w, inverses[k], xq[k], qq[k]), ...);
    }
    return {Fit{xq[k][0] + xq[k][1] + xq[k][2] + xq[k][3], qq[k][0] + qq[k][1] + qq[k][2] + qq[k][3]}...};
}

// Calls round(numbers, count, their largest magnitude, codes) with a count that is a multiple of kMultiple.
template <class F>
float round_group(const float* numbers, int64_t count, int8_t* codes, F&& round) {
    const int64_t whole = (count + kMultiple - 1) / kMultiple * kMultiple;
    const auto padding = static_cast<size_t>(whole == count ? 0 : whole);
    std::vector<float> padded(padding, 0.0f);
    std::vector<int8_t> made(padding);
    if (whole != count) {
        std::copy_n(numbers, count, padded.begin());
        numbers = padded.data();
    }
    const float max_magnitude = largest(numbers, whole);
    if (max_magnitude >= kLeast && std::isfinite(max_magnitude)) {
        const float scale = round(numbers, whole, max_magnitude, whole == count ? codes : made.data());
        if (whole != count) std::copy_n(made.begin(), count, codes);
        return scale;
    }
    std::fill_n(codes, count, int8_t{0});
    return max_magnitude < kLeast ? 0 : max_magnitude;
}

}  // namespace

float round_to_int8(const float* numbers, int64_t count, int8_t* codes) {
    return round_group(numbers, count, codes, [](const float* w, int64_t n, float max_magnitude, int8_t* out) {
        write_codes(w, n, 127 / max_magnitude, -127, 127, out);
        return max_magnitude / 127;
    });
}

float round_to_int4(const float* numbers, int64_t count, int8_t* codes) {
    return round_group(numbers, count, codes, [](const float* w, int64_t n, float max_magnitude, int8_t* out) {
        const auto tried = fits(w, n, max_magnitude, std::make_index_sequence<kTried>());
        float steps = 0, gain = -1, scale = 0;
        for (size_t k = 0; k < kTried; ++k) {
            const float gained = tried[k].scale() * tried[k].xq / (kSteps[k] * kSteps[k]);  // of zeros' squared error
            if (gained <= gain) continue;
            gain = gained;
            steps = kSteps[k];
            scale = tried[k].scale() * max_magnitude / steps;
        }
        write_codes(w, n, steps / max_magnitude, -8, 7, out);
        return scale;
    });
}

void RoundedCodes::unpack(int64_t begin, int64_t end, CodeRows& out) const {
    Piece some = piece_;
    some.row += begin;
    some.rows = end - begin;
    const std::unique_ptr<float[]> numbers(new float[static_cast<size_t>(some.count())]); // not zeroed
    read_(some, numbers.get());
    const auto round = form_.dtype == PB_I4 ? round_to_int4 : round_to_int8;
    for (int64_t r = 0; r < some.rows; ++r) {
        if (scales_ == Scales::kOfRows) {
            const float scale = round(numbers.get() + r * some.cols, some.cols, out.codes_of(r));
            std::fill_n(out.scales_of(r), out.groups, scale);
            continue;
        }
        for (int64_t g = 0; g < out.groups; ++g) {
            const int64_t first = g * out.group, count = std::min<int64_t>(out.group, some.cols - first);
            out.scales_of(r)[g] = round(numbers.get() + r * some.cols + first, count, out.codes_of(r) + first);
        }
    }
}

}  // namespace patchbay::weights
