#include <algorithm>
#include <numeric>

#include "guarded.hpp"

namespace patchbay::kernels::quantised_test {
namespace {

struct QuantisedShape {
    int64_t rows, cols, group;
    pb_dtype dtype = PB_I8;
    bool offsets = false, order = false, bias = false;
    bool row_scales = false; // all groups of a row have one scale
    int64_t rounded_group() const { return row_scales ? cols : group; } // columns of x that share a scale
};

// A weight as it crosses, and what it stands for.
struct QuantisedWeight {
    QuantisedWeight(Random& random, const QuantisedShape& s)
        : shape(s), groups((s.cols + s.group - 1) / s.group) {
        const int64_t low = s.dtype == PB_I8 ? -128 : -8, high = s.dtype == PB_I8 ? 127 : 7;
        for (int64_t i = 0; i < s.rows * s.cols; ++i) codes.push_back(int(random.between(low, high)));
        for (const float v : random.values(s.rows * groups)) scales.push_back(half(0.01f * (0.2f + std::abs(v))));
        if (s.row_scales)
            for (int64_t i = 0; i < s.rows * groups; ++i) scales[size_t(i)] = scales[size_t(i / groups * groups)];
        if (s.offsets)
            for (const float v : random.values(s.rows * groups)) offsets.push_back(half(0.05f * v));
        if (s.bias) bias = random.values(s.rows);
        if (s.order) {
            order.resize(size_t(s.cols));
            std::iota(order.begin(), order.end(), 0);
            for (int64_t i = s.cols - 1; i > 0; --i) std::swap(order[size_t(i)], order[size_t(random.between(0, i))]);
        }
    }

    static float half(float v) { // as f16 holds it
        const int unit = v == 0 ? 0 : std::ilogb(v) - 10;
        return std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit);
    }

    float value(int64_t r, int64_t c) const { // of column c, not of x's column
        const size_t g = size_t(r * groups + c / shape.group);
        return float(codes[size_t(r * shape.cols + c)]) * scales[g] + (offsets.empty() ? 0 : offsets[g]);
    }
    int64_t column_of_x(int64_t c) const { return order.empty() ? c : order[size_t(c)]; }

    PackedMatrix pack(const Machine& machine) const {
        const int64_t row_bytes = shape.dtype == PB_I8 ? shape.cols : (shape.cols + 1) / 2;
        std::vector<uint8_t> bytes(size_t(shape.rows * row_bytes));
        for (int64_t r = 0; r < shape.rows; ++r)
            for (int64_t c = 0; c < shape.cols; ++c) {
                const int code = codes[size_t(r * shape.cols + c)];
                if (shape.dtype == PB_I8) bytes[size_t(r * row_bytes + c)] = uint8_t(code);
                else bytes[size_t(r * row_bytes + c / 2)] |= uint8_t((code & 15) << (c % 2 * 4));
            }
        const auto data = [](const auto& v) { return v.empty() ? nullptr : v.data(); };
        return PackedMatrix::pack(machine, {.dtype = shape.dtype,
                                            .rows = shape.rows,
                                            .cols = shape.cols,
                                            .codes = bytes.data(),
                                            .group = shape.group,
                                            .scales = scales.data(),
                                            .offsets = data(offsets),
                                            .order = data(order),
                                            .bias = data(bias)});
    }

