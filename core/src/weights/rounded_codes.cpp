#include "weights/rounded_codes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace patchbay::weights {
namespace {

constexpr int64_t kLanes = 16;  // groups are whole multiples, but for a matrix's last; loops over it become vectors
constexpr int64_t kMostGroup = 128;
constexpr float kLeast = 0x1p-100f;  // of a group's largest number: its scale's inverse is finite

// The largest magnitude; of numbers that are not finite one of those.
float largest(const float* numbers, int64_t count) {
    std::array<int32_t, kLanes> most{};  // bits of positive floats are in the floats' order, NaN above all
    for (int64_t i = 0; i < count; i += kLanes)
        for (int64_t k = 0; k < kLanes; ++k) {
            const int32_t bits = std::bit_cast<int32_t>(numbers[i + k]) & 0x7fffffff;
            most[k] = bits > most[k] ? bits : most[k];
        }
    return std::bit_cast<float>(*std::max_element(most.begin(), most.end()));
}

// To the nearest whole number, ties to even, for |x| < 2^22.
float nearest(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

float clamped(float x, float least, float most) {
    x = x < least ? least : x;
    return x > most ? most : x;
}

void write_codes(const float* numbers, int64_t count, float inverse, float least, float most, int8_t* codes) {
    for (int64_t i = 0; i < count; i += kLanes)
        for (int64_t k = 0; k < kLanes; ++k)
            codes[i + k] = static_cast<int8_t>(
                static_cast<int32_t>(clamped(nearest(numbers[i + k] * inverse), least, most)));
}

struct Fit {  // of codes q to x = w / step
    float xq, qq;
    // The scale for these codes that leaves the least squared error, in steps.
    float scale() const { return qq > 0 ? xq / qq : 0; }
};

Fit fit(const float* numbers, int64_t count, float inverse) {
    std::array<float, kLanes> xq{}, qq{};
    for (int64_t i = 0; i < count; i += kLanes)
        for (int64_t k = 0; k < kLanes; ++k) {
            const float x = numbers[i + k] * inverse, q = clamped(nearest(x), -8, 7);
            xq[k] += x * q;
            qq[k] += q * q;
        }
    Fit out{0, 0};
    for (int64_t k = 0; k < kLanes; ++k) {
        out.xq += xq[k];
        out.qq += qq[k];
    }
    return out;
}

// Calls round(numbers, count, their largest magnitude, codes) with a count that is a multiple of kLanes.
template <class F>
float round_group(const float* numbers, int64_t count, int8_t* codes, F&& round) {
    std::array<float, kMostGroup> padded;
    std::array<int8_t, kMostGroup> made;
    const int64_t whole = (count + kLanes - 1) / kLanes * kLanes;
    if (whole != count) {
        std::fill(std::copy_n(numbers, count, padded.begin()), padded.end(), 0.0f);
        numbers = padded.data();
    }
    const float most = largest(numbers, whole);
    if (most >= kLeast && std::isfinite(most)) {
        const float scale = round(numbers, whole, most, whole == count ? codes : made.data());
        if (whole != count) std::copy_n(made.begin(), count, codes);
        return scale;
    }
    std::fill_n(codes, count, int8_t{0});
    return most < kLeast ? 0 : most;
}

}  // namespace

float round_to_int8(const float* numbers, int64_t count, int8_t* codes) {
    return round_group(numbers, count, codes, [](const float* w, int64_t n, float most, int8_t* out) {
        write_codes(w, n, 127 / most, -127, 127, out);
        return most / 127;
    });
}

float round_to_int4(const float* numbers, int64_t count, int8_t* codes) {
    return round_group(numbers, count, codes, [](const float* w, int64_t n, float most, int8_t* out) {
        // Into how many steps the largest number is divided. The codes' range is not symmetric, hence both signs; of 9
        // the outermost is cut off, which pays where it stands alone.
        static constexpr float kSteps[] = {7, 8, -8, 9, -9};
        float steps = 0, gain = -1, scale = 0;
        for (const float tried : kSteps) {
            const Fit found = fit(w, n, tried / most);
            const float gained = found.scale() * found.xq / (tried * tried);  // of the squared error of zeros
            if (gained <= gain) continue;
            gain = gained;
            steps = tried;
            scale = found.scale() * most / tried;
        }
        write_codes(w, n, steps / most, -8, 7, out);
        return scale;
    });
}

void RoundedCodes::unpack(int64_t begin, int64_t end, CodeRows& out) const {
    Piece some = piece_;
    some.row += begin;
    some.rows = end - begin;
    std::vector<float> numbers(static_cast<size_t>(some.count()));
    read_(some, numbers.data());
    const auto round = form_.dtype == PB_I4 ? round_to_int4 : round_to_int8;
    for (int64_t r = 0; r < some.rows; ++r)
        for (int64_t g = 0; g < out.groups; ++g) {
            const int64_t first = g * out.group, count = std::min<int64_t>(out.group, some.cols - first);
            out.scales_of(r)[g] =
                round(numbers.data() + r * some.cols + first, count, out.codes_of(r) + first);
        }
}

}  // namespace patchbay::weights
