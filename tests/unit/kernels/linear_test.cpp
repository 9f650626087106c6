#include "guarded.hpp"

#include <cstring>
#include <memory>
#include <vector>

#include "kernels/reference.hpp"

namespace patchbay::kernels::linear_test {
namespace {

struct LinearCase {
    LinearCase(Random& random, const Machine& machine, int64_t token_count, int64_t row_count, int64_t col_count,
               pb_dtype dtype, bool with_bias)
        : tokens(token_count), rows(row_count), cols(col_count), x(random.values(tokens * cols)),
          w(random.values(rows * cols)), bias(random.values(rows)) {
        if (dtype == PB_BF16) {
            w = rounded_to_bf16(w);
            bias = rounded_to_bf16(bias);
            if (machine.isa == Isa::Amx) x = rounded_to_bf16(x); // as the level does
        }
        const std::vector<uint16_t> w16 = to_bf16(w), bias16 = to_bf16(bias);
        const void* w_data = dtype == PB_BF16 ? static_cast<const void*>(w16.data()) : w.data();
        const void* bias_data = dtype == PB_BF16 ? static_cast<const void*>(bias16.data()) : bias.data();
        if (!with_bias) bias.clear();
        packed.emplace_back(PackedMatrix::pack(machine, dtype, rows, cols, w_data, with_bias ? bias_data : nullptr));
    }

    std::vector<float> reference() const {
        std::vector<float> out(static_cast<size_t>(tokens * rows));
        reference::linear(out.data(), x.data(), w.data(), bias.empty() ? nullptr : bias.data(), tokens, rows, cols);
        return out;
    }