    QuantisedShape shape;
    int64_t groups;
    std::vector<int> codes;
    std::vector<float> scales, offsets, bias;
    std::vector<int32_t> order;
};

std::vector<float> run(const Machine& machine, const PackedMatrix& w, const std::vector<float>& x) {
    const int64_t tokens = int64_t(x.size()) / w.cols();
    Poisoned in(tokens, w.cols(), 5), out(tokens, w.rows());
    in.fill(x);
    linear(machine, out.view(), in.view(), w);
    EXPECT_TRUE(out.intact());
    return out.values();
}

struct Expected {
    std::vector<double> value, max_error;
};

// In double; and how far from it rounding x to 8 bits may lead: half a code's worth of each |w|.
Expected exact(const QuantisedWeight& w, const std::vector<float>& x) {
    const auto [rows, cols, group] = std::tuple(w.shape.rows, w.shape.cols, w.shape.rounded_group());
    Expected out;
    for (int64_t t = 0; t < int64_t(x.size()) / cols; ++t)
        for (int64_t r = 0; r < rows; ++r) {
            double sum = w.bias.empty() ? 0 : w.bias[size_t(r)], error = 1e-5;
            for (int64_t g = 0; g * group < cols; ++g) {
                double max_input = 0, size = 0;
                for (int64_t c = g * group; c < std::min((g + 1) * group, cols); ++c) {
                    const double in = x[size_t(t * cols + w.column_of_x(c))];
                    sum += in * w.value(r, c);
                    size += std::abs(w.value(r, c));
                    max_input = std::max(max_input, std::abs(in));
                }
                error += size * max_input * (0.5 / 127 * 1.001);
            }
            out.value.push_back(sum);
            out.max_error.push_back(error);
        }
    return out;
}

// By whole numbers within a group, as it is documented; the sum over groups in double.
std::vector<double> rounded(const QuantisedWeight& w, const std::vector<float>& x) {
    const auto [rows, cols, group] = std::tuple(w.shape.rows, w.shape.cols, w.shape.rounded_group());
    std::vector<double> out;
    for (int64_t t = 0; t < int64_t(x.size()) / cols; ++t)
        for (int64_t r = 0; r < rows; ++r) {
            double sum = w.bias.empty() ? 0 : w.bias[size_t(r)];
            for (int64_t g = 0; g * group < cols; ++g) {
                const int64_t end = std::min((g + 1) * group, cols);
                float max_input = 0;
                for (int64_t c = g * group; c < end; ++c)
                    max_input = std::max(max_input, std::abs(x[size_t(t * cols + w.column_of_x(c))]));
                if (max_input == 0) continue;
                int64_t whole = 0, codes = 0;
                for (int64_t c = g * group; c < end; ++c) {
                    const auto code =
                        int64_t(std::nearbyint(x[size_t(t * cols + w.column_of_x(c))] * (127.0f / max_input)));
                    whole += code * w.codes[size_t(r * cols + c)];
                    codes += code;
                }
                const size_t at = size_t(r * w.groups + g * group / w.shape.group);
                sum += double(max_input / 127.0f) * (double(whole) * w.scales[at] +
                                                double(codes) * (w.offsets.empty() ? 0 : w.offsets[at]));
            }
            out.push_back(sum);
        }
    return out;
}

void expect_right(const QuantisedWeight& w, const std::vector<float>& x, const std::vector<float>& got) {
    const Expected want = exact(w, x);
    const std::vector<double> close = rounded(w, x);
    ASSERT_EQ(got.size(), want.value.size());
    for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_LE(std::abs(got[i] - want.value[i]), want.max_error[i]) << "element " << i;
        ASSERT_LE(std::abs(got[i] - close[i]), 1e-6 * (want.max_error[i] * 254 + std::abs(close[i])))
            << "element " << i << " is " << got[i] << ", by whole numbers " << close[i];
    }
}

class Quantised : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, Quantised, each_isa(), isa_test_name);

