// The attention kernels against the reference; and that a row's bits do not depend on how work is dealt.
#include <gtest/gtest.h>

#include "unit/cuda/attention_case.hpp"

namespace patchbay::kernels::cuda::attention_test {
namespace {

void expect_near(const Floats& got, const Floats& expected, double near) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[i], near * (1 + std::abs(expected[i]))) << "value " << i;
}

struct Kind {
    const char* name;
    AttentionShape shape;
    pb_dtype activations;
    double near;
};

const Kind kKinds[] = {
    {"tiles_64", {8, 2, 64, 16, 0, 0.125f, 0, PB_BF16}, PB_BF16, 1e-2},
    {"tiles_128", {4, 1, 128, 16, 0, 0.088f, 0, PB_BF16}, PB_BF16, 1e-2},
    {"tiles_window", {4, 4, 64, 8, 90, 0.125f, 0, PB_BF16}, PB_BF16, 1e-2},
    {"tiles_soft_cap", {4, 2, 64, 32, 0, 0.5f, 4, PB_BF16}, PB_BF16, 1e-2},
    {"f32", {4, 2, 64, 16, 0, 0.125f, 0, PB_F32}, PB_F32, 1e-5},
    {"f32_over_bf16", {4, 2, 24, 4, 70, 0.2f, 0, PB_BF16}, PB_F32, 1e-5},
    {"bf16_of_another_size", {2, 1, 40, 16, 0, 0.16f, 3, PB_BF16}, PB_BF16, 1e-2},
    {"bf16_over_f32", {2, 2, 72, 16, 0, 0.12f, 0, PB_F32}, PB_BF16, 1e-2},
    {"the_smallest", {4, 2, 8, 16, 0, 0.35f, 0, PB_F32}, PB_F32, 1e-5},
    {"the_largest", {2, 1, kMaxHeadDim, 16, 0, 0.0625f, 0, PB_BF16}, PB_BF16, 1e-2},
};

class CudaAttention : public testing::TestWithParam<Kind> {};

TEST_P(CudaAttention, IsTheReferencesHoweverItIsSplit) {
    const std::vector<std::vector<Span>> kBatches = {
        {{0, 1}}, {{0, 70}, {300, 301}, {63, 65}, {64, 65}}, {{580, 587}, {530, 531}}};
    for (const auto& spans : kBatches) {
        Case c(GetParam().shape, GetParam().activations, spans);
        const auto whole = c.attend_by(1), expected = c.expected();
        expect_near(whole, expected, GetParam().near);
        for (const uint32_t busy : {4, 100})
            EXPECT_EQ(c.attend_by(busy), whole) << "dealt out to " << busy << " blocks";
        EXPECT_EQ(c.attend_by(100, 20), whole) << "with little room for partial sums";
        EXPECT_EQ(in_another_order([&] { return c.attend_by(100); }), whole) << "with threads in another order";
    }
}

// As many warps and as much shared memory for each block as an engine takes, over sequences of several splits.
TEST_P(CudaAttention, GivesTheSameBitsByTheGridOfAGpu) {
    Case c(GetParam().shape, GetParam().activations, {{0, 70}, {580, 587}, {1300, 1301}, {530, 531}});
    const auto whole = c.attend_by(1);
    expect_near(whole, c.expected(), GetParam().near);
    const AttentionGrid grid = attention_grid(c.shape(), 4, shared_bytes_of_a_multiprocessor());
    EXPECT_EQ(c.attend_by(100, 1 << 16, grid), whole) << grid.few_warps << " warps";
}

// Below the scores, among them, above them, and so far above that 2^(sink − score) is no f32.
TEST_P(CudaAttention, AddsSinksOnceHoweverItIsSplit) {
    Case c(GetParam().shape, GetParam().activations, {{0, 70}, {580, 587}, {530, 531}});
    c.set_sinks({0.5f, -40, 3, 200, 0, 6, -2, 1});
    const auto whole = c.attend_by(1), expected = c.expected();
    expect_near(whole, expected, GetParam().near);
    for (const uint32_t busy : {4, 100}) EXPECT_EQ(c.attend_by(busy), whole) << "dealt out to " << busy << " blocks";
    Case without(GetParam().shape, GetParam().activations, {{0, 70}, {580, 587}, {530, 531}});
    EXPECT_NE(without.attend_by(1), whole);
}