    int64_t tokens, rows, cols;
    std::vector<float> x, w, bias;
    std::vector<PackedMatrix> packed; // one
};

std::vector<float> run(const Machine& machine, const LinearCase& c, int64_t from, int64_t count) {
    Poisoned out(count, c.rows), x(count, c.cols, 5);
    x.fill({c.x.begin() + from * c.cols, c.x.begin() + (from + count) * c.cols});
    linear(machine, out.view(), x.view(), c.packed[0]);
    EXPECT_TRUE(out.intact());
    return out.values();
}

class Linear : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, Linear, each_isa(), isa_test_name);

TEST_P(Linear, AgreesWithTheReferenceOnAnyShape) {
    Random random(1);
    const Machine machine{GetParam(), {}};
    for (int i = 0; i < 60; ++i) {
        const int64_t tokens = random.between(1, 20), rows = random.between(1, 200), cols = random.between(1, 150);
        const LinearCase c(random, machine, tokens, rows, cols, i % 2 ? PB_BF16 : PB_F32, i % 3 == 0);
        SCOPED_TRACE(testing::Message() << tokens << " × " << rows << " × " << cols << " case " << i);
        // Errors grow with the sum of |x·w|, which is about cols · 0.64 here.
        expect_near(run(machine, c, 0, tokens), c.reference(), 1e-6 * double(cols) + 1e-6, 1e-6);
    }
}

TEST_P(Linear, StaysAccurateOverALongSum) {
    Random random(2);
    const Machine machine{GetParam(), {}};
    const LinearCase c(random, machine, 3, 40, 9000, PB_BF16, false);
    expect_near(run(machine, c, 0, 3), c.reference(), 2e-3, 0);
}

TEST_P(Linear, GivesARowTheSameBitsAloneAndInAnyBatch) {
    Random random(3);
    const Machine machine{GetParam(), {}};
    for (const pb_dtype dtype : {PB_F32, PB_BF16}) {
        const LinearCase c(random, machine, 211, 331, 97, dtype, true);
        const std::vector<float> all = run(machine, c, 0, c.tokens);
        for (int64_t count = 1; count <= 13; ++count)
            for (int64_t from = 0; from + count <= c.tokens; from += count * 5) {
                const std::vector<float> part = run(machine, c, from, count);
                ASSERT_TRUE(same_bits(part.data(), all.data() + from * c.rows, count * c.rows))
                    << count << " rows from " << from;
            }
    }
}

TEST_P(Linear, GivesARowTheSameBitsWhereKIsTakenInParts) {
    Random random(7);
    const Machine machine{GetParam(), {}};
    // More than 124 rows of so many columns are taken in parts, in vectors more than 4; fewer at once.
    for (const pb_dtype dtype : {PB_F32, PB_BF16}) {
        const LinearCase c(random, machine, 290, 70, 4201, dtype, true);
        const std::vector<float> all = run(machine, c, 0, c.tokens);
        expect_near(all, c.reference(), 4.2e-3, 1e-6);
        for (const int64_t count : {1, 17, 32, 33, 129})
            for (int64_t from = 0; from + count <= c.tokens; from += count)
                ASSERT_TRUE(same_bits(run(machine, c, from, count).data(), all.data() + from * c.rows, count * c.rows))
                    << count << " rows from " << from;
    }
}

TEST_P(Linear, GivesARowTheSameBitsAmongMoreRowsThanAreLaidAtOnce) {
    Random random(9);
    const Machine machine{GetParam(), {}};
    const LinearCase c(random, machine, 2051, 40, 30, PB_BF16, true);
    const std::vector<float> all = run(machine, c, 0, c.tokens);
    for (const int64_t row : {0, 1023, 1024, 1025, 1366, 1367, 2050})
        ASSERT_TRUE(same_bits(run(machine, c, row, 1).data(), all.data() + row * c.rows, c.rows)) << row;
}

// On whole lines, results of many rows are written another way than elsewhere.
TEST_P(Linear, WritesTheSameBitsOnWholeLinesAndNothingBeside) {
    Random random(8);
    const Machine machine{GetParam(), {}};
    for (const bool with_bias : {false, true}) {
        const LinearCase c(random, machine, 300, 70, 700, PB_BF16, with_bias); // the last panel is in part
        const std::vector<float> want = run(machine, c, 0, c.tokens);
        constexpr int64_t kStride = 96; // floats
        constexpr float kUntouched = 12345;
        const AlignedBytes memory = allocate_aligned(uint64_t(c.tokens * kStride) * sizeof(float));
        auto* const out = reinterpret_cast<float*>(memory.get());
        std::fill_n(out, c.tokens * kStride, kUntouched);
        pb_tensor view = tensor(out, PB_F32, {c.tokens, c.rows});
        view.strides[0] = kStride;
        std::vector<float> x = c.x;
        linear(machine, view, tensor(x.data(), PB_F32, {c.tokens, c.cols}), c.packed[0]);
        for (int64_t t = 0; t < c.tokens; ++t) {
            ASSERT_TRUE(same_bits(out + t * kStride, want.data() + t * c.rows, c.rows)) << "row " << t;
            for (int64_t i = c.rows; i < kStride; ++i) ASSERT_EQ(out[t * kStride + i], kUntouched) << "row " << t;
        }
    }
}

TEST_P(Linear, GivesTheSameBitsForAnyNumberOfThreads) {
    Random random(4);
    const Machine alone{GetParam(), {}};
    struct Shape { int64_t tokens, rows, cols; };
    // Many rows; more than a cache holds, so that threads keep a block each; a next token of a small model.
    for (const Shape& shape : {Shape{130, 700, 300}, Shape{300, 170, 2000}, Shape{1, 250, 256}}) {
        const LinearCase c(random, alone, shape.tokens, shape.rows, shape.cols, PB_BF16, false);
        const std::vector<float> want = run(alone, c, 0, c.tokens);
        for (const uint32_t threads : {2u, 3u, 16u}) {
            ThreadPool pool(threads);
            EXPECT_TRUE(run({GetParam(), crew_of(pool.service())}, c, 0, c.tokens) == want) << threads;
            EXPECT_TRUE(run({GetParam(), backwards_crew(threads)}, c, 0, c.tokens) == want) << threads;
        }
    }
}

TEST_P(Linear, DoesNotLetOneRowsInfinityReachAnother) {
    Random random(5);
    const Machine machine{GetParam(), {}};
    LinearCase c(random, machine, 6, 50, 33, PB_F32, false);
    const std::vector<float> want = run(machine, c, 0, 6);
    c.x[2 * 33 + 7] = std::numeric_limits<float>::infinity();
    const std::vector<float> got = run(machine, c, 0, 6);
    EXPECT_TRUE(same_bits(got.data(), want.data(), 2 * 50));
    EXPECT_TRUE(same_bits(got.data() + 3 * 50, want.data() + 3 * 50, 3 * 50));
}

TEST_P(Linear, ReadsTheRowsOfATiedEmbeddingOutOfThePackedWeight) {
    Random random(6);
    const Machine machine{GetParam(), {}};
    for (const pb_dtype dtype : {PB_F32, PB_BF16}) {
        const LinearCase c(random, machine, 1, 77, 31, dtype, false);
        const std::vector<int32_t> ids = {0, 76, 3, 3, 64};
        std::vector<float> want(ids.size() * 31);
        reference::embedding(want.data(), c.w.data(), ids.data(), 5, 31);
        Poisoned out(5, 31);
        embedding(machine, out.view(), c.packed[0], ids.data());
        EXPECT_EQ(out.values(), want);
        EXPECT_TRUE(out.intact());
    }
}

TEST(MatrixMemory, LaysSmallPartsBesideOneAnotherAndOutlivesItsOwner) {
    std::vector<std::shared_ptr<uint8_t[]>> parts;
    {
        MatrixMemory memory;
        for (const uint64_t bytes : {100, 64, 1 << 20}) parts.push_back(memory.take(bytes));
        EXPECT_EQ(parts[1].get(), parts[0].get() + 128) << "on the next line";
        EXPECT_EQ(parts[2].get(), parts[1].get() + 64);
        for (int i = 0; i < 40; ++i) parts.push_back(memory.take(1 << 20)); // more than fit the first
        parts.push_back(memory.take(5 << 20));
    }
    for (size_t i = 0; i < parts.size(); ++i) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(parts[i].get()) % 64, 0u);
        std::memset(parts[i].get(), int(i), 64);
    }
    for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i][63], i) << "each is its own";
}

}  // namespace
}  // namespace patchbay::kernels::linear_test