TEST_P(Quantised, AgreesWithTheDequantisedProductOnAnyShape) {
    Random random(11);
    const Machine machine{GetParam(), {}};
    constexpr int64_t kGroups[] = {16, 32, 64, 128};
    for (int i = 0; i < 96; ++i) {
        const QuantisedShape shape{random.between(1, 100), random.between(1, 400), kGroups[i % 4],
                                   i / 4 % 2 ? PB_I4 : PB_I8, i / 8 % 2 == 1, i / 16 % 2 == 1, i / 32 % 2 == 1};
        const int64_t tokens = random.between(1, i % 3 ? 9 : 40);
        SCOPED_TRACE(testing::Message() << "case " << i << ": " << tokens << " × " << shape.rows << " × " << shape.cols
                                        << " in groups of " << shape.group << ", " << dtype_name(shape.dtype));
        const QuantisedWeight w(random, shape);
        const std::vector<float> x = random.values(tokens * shape.cols);
        expect_right(w, x, run(machine, w.pack(machine), x));
        if (HasFatalFailure()) return;
    }
}

TEST_P(Quantised, AgreesWithItWhereRowsFillTilesAndKIsDeep) {
    Random random(23);
    const Machine machine{GetParam(), {}};
    for (const pb_dtype dtype : {PB_I8, PB_I4})
        for (const int64_t group : {16, 32, 64, 128})
            for (const bool offsets : {false, true}) {
                SCOPED_TRACE(testing::Message() << dtype_name(dtype) << " in groups of " << group << ", " << offsets);
                const QuantisedWeight w(random, {45, 1100, group, dtype, offsets, group == 64, offsets});
                const std::vector<float> x = random.values(29 * 1100);
                expect_right(w, x, run(machine, w.pack(machine), x));
                if (HasFatalFailure()) return;
            }
}

TEST_P(Quantised, RoundsXByRowsWhereTheWeightHasAScaleForEachRow) {
    Random random(25);
    const Machine machine{GetParam(), {}};
    constexpr int64_t kGroups[] = {16, 32, 64, 128};
    for (int i = 0; i < 64; ++i) {
        QuantisedShape shape{random.between(1, 100), random.between(129, i % 8 ? 700 : 2500), kGroups[i % 4]};
        shape.order = i / 4 % 2 == 1;
        shape.bias = i / 8 % 2 == 1;
        shape.row_scales = true;
        const int64_t tokens = i % 16 == 15 ? 170 : random.between(1, i % 3 ? 9 : 60);
        SCOPED_TRACE(testing::Message() << i << ": " << tokens << " × " << shape.rows << " × " << shape.cols);
        const QuantisedWeight w(random, shape);
        const std::vector<float> x = random.values(tokens * shape.cols);
        expect_right(w, x, run(machine, w.pack(machine), x));
        if (HasFatalFailure()) return;
    }
}

TEST_P(Quantised, GivesARowOfAWeightWithRowScalesTheSameBitsInAnyBatchAndAtAllLevels) {
    Random random(26);
    const Machine alone{GetParam(), {}}, lowest{Isa::Plain, {}};
    for (const int64_t cols : {467, 4100}) {
        QuantisedShape shape{301, cols, 128};
        shape.bias = shape.row_scales = true;
        const QuantisedWeight w(random, shape);
        const PackedMatrix packed = w.pack(alone);
        const int64_t rows = cols == 467 ? 300 : 147;
        const std::vector<float> x = random.values(rows * cols), all = run(alone, packed, x);
        for (const uint32_t threads : {1u, 2u, 7u})
            for (const int64_t count : {1, 2, 3, 4, 5, 11, 12, 13, 16, 17, 25, 33, 100}) {
                const Machine machine{GetParam(), backwards_crew(threads)};
                for (int64_t from = 0; from + count <= rows; from += 47) {
                    const std::vector<float> got =
                        run(machine, packed, {x.begin() + from * cols, x.begin() + (from + count) * cols});
                    ASSERT_TRUE(same_bits(got.data(), all.data() + from * 301, count * 301))
                        << count << " rows from " << from << " on " << threads;
                }
            }
        const std::vector<float> some(x.begin(), x.begin() + 14 * cols); // no product is rounded before it is added
        const std::vector<float> want = run(lowest, w.pack(lowest), some);
        ASSERT_TRUE(same_bits(want.data(), all.data(), 14 * 301));
    }
}

