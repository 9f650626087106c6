#include "kernels/kv_codes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace patchbay::kernels::kv_codes_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

// As the format is written down: sign, four bits of exponent with a bias of 7, three of fraction.
double meaning_of(int code) {
    const int exponent = (code >> 3) & 15, fraction = code & 7;
    const double size = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
    return code & 0x80 ? -size : size;
}
bool is_nan(int code) { return (code & 0x7f) == 0x7f; }

TEST(Fp8, ReadsAll256Codes) {
    for (int code = 0; code < 256; ++code) {
        const float x = fp8_to_f32(uint8_t(code));
        if (is_nan(code)) {
            EXPECT_TRUE(std::isnan(x)) << code;
        } else {
            EXPECT_EQ(double(x), meaning_of(code)) << code;
        }
        EXPECT_EQ(std::signbit(x), code >= 0x80) << code;
    }
    EXPECT_EQ(fp8_to_f32(0x7e), 448.0f);
}

TEST(Fp8, WritesEachNumberThatItReadsAsItsCode) {
    for (int code = 0; code < 256; ++code) EXPECT_EQ(f32_to_fp8(fp8_to_f32(uint8_t(code))), code);
}

TEST(Fp8, RoundsToTheNearestAndTiesToTheEvenCode) {
    for (const int sign : {0, 0x80})
        for (int code = 0; code < 0x7e; ++code) {
            const auto low = float(meaning_of(sign | code)), high = float(meaning_of(sign | (code + 1)));
            const float middle = (low + high) / 2; // exact
            EXPECT_EQ(f32_to_fp8(std::nextafter(middle, low)), sign | code);
            EXPECT_EQ(f32_to_fp8(middle), sign | (code % 2 ? code + 1 : code));
            EXPECT_EQ(f32_to_fp8(std::nextafter(middle, high)), sign | (code + 1));
        }
}

TEST(Fp8, SaturatesAndKeepsNaN) {
    for (const float much : {448.1f, 464.0f, 480.0f, 1e9f, std::numeric_limits<float>::max(), kInfinity}) {
        EXPECT_EQ(f32_to_fp8(much), 0x7e) << much;
        EXPECT_EQ(f32_to_fp8(-much), 0xfe) << much;
    }
    EXPECT_EQ(f32_to_fp8(kNaN), 0x7f);
    EXPECT_EQ(f32_to_fp8(-kNaN), 0xff);
    EXPECT_EQ(f32_to_fp8(std::numeric_limits<float>::denorm_min()), 0);
    EXPECT_EQ(f32_to_fp8(-0.0f), 0x80);
}

TEST(KvCodes, AreTheNearestMultiplesOfTheScale) {
    std::vector<float> x;
    for (int i = -200; i <= 200; ++i) x.push_back(float(i) * 0.0137f);
    std::vector<uint8_t> codes(x.size());
    const float scale = to_codes(PB_I8, x.data(), int64_t(x.size()), codes.data());
    EXPECT_FLOAT_EQ(scale, 200 * 0.0137f / 127);
    for (size_t i = 0; i < x.size(); ++i)
        EXPECT_LE(std::abs(from_code(PB_I8, codes[i]) * scale - x[i]), scale * 0.50001f) << x[i];
    EXPECT_EQ(from_code(PB_I8, codes.front()), -127);
    EXPECT_EQ(from_code(PB_I8, codes.back()), 127);
}

TEST(KvCodes, OfFp8AreWithinASixteenthOfEachNumber) {
    std::vector<float> x;
    for (int i = 1; i <= 300; ++i) x.push_back((i % 2 ? 1.0f : -1.0f) * std::pow(1.03f, float(i)));
    std::vector<uint8_t> codes(x.size());
    const float scale = to_codes(PB_FP8, x.data(), int64_t(x.size()), codes.data());
    for (size_t i = 0; i < x.size(); ++i)
        EXPECT_LE(std::abs(from_code(PB_FP8, codes[i]) * scale - x[i]),
                  std::max(std::abs(x[i]) / 16, scale * 0x1p-10f) * 1.0001f);
    EXPECT_EQ(std::abs(from_code(PB_FP8, codes.back())), 448);
}

TEST(KvCodes, OfARowWithoutAnythingAreZero) {
    for (const pb_dtype kv : {PB_FP8, PB_I8})
        for (const float tiny : {0.0f, -0.0f, std::numeric_limits<float>::denorm_min(), 1e-38f}) {
            const float x[] = {tiny, -tiny, 0};
            uint8_t codes[3] = {1, 2, 3};
            EXPECT_EQ(to_codes(kv, x, 3, codes), 0);
            for (const uint8_t code : codes) EXPECT_EQ(from_code(kv, code), 0);
        }
}

TEST(KvCodes, ReachAlmostTheEndsOfWhatFloatsCanBe) {
    for (const pb_dtype kv : {PB_FP8, PB_I8})
        for (const float size : {1e38f, 1e-29f}) {
            const float x[] = {size, -size, size / 2};
            uint8_t codes[3];
            const float scale = to_codes(kv, x, 3, codes);
            for (int i = 0; i < 3; ++i) EXPECT_NEAR(from_code(kv, codes[i]) * scale / size, x[i] / size, 0.01);
        }
}

// One such number, which no scale fits, must not become a finite one.
TEST(KvCodes, OfARowThatIsNotFiniteReadAsNaN) {
    for (const pb_dtype kv : {PB_FP8, PB_I8})
        for (const float bad : {kNaN, -kNaN, kInfinity, -kInfinity}) {
            const float x[] = {1, bad, 3};
            uint8_t codes[3] = {1, 2, 3};
            EXPECT_TRUE(std::isnan(to_codes(kv, x, 3, codes)));
            for (const uint8_t code : codes) EXPECT_EQ(code, 0);
        }
}

}  // namespace
}  // namespace patchbay::kernels::kv_codes_test