TEST_P(CudaAttention, GivesATokenTheSameBitsInEveryChunk) {
    const size_t width = size_t(GetParam().shape.heads) * size_t(GetParam().shape.head_dim);
    Case whole(GetParam().shape, GetParam().activations, {{0, 290}});
    const auto all = whole.attend_by(1);
    ASSERT_FALSE(all.empty());
    for (const Span part : {Span{0, 1}, {40, 60}, {255, 256}, {256, 257}, {200, 290}}) {
        Case chunk(GetParam().shape, GetParam().activations, {part});
        const auto some = chunk.attend_by(100);
        const auto from = all.begin() + part.from * ptrdiff_t(width);
        EXPECT_EQ(some, Floats(from, all.begin() + part.to * ptrdiff_t(width)))
            << "tokens " << part.from << " to " << part.to - 1;
    }
}

// All keys weigh alike, so that an output is the mean of its values: half of them 2 − 2⁻⁶, half 2 − 2⁻⁷, and their mean
// lies midway between two numbers of bf16. A quotient is that mean; for these counts the product by 1 / count is not,
// and rounds to the other neighbour.
TEST_P(CudaAttention, DividesBySumsOfWeightsAlikeHoweverItIsSplit) {
    const auto values = [](int which, int32_t position, size_t count) {
        return Floats(count, which == 0 ? 0.f : position % 2 ? 2 - 0x1p-7f : 2 - 0x1p-6f);
    };
    std::vector<Span> decoding;
    for (const int32_t n : {334, 362, 380, 416, 446, 480, 500, 510}) decoding.push_back({n - 1, n});
    Case c(GetParam().shape, GetParam().activations, decoding, values);
    const auto whole = c.attend_by(1);
    for (const float x : whole) ASSERT_EQ(x, rounded(GetParam().activations, 2 - 0x1p-7f - 0x1p-8f));
    EXPECT_EQ(c.attend_by(200), whole);
}

TEST_P(CudaAttention, AppendsIntoTheSlotsAndNowhereElse) {
    const AttentionShape& shape = GetParam().shape;
    Case c(shape, GetParam().activations, {{3, 30}, {17, 18}});
    const AttentionBatch batch = c.batch();
    Shared<int64_t> slots(batch.slot_mapping, batch.slot_mapping + batch.token_count);
    slots[4] = -1;
    const uint64_t stride = c.page_stride();
    const size_t pages = 64;
    struct alignas(16) Line {
        uint8_t bytes[16];
    };
    Shared<Line> got(pages * stride / 16), expected(got.size());
    std::memset(got.data(), 0x5a, got.size() * 16);
    std::memset(expected.data(), 0x5a, got.size() * 16);
    Values k = c.rows(1, shape.kv_heads), v = c.rows(2, shape.kv_heads);
    append_kv(nullptr, shape, {got.data()->bytes, stride}, slots.data(), batch.token_count, k.tensor(), v.tensor());
    finish();
    auto dense_k = k.dense(), dense_v = v.dense();
    AttentionBatch with = batch;
    with.slot_mapping = slots.data();
    const auto as_tensor = [&](Floats& x) {
        return tensor(x.data(), PB_F32, {batch.token_count, shape.kv_heads, shape.head_dim});
    };
    reference::append_kv(shape, with, {expected.data()->bytes, stride}, as_tensor(dense_k), as_tensor(dense_v));
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * 16), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CudaAttention, testing::ValuesIn(kKinds),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(CudaAttentionTiles, AreTakenWhereTheyFit) {
    AttentionShape shape = kKinds[0].shape;
    Values x(PB_BF16, {4, 8, 64}, {}, 16), odd(PB_BF16, {4, 8, 64}, {}, 4), real(PB_F32, {4, 8, 64}, {}, 16);
    const KvPages kv{reinterpret_cast<uint8_t*>(x.tensor().data), 4096};
    EXPECT_TRUE(takes_tiles(shape, x.tensor(), x.tensor(), kv));
    EXPECT_FALSE(takes_tiles(shape, x.tensor(), odd.tensor(), kv)) << "rows off lines of 16 bytes";
    EXPECT_FALSE(takes_tiles(shape, real.tensor(), real.tensor(), kv));
    EXPECT_FALSE(takes_tiles(shape, x.tensor(), x.tensor(), {kv.data, 4100}));
    shape.head_dim = 96;
    EXPECT_FALSE(takes_tiles(shape, x.tensor(), x.tensor(), kv));
}

}  // namespace
}  // namespace patchbay::kernels::cuda::attention_test