TEST_P(Quantised, AddsWholeRowsOfTheGreatestCodesUpToTheLongestThatFit) {
    Random random(27);
    const Machine machine{GetParam(), {}};
    for (const int64_t cols : {1 << 17, (1 << 17) + 128}) { // the second in groups
        QuantisedShape shape{3, cols, 128};
        shape.row_scales = true;
        QuantisedWeight w(random, shape);
        for (size_t i = 0; i < w.codes.size(); ++i) w.codes[i] = i / size_t(cols) == 1 ? 127 : -128;
        const std::vector<float> x(size_t(7 * cols), 3.0f);
        for (const int64_t tokens : {1, 7}) {
            const std::vector<float> rows(x.begin(), x.begin() + tokens * cols);
            const std::vector<float> got = run(machine, w.pack(machine), rows);
            for (int64_t i = 0; i < tokens * 3; ++i) {
                const auto row = size_t(i % 3);
                const double want = 3.0 * double(cols) * w.codes[row * size_t(cols)] * w.scales[row * size_t(w.groups)];
                ASSERT_NEAR(got[size_t(i)], want, 1e-3 * std::abs(want)) << i << " of " << tokens << " by " << cols;
            }
        }
    }
}

TEST_P(Quantised, TakesTheGreatestWholeSums) {
    Random random(24);
    const Machine machine{GetParam(), {}};
    for (const pb_dtype dtype : {PB_I8, PB_I4})
        for (const int64_t group : {16, 32, 64, 128}) {
            QuantisedWeight w(random, {33, 2 * group, group, dtype, true});
            for (size_t i = 0; i < w.codes.size(); ++i) {
                const bool least = i / size_t(w.shape.cols) % 2;
                w.codes[i] = dtype == PB_I8 ? (least ? -128 : 127) : (least ? -8 : 7);
            }
            std::vector<float> x(size_t(17 * w.shape.cols));
            for (size_t i = 0; i < x.size(); ++i) x[i] = i / size_t(w.shape.cols) % 2 ? -3.0f : 3.0f;
            for (const size_t tokens : {1, 3, 17}) {
                const std::vector<float> rows(x.begin(), x.begin() + long(tokens) * w.shape.cols);
                expect_right(w, rows, run(machine, w.pack(machine), rows));
                if (HasFatalFailure()) return;
            }
        }
}

TEST_P(Quantised, GivesARowTheSameBitsAloneAndInAnyBatchOnAnyNumberOfThreads) {
    Random random(12);
    const Machine alone{GetParam(), {}};
    for (const pb_dtype dtype : {PB_I8, PB_I4})
        for (const int64_t group : {16, 32, 64, 128}) {
            const QuantisedWeight w(random, {300, 467, group, dtype, group != 64, group == 32, true});
            const PackedMatrix packed = w.pack(alone);
            const std::vector<float> x = random.values(512 * 467), all = run(alone, packed, x);
            for (const uint32_t threads : {1u, 2u, 7u})
                for (const int64_t count : {1, 2, 3, 4, 5, 6, 16, 17, 33, 200}) {
                    const Machine machine{GetParam(), backwards_crew(threads)};
                    for (int64_t from = 0; from + count <= 512; from += 101) {
                        const std::vector<float> got =
                            run(machine, packed, {x.begin() + from * 467, x.begin() + (from + count) * 467});
                        ASSERT_TRUE(same_bits(got.data(), all.data() + from * 300, count * 300))
                            << count << " rows from " << from << " in groups of " << group << " on " << threads;
                    }
                }
        }
}

TEST_P(Quantised, GivesARowTheSameBitsWhereKAndRowsAreMoreThanStayInACache) {
    Random random(20);
    const Machine machine{GetParam(), {}};
    const std::vector<float> x = random.values(301 * 4100);
    for (const pb_dtype dtype : {PB_I8, PB_I4})
        for (const int64_t group : {16, 32, 64, 128}) {
            const QuantisedWeight w(random, {40, 4100, group, dtype, (group == 32) == (dtype == PB_I8), false, true});
            const PackedMatrix packed = w.pack(machine);
            const std::vector<float> all = run(machine, packed, x);
            for (const int64_t row : {0, 5, 6, 254, 255, 256, 299, 300}) {
                const std::vector<float> got =
                    run(machine, packed, {x.begin() + row * 4100, x.begin() + (row + 1) * 4100});
                ASSERT_TRUE(same_bits(got.data(), all.data() + row * 40, 40)) << row << " in groups of " << group;
            }
        }
}

TEST_P(Quantised, GivesTheBitsOfOtherLevelsThatFuseMultiplyAdds) {
    if (GetParam() == Isa::Plain) GTEST_SKIP() << "it rounds products";
    Random random(21);
    for (const pb_dtype dtype : {PB_I8, PB_I4})
        for (const int64_t group : {16, 32, 64, 128})
            for (const bool offsets : {false, true}) {
                const QuantisedWeight w(random, {75, 1300, group, dtype, offsets, group == 64, group == 16});
                for (const int64_t tokens : {1, 2, 3, 4, 5, 6, 7, 8, 12, 53}) {
                    const std::vector<float> x = random.values(tokens * 1300);
                    const Machine level{GetParam(), {}}, lowest{Isa::Avx2, {}};
                    ASSERT_TRUE(run(level, w.pack(level), x) == run(lowest, w.pack(lowest), x))
                        << tokens << " " << group << " " << offsets;
                }
            }
}

TEST_P(Quantised, GivesZerosTheSameSignsInAnyBatchWhereProductsVanish) {
    Random random(22);
    const Machine machine{GetParam(), {}};
    for (const float x_unit : {1e-38f, 1e-36f, 1e-34f, 1e-32f, 1e-30f})
        for (const bool offsets : {false, true}) {
            QuantisedWeight w(random, {90, 200, 32, PB_I8, offsets});
            for (size_t i = 0; i < w.scales.size(); ++i) { // of both signs, most of them tiny
                w.scales[i] *= i % 3 ? 0x1p-30f : 1;
                if (i / size_t(w.groups) % 2) w.scales[i] *= -1;
            }
            for (int64_t r = 0; r < 60; ++r) // whole sums of 0, and single codes
                for (int64_t c = 0; c < 200; ++c) w.codes[size_t(r * 200 + c)] = c == r ? 1 : 0;
            const PackedMatrix packed = w.pack(machine);
            std::vector<float> x = random.values(13 * 200);
            for (float& v : x) v *= x_unit;
            const std::vector<float> all = run(machine, packed, x);
            for (int64_t row = 0; row < 13; ++row) {
                const std::vector<float> got =
                    run(machine, packed, {x.begin() + row * 200, x.begin() + (row + 1) * 200});
                ASSERT_TRUE(same_bits(got.data(), all.data() + row * 90, 90)) << x_unit << " " << row;
            }
        }
}

TEST_P(Quantised, GivesTheSameBitsByAPoolOfThreads) {
    Random random(13);
    const QuantisedWeight w(random, {700, 300, 32, PB_I4, true});
    const PackedMatrix packed = w.pack({GetParam(), {}});
    for (const int64_t tokens : {1, 130}) {
        const std::vector<float> x = random.values(tokens * 300), want = run({GetParam(), {}}, packed, x);
        for (const uint32_t threads : {2u, 3u}) {
            ThreadPool pool(threads);
            EXPECT_TRUE(run({GetParam(), crew_of(pool.service())}, packed, x) == want) << threads;
        }
    }
}

TEST_P(Quantised, GivesRowsOfZerosTheBiasAlone) {
    Random random(14);
    const Machine machine{GetParam(), {}};
    const QuantisedWeight w(random, {50, 100, 32, PB_I8, true, false, true});
    const PackedMatrix packed = w.pack(machine);
    for (const int64_t tokens : {1, 20}) {
        std::vector<float> x(size_t(tokens * 100), 0.0f);
        x[3] = 1e-42f; // as good as nothing
        const std::vector<float> got = run(machine, packed, x);
        for (int64_t i = 0; i < tokens * 50; ++i) ASSERT_EQ(got[size_t(i)], w.bias[size_t(i % 50)]);
    }
}

TEST_P(Quantised, MakesAllOfARowNaNByAScaleForEachRowToo) {
    Random random(28);
    const Machine machine{GetParam(), {}};
    QuantisedShape shape{50, 300, 32};
    shape.row_scales = true;
    const QuantisedWeight w(random, shape);
    const PackedMatrix packed = w.pack(machine);
    for (const int64_t tokens : {3, 20}) {
        std::vector<float> x = random.values(tokens * 300);
        const std::vector<float> want = run(machine, packed, x);
        x[1 * 300 + 270] = std::numeric_limits<float>::infinity();
        const std::vector<float> got = run(machine, packed, x);
        for (int64_t i = 0; i < tokens * 50; ++i) {
            if (i / 50 == 1) ASSERT_TRUE(std::isnan(got[size_t(i)])) << i;
            else ASSERT_EQ(got[size_t(i)], want[size_t(i)]) << i;
        }
    }
}

TEST_P(Quantised, MakesAllOfARowNaNThatHoldsNaNOrInfinityAndNoOther) {
    Random random(15);
    const Machine machine{GetParam(), {}};
    const QuantisedWeight w(random, {50, 100, 16, PB_I4, true});
    const PackedMatrix packed = w.pack(machine);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const int64_t tokens : {3, 20})
        for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
            std::vector<float> x = random.values(tokens * 100);
            const std::vector<float> want = run(machine, packed, x);
            x[1 * 100 + 37] = bad;
            const std::vector<float> got = run(machine, packed, x);
            for (int64_t i = 0; i < tokens * 50; ++i) {
                if (i / 50 == 1) ASSERT_TRUE(std::isnan(got[size_t(i)])) << i;
                else ASSERT_EQ(got[size_t(i)], want[size_t(i)]) << i;
            }
        }
}

TEST_P(Quantised, TakesValuesAndScalesFarFromOne) {
    Random random(16);
    const Machine machine{GetParam(), {}};
    for (const float x_unit : {1e-30f, 1.0f, 1e30f})
        for (const float scale_unit : {0x1p-100f, 0x1p-20f, 0x1p20f}) {
            QuantisedWeight w(random, {40, 70, 32, PB_I8, true});
            for (std::vector<float>* values : {&w.scales, &w.offsets})
                for (float& v : *values) v *= scale_unit;
            const PackedMatrix packed = w.pack(machine);
            std::vector<float> x = random.values(6 * 70);
            for (float& v : x) v *= x_unit;
            const std::vector<float> got = run(machine, packed, x);
            const std::vector<double> want = rounded(w, x);
            double max_output = 0;
            for (const double v : want) max_output = std::max(max_output, std::abs(v));
            if (max_output > 1e38) continue;
            for (size_t i = 0; i < got.size(); ++i)
                ASSERT_NEAR(got[i], want[i], 1e-5 * max_output + 1e-35) << x_unit << " by " << scale_unit;
        }
}

TEST_P(Quantised, KeepsEveryScaleThatAHalfFloatHolds) {
    const Machine machine{GetParam(), {}};
    for (const float max_scale : {65504.0f, 1.0f, 0x1p-24f}) {
        std::vector<float> scales = {max_scale};
        for (float v = 0x1p-24f; v < max_scale; v *= 1.3f) { // in f16: eleven bits, or whole multiples of 2⁻²⁴
            const int unit = std::max(std::ilogb(v) - 10, -24);
            scales.push_back(std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit));
        }
        const auto rows = int64_t(scales.size());
        const std::vector<int8_t> codes(scales.size(), -1);
        const PackedMatrix w = PackedMatrix::pack(machine, {.dtype = PB_I8,
                                                            .rows = rows,
                                                            .cols = 1,
                                                            .codes = codes.data(),
                                                            .group = 16,
                                                            .scales = scales.data()});
        for (int64_t r = 0; r < rows; ++r) {
            float value = 0;
            w.read_row(r, &value);
            ASSERT_EQ(value, -scales[size_t(r)]) << "row " << r;
        }
    }
}

TEST_P(Quantised, ReadsTheRowsOfATiedEmbeddingOutOfThePackedWeight) {
    Random random(17);
    const Machine machine{GetParam(), {}};
    for (const pb_dtype dtype : {PB_I8, PB_I4}) {
        const QuantisedWeight w(random, {77, 51, 16, dtype, dtype == PB_I4, true});
        const PackedMatrix packed = w.pack(machine);
        const std::vector<int32_t> ids = {0, 76, 3, 3, 64};
        Poisoned out(5, 51);
        embedding(machine, out.view(), packed, ids.data());
        EXPECT_TRUE(out.intact());
        for (int64_t i = 0; i < 5; ++i)
            for (int64_t c = 0; c < 51; ++c)
                ASSERT_FLOAT_EQ(out.row(i)[w.column_of_x(c)], w.value(ids[size_t(i)], c)) << i << " " << c;
    }
}

TEST_P(Quantised, MultipliesTheRowsOfEachExpert) {
    Random random(18);
    const Machine machine{GetParam(), {}};
    constexpr int64_t kTokens = 21, kChosen = 2, kRows = 40, kCols = 96;
    std::vector<QuantisedWeight> weights;
    std::vector<PackedMatrix> packed;
    for (int e = 0; e < 3; ++e) weights.push_back({random, {kRows, kCols, 32, e == 1 ? PB_I4 : PB_I8}});
    for (const QuantisedWeight& w : weights) packed.push_back(w.pack(machine));
    const PackedMatrix* experts[] = {&packed[0], &packed[1], &packed[2]};
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < kTokens * kChosen; ++i) ids.push_back(int32_t(random.between(0, 2)));
    std::vector<float> x = random.values(kTokens * kCols), out(size_t(kTokens * kChosen * kRows));
    Scratch rows;
    expert_linear(machine, rows, tensor(out.data(), PB_F32, {kTokens, kChosen, kRows}),
                  tensor(x.data(), PB_F32, {kTokens, 1, kCols}), experts, 3, ids.data());
    for (int64_t p = 0; p < kTokens * kChosen; ++p) {
        const std::vector<float> in(x.begin() + p / kChosen * kCols, x.begin() + (p / kChosen + 1) * kCols);
        const std::vector<float> want = run(machine, packed[size_t(ids[size_t(p)])], in);
        ASSERT_TRUE(same_bits(out.data() + p * kRows, want.data(), kRows)) << p;
    }
}

TEST_P(Quantised, TakesAboutTheMemoryOfItsCodes) {
    Random random(19);
    const Machine machine{GetParam(), {}};
    const QuantisedWeight eight(random, {256, 512, 32, PB_I8}), four(random, {256, 512, 32, PB_I4});
    EXPECT_EQ(eight.pack(machine).bytes(), 256u * 512 + 256 * 16 * 2);
    QuantisedShape whole{256, 512, 32};
    whole.row_scales = true;
    EXPECT_EQ(QuantisedWeight(random, whole).pack(machine).bytes(), 256u * 512 + 256 * 2);
    EXPECT_EQ(four.pack(machine).bytes(), 256u * 512 / 2 + 256 * 16 * 2);
}

}  // namespace
}  // namespace patchbay::kernels::quantised_test
