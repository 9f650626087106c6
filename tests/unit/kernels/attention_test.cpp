#include "guarded.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "kernels/cpu_attention.hpp"
#include "kernels/reference.hpp"

namespace patchbay::kernels::attention_test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr pb_dtype kKvDtypes[] = {PB_F32, PB_BF16, PB_FP8, PB_I8};

// One sequence's whole q, k and v, of which a step takes rows.
struct Sequence {
    Sequence(Random& random, const AttentionShape& s, int64_t length)
        : tokens(int32_t(length)), q(random.values(length * s.heads * s.head_dim)),
          k(random.values(length * s.kv_heads * s.head_dim)), v(random.values(length * s.kv_heads * s.head_dim)) {}
    int32_t tokens;
    std::vector<float> q, k, v;
};

struct Step { // rows [from, to) of a sequence
    size_t seq;
    int32_t from, to;
};

// append_kv (k, v) or run (out, q) of a backend.
using Call = std::function<void(const AttentionBatch&, const KvPages&, const pb_tensor&, const pb_tensor&)>;

// Pages of one layer with their tables, and what a step needs, for either backend.
class Layer {
  public:
    Layer(const AttentionShape& shape, uint64_t page_bytes, const std::vector<Sequence>& sequences, Random& random,
          const float* sinks)
        : shape_(shape), page_bytes_(page_bytes), sequences_(sequences), sinks_(sinks) {
        int32_t pages = 0;
        for (const Sequence& s : sequences) {
            max_blocks_ = std::max(max_blocks_, (s.tokens + shape.block_size - 1) / shape.block_size + 1);
            pages += (s.tokens + shape.block_size - 1) / shape.block_size;
        }
        std::vector<int32_t> free(static_cast<size_t>(pages));
        std::iota(free.begin(), free.end(), 0);
        for (size_t i = free.size(); i > 1; --i)
            std::swap(free[i - 1], free[size_t(random.between(0, int64_t(i) - 1))]);
        for (const Sequence& s : sequences) {
            std::vector<int32_t> table(static_cast<size_t>(max_blocks_), -1);
            for (int32_t b = 0; b * shape.block_size < s.tokens; ++b) {
                table[size_t(b)] = free.back();
                free.pop_back();
            }
            tables_.push_back(table);
        }
        stride_ = page_bytes_ + 4 * 32;
        memory_.assign((stride_ * uint64_t(pages) + 4 * 64) / 4, kNaN); // what was never written must not be used
    }

    // append_kv and run for these rows; the outputs by sequence go into `out` (tokens, heads · head_dim).
    void step(const std::vector<Step>& steps, const Call& append, const Call& attend,
              std::vector<std::vector<float>>& out) {
        std::vector<int32_t> starts = {0}, lens, block_starts = {0}, blocks, positions;
        std::vector<int64_t> slots;
        int32_t rows = 0;
        for (const Step& s : steps) rows += s.to - s.from;
        const int64_t q_width = shape_.heads * shape_.head_dim, kv_width = shape_.kv_heads * shape_.head_dim;
        Poisoned q(rows, q_width, 8), k(rows, kv_width, 8), v(rows, kv_width, 8), result(rows, q_width, 8);
        int32_t row = 0;
        for (const Step& s : steps) {
            const Sequence& seq = sequences_[s.seq];
            for (int32_t t = s.from; t < s.to; ++t, ++row) {
                std::copy_n(seq.q.begin() + t * q_width, q_width, q.row(row));
                std::copy_n(seq.k.begin() + t * kv_width, kv_width, k.row(row));
                std::copy_n(seq.v.begin() + t * kv_width, kv_width, v.row(row));
                positions.push_back(t);
                const int64_t page = tables_[s.seq][size_t(t / shape_.block_size)];
                slots.push_back(page * shape_.block_size + t % shape_.block_size);
            }
            starts.push_back(row);
            lens.push_back(s.to);
            std::vector<int32_t> table = tables_[s.seq];
            // The host takes back what has left the window.
            for (int64_t b = 0; (b + 1) * shape_.block_size <= first_key(shape_, s.from); ++b) table[size_t(b)] = -1;
            blocks.insert(blocks.end(), table.begin(), table.end());
            block_starts.push_back(int32_t(blocks.size()));
        }
        const AttentionBatch batch{.seq_count = uint32_t(steps.size()), .token_count = rows,
                                   .query_starts = starts.data(), .seq_lens = lens.data(),
                                   .block_starts = block_starts.data(), .blocks = blocks.data(),
                                   .slot_mapping = slots.data(), .positions = positions.data()};
        ASSERT_EQ(fault_of(shape_, batch), "");
        const KvPages kv{reinterpret_cast<uint8_t*>(memory_.data()), stride_, sinks_};
        append(batch, kv, k.heads_view(shape_.kv_heads), v.heads_view(shape_.kv_heads));
        attend(batch, kv, result.heads_view(shape_.heads), q.heads_view(shape_.heads));
        ASSERT_TRUE(result.intact());
        ASSERT_TRUE(pages_intact());
        out.resize(sequences_.size());
        row = 0;
        for (const Step& s : steps) {
            out[s.seq].resize(size_t(sequences_[s.seq].tokens * q_width));
            for (int32_t t = s.from; t < s.to; ++t, ++row)
                std::copy_n(result.row(row), q_width, out[s.seq].begin() + t * q_width);
        }
    }

  private:
    bool pages_intact() const { // nothing was written between the pages
        for (uint64_t p = 0; (p + 1) * stride_ <= memory_.size() * 4; ++p)
            for (uint64_t i = (p * stride_ + page_bytes_ + 3) / 4; i < (p + 1) * stride_ / 4; ++i)
                if (!std::isnan(memory_[i])) return false;
        return true;
    }

    AttentionShape shape_;
    uint64_t page_bytes_, stride_ = 0;
    const std::vector<Sequence>& sequences_;
    const float* sinks_; // (heads); nullptr: none
    int32_t max_blocks_ = 0;
    std::vector<std::vector<int32_t>> tables_;
    std::vector<float> memory_;
};

using Outputs = std::vector<std::vector<float>>;

Outputs run_fast(const Machine& machine, const AttentionShape& shape, const std::vector<Sequence>& sequences,
                 const std::vector<std::vector<Step>>& steps, const float* sinks = nullptr,
                 uint64_t max_partial_bytes = CpuAttention::kMaxPartialBytes) {
    Random random(99);
    CpuAttention attention(machine, shape, max_partial_bytes);
    Layer layer(shape, attention.page_bytes(), sequences, random, sinks);
    Outputs out;
    for (const std::vector<Step>& step : steps)
        layer.step(
            step,
            [&](const AttentionBatch& batch, const KvPages& kv, const pb_tensor& k, const pb_tensor& v) {
                attention.plan(batch);
                attention.append_kv(batch, kv, k, v);
            },
            [&](const AttentionBatch& batch, const KvPages& kv, const pb_tensor& to, const pb_tensor& q) {
                attention.run(batch, kv, to, q);
            },
            out);
    return out;
}

Outputs run_reference(const AttentionShape& shape, const std::vector<Sequence>& sequences,
                      const std::vector<std::vector<Step>>& steps, const float* sinks = nullptr) {
    Random random(98);
    Layer layer(shape, reference::page_bytes(shape), sequences, random, sinks);
    Outputs out;
    for (const std::vector<Step>& step : steps)
        layer.step(
            step,
            [&](const AttentionBatch& batch, const KvPages& kv, const pb_tensor& k, const pb_tensor& v) {
                reference::append_kv(shape, batch, kv, k, v);
            },
            [&](const AttentionBatch& batch, const KvPages& kv, const pb_tensor& to, const pb_tensor& q) {
                for (uint32_t s = 0; s < batch.seq_count; ++s)
                    reference::attend(shape, batch, kv, to, q, s, batch.query_starts[s], batch.query_starts[s + 1]);
            },
            out);
    return out;
}

std::vector<Step> at_once(const std::vector<Sequence>& sequences) {
    std::vector<Step> out;
    for (size_t s = 0; s < sequences.size(); ++s) out.push_back({s, 0, sequences[s].tokens});
    return out;
}

// Every sequence on its own, in chunks of `size`.
std::vector<std::vector<Step>> chunks(const std::vector<Sequence>& sequences, int32_t size) {
    std::vector<std::vector<Step>> out;
    for (size_t s = 0; s < sequences.size(); ++s)
        for (int32_t t = 0; t < sequences[s].tokens; t += size)
            out.push_back({{s, t, std::min(t + size, sequences[s].tokens)}});
    return out;
}

AttentionShape random_shape(Random& random) {
    AttentionShape s;
    s.kv_heads = int32_t(random.between(1, 3));
    s.heads = s.kv_heads * int32_t(random.between(1, 5));
    s.head_dim = random.between(0, 1) ? 8 * int32_t(random.between(1, 12)) : 2 * int32_t(random.between(1, 50));
    s.block_size = int32_t(std::vector<int64_t>{1, 3, 8, 10, 16, 16, 32, 48}[size_t(random.between(0, 7))]);
    s.window = random.between(0, 2) ? 0 : random.between(1, 90);
    s.soft_cap = random.between(0, 2) ? 0.0f : 4.0f;
    s.scale = 1.0f / std::sqrt(float(s.head_dim));
    s.kv_dtype = kKvDtypes[random.between(0, 3)];
    static constexpr float kSlopes[15] = {0.5f, 0.25f, 0.7f, 0, 0.01f, 1, 0.1f, 0.3f, 2, 0.05f, 0.6f, 0.2f, 0.4f, 1.5f};
    if (random.between(0, 2) == 0) s.slopes = kSlopes; // there are at most 15 heads
    return s;
}

std::string text(const AttentionShape& s) {
    return "heads " + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " × " + std::to_string(s.head_dim) +
           ", block " + std::to_string(s.block_size) + ", window " + std::to_string(s.window) + ", cap " +
           std::to_string(s.soft_cap) + ", " + dtype_name(s.kv_dtype) + (s.slopes ? ", slopes" : "");
}

class Attention : public EachIsa {
  protected:
    // Tiles round q to bf16, which is done here for the reference too, and each weight, by 2⁻⁸ of it at most; they
    // divide by the sum of what was not rounded. So a result is off by 2⁻⁸ of the mean of |v| under the same weights.
    void expect_close(const AttentionShape& shape, std::vector<Sequence> sequences,
                      const std::vector<std::vector<Step>>& steps, const float* sinks = nullptr) {
        const Outputs got = run_fast(machine, shape, sequences, steps, sinks);
        const bool in_tiles = GetParam() == Isa::Amx && shape.kv_dtype != PB_F32 && !shape.slopes;
        if (in_tiles)
            for (Sequence& s : sequences) s.q = rounded_to_bf16(s.q);
        const Outputs want = run_reference(shape, sequences, steps, sinks);
        for (Sequence& s : sequences)
            for (float& v : s.v) v = std::abs(v);
        const Outputs size = in_tiles ? run_reference(shape, sequences, steps, sinks) : Outputs(got.size());
        for (size_t s = 0; s < got.size(); ++s) {
            ASSERT_EQ(got[s].size(), want[s].size());
            for (size_t i = 0; i < got[s].size(); ++i) {
                const double bound = 5e-6 * (1 + std::abs(want[s][i])) + (in_tiles ? 0x1p-8 * size[s][i] : 0);
                ASSERT_TRUE(std::abs(double(got[s][i]) - want[s][i]) <= bound)
                    << "sequence " << s << ", element " << i << " is " << got[s][i] << ", expected " << want[s][i];
            }
        }
    }

    Machine machine{GetParam(), {}};
};
INSTANTIATE_TEST_SUITE_P(Isa, Attention, each_isa(), isa_test_name);

TEST_P(Attention, AgreesWithTheReferenceOnAnyShape) {
    Random random(21);
    for (int i = 0; i < 80; ++i) {
        const AttentionShape shape = random_shape(random);
        std::vector<Sequence> sequences;
        for (int64_t s = random.between(1, 4); s > 0; --s)
            sequences.emplace_back(random, shape, random.between(1, 150));
        SCOPED_TRACE(text(shape));
        const std::vector<std::vector<Step>> steps = {at_once(sequences)};
        expect_close(shape, sequences, steps);
        if (HasFatalFailure()) return;
    }
}

TEST_P(Attention, AgreesWithTheReferenceOverSeveralSplits) {
    Random random(22);
    AttentionShape shape{.heads = 4, .kv_heads = 2, .head_dim = 64, .block_size = 16, .scale = 0.125f,
                         .kv_dtype = PB_BF16};
    for (const pb_dtype dtype : kKvDtypes) {
        shape.kv_dtype = dtype;
        std::vector<Sequence> sequences;
        sequences.emplace_back(random, shape, 1100);
        expect_close(shape, sequences, {at_once(sequences)});
    }
}

// Below the scores, among them, above them, and so far above that e^(sink − score) is no f32.
constexpr float kSinks[15] = {0, 1.5f, -2, 6, -30, 200, 0.25f, 3, -1, 12, 0.5f, -200, 2, 90, -0.5f};

TEST_P(Attention, AddsSinksToWhatItDividesByOnAnyShape) {
    Random random(31);
    for (int i = 0; i < 60; ++i) {
        const AttentionShape shape = random_shape(random);
        std::vector<Sequence> sequences;
        for (int64_t s = random.between(1, 4); s > 0; --s)
            sequences.emplace_back(random, shape, random.between(1, 150));
        SCOPED_TRACE(text(shape));
        const std::vector<std::vector<Step>> steps = {at_once(sequences)};
        expect_close(shape, sequences, steps, kSinks);
        if (HasFatalFailure()) return;
        const Outputs with = run_fast(machine, shape, sequences, steps, kSinks);
        for (const int32_t size : {1, 7})
            EXPECT_TRUE(run_fast(machine, shape, sequences, chunks(sequences, size), kSinks) == with) << size;
    }
}

// With a window that ends within a split, and splits that are dealt to threads and merged.
TEST_P(Attention, AddsSinksOnceOverSeveralSplits) {
    Random random(32);
    for (const pb_dtype dtype : kKvDtypes)
        for (const int64_t window : {0, 700}) {
            const AttentionShape shape{.heads = 4, .kv_heads = 1, .head_dim = 32, .block_size = 16, .window = window,
                                       .scale = 0.2f, .kv_dtype = dtype};
            std::vector<Sequence> sequences;
            sequences.emplace_back(random, shape, 1300);
            const std::vector<std::vector<Step>> steps = {{{0, 0, 1290}}, {{0, 1290, 1291}}, {{0, 1291, 1300}}};
            expect_close(shape, sequences, steps, kSinks);
            const Outputs want = run_fast(machine, shape, sequences, {at_once(sequences)}, kSinks);
            ThreadPool pool(3);
            for (const Workers& workers : {Workers{}, crew_of(pool.service()), backwards_crew(16)})
                EXPECT_TRUE(run_fast({GetParam(), workers}, shape, sequences, steps, kSinks) == want);
        }
}

TEST_P(Attention, GivesARowTheSameBitsInAnyChunkingAndBatch) {
    Random random(23);
    for (int i = 0; i < 6; ++i) {
        AttentionShape shape = random_shape(random);
        if (i >= 3) shape.window = i == 3 ? 0 : 40 * i;
        std::vector<Sequence> sequences;
        for (const int64_t length : {61 + i, 7, 200}) sequences.emplace_back(random, shape, length);
        SCOPED_TRACE(text(shape));
        const Outputs want = run_fast(machine, shape, sequences, {at_once(sequences)});
        for (const int32_t size : {1, 7, 64}) {
            const Outputs got = run_fast(machine, shape, sequences, chunks(sequences, size));
            for (size_t s = 0; s < sequences.size(); ++s)
                EXPECT_TRUE(same_bits(got[s].data(), want[s].data(), int64_t(want[s].size()))) << "chunks of " << size;
        }
    }
}

TEST_P(Attention, GivesTheSameBitsForAnyPageSize) {
    Random random(24);
    for (const pb_dtype dtype : kKvDtypes)
        for (const int32_t dim : {6, 40, 50, 64}) {
            AttentionShape shape{.heads = 6, .kv_heads = 2, .head_dim = dim, .block_size = 16, .window = 70,
                                 .scale = 0.2f, .kv_dtype = dtype};
            std::vector<Sequence> sequences;
            sequences.emplace_back(random, shape, 150);
            const Outputs want = run_fast(machine, shape, sequences, {at_once(sequences)});
            for (const int32_t size : {1, 5, 8, 17, 64, 256}) {
                shape.block_size = size;
                EXPECT_EQ(run_fast(machine, shape, sequences, {at_once(sequences)}), want) << text(shape);
            }
        }
}

TEST_P(Attention, GivesTheSameBitsForAnyNumberOfThreadsAndSplits) {
    Random random(25);
    for (const pb_dtype dtype : kKvDtypes)
        for (const int64_t window : {0, 700}) {
            const AttentionShape shape{.heads = 4, .kv_heads = 1, .head_dim = 32, .block_size = 16, .window = window,
                                       .scale = 0.2f, .kv_dtype = dtype};
            std::vector<Sequence> sequences;
            sequences.emplace_back(random, shape, 1300);
            // A long prompt, then single tokens: few tiles over many splits.
            const std::vector<std::vector<Step>> steps = {{{0, 0, 1290}}, {{0, 1290, 1291}}, {{0, 1291, 1300}}};
            const Outputs want = run_fast(machine, shape, sequences, {at_once(sequences)});
            ThreadPool pool(3);
            for (const Workers& workers : {Workers{}, crew_of(pool.service()), backwards_crew(16)})
                EXPECT_TRUE(run_fast({GetParam(), workers}, shape, sequences, steps) == want) << workers.threads;
            // Rounds that end within a tile and after one: of one split, and of some.
            for (const uint64_t bytes : {1u, 5440u, 30'000u})
                EXPECT_TRUE(run_fast({GetParam(), backwards_crew(16)}, shape, sequences, steps, nullptr, bytes) == want)
                    << bytes;
        }
}

// A piece of a long prompt whose tiles are fewer than twice the threads.
TEST_P(Attention, BoundsTheMemoryOfPartialSums) {
    constexpr int32_t kRows = 480, kTokens = 131'072;
    const AttentionShape shape{.heads = 8, .kv_heads = 2, .head_dim = 128, .block_size = 16, .scale = 0.1f,
                               .kv_dtype = PB_BF16};
    const int32_t starts[] = {0, kRows}, lens[] = {kTokens};
    std::vector<int32_t> positions(kRows);
    std::iota(positions.begin(), positions.end(), kTokens - kRows);
    const AttentionBatch batch{.seq_count = 1, .token_count = kRows, .query_starts = starts, .seq_lens = lens,
                               .positions = positions.data()};
    CpuAttention attention({GetParam(), backwards_crew(256)}, shape);
    attention.plan(batch);
    EXPECT_GT(attention.partial_bytes(), CpuAttention::kMaxPartialBytes / 2);
    EXPECT_LE(attention.partial_bytes(), CpuAttention::kMaxPartialBytes);
    const CpuAttention unplanned({GetParam(), {}}, shape);
    EXPECT_EQ(unplanned.partial_bytes(), 0u);
}

TEST_P(Attention, DoesNotLetLaterTokensReachEarlierOnes) {
    for (const pb_dtype dtype : kKvDtypes)
        for (const float poison : {kNaN, std::numeric_limits<float>::infinity()}) {
            Random random(26);
            const AttentionShape shape{.heads = 4, .kv_heads = 2, .head_dim = 16, .block_size = 8, .scale = 0.25f,
                                       .kv_dtype = dtype};
            std::vector<Sequence> sequences;
            sequences.emplace_back(random, shape, 90);
            const Outputs want = run_fast(machine, shape, sequences, {at_once(sequences)});
            constexpr int64_t kFrom = 41, kKv = 2 * 16, kQ = 4 * 16;
            for (size_t i = kFrom * kKv; i < sequences[0].k.size(); ++i) sequences[0].k[i] = sequences[0].v[i] = poison;
            const Outputs got = run_fast(machine, shape, sequences, {at_once(sequences)});
            EXPECT_TRUE(same_bits(got[0].data(), want[0].data(), kFrom * kQ));
            EXPECT_FALSE(std::isfinite(got[0][kFrom * kQ]));
        }
}

TEST_P(Attention, ForgetsWhatLeftTheWindow) {
    for (const pb_dtype dtype : kKvDtypes) {
        Random random(28);
        const AttentionShape shape{.heads = 2, .kv_heads = 1, .head_dim = 16, .block_size = 8, .window = 20,
                                   .scale = 0.25f, .kv_dtype = dtype};
        std::vector<Sequence> sequences;
        sequences.emplace_back(random, shape, 90);
        const Outputs want = run_fast(machine, shape, sequences, {at_once(sequences)});
        constexpr int64_t kBad = 33, kQ = 2 * 16;
        for (int64_t i = kBad * 16; i < (kBad + 1) * 16; ++i) sequences[0].v[size_t(i)] = kNaN;
        const Outputs got = run_fast(machine, shape, sequences, {at_once(sequences)});
        EXPECT_TRUE(same_bits(got[0].data(), want[0].data(), kBad * kQ));
        EXPECT_TRUE(std::isnan(got[0][kBad * kQ]));
        EXPECT_TRUE(std::isnan(got[0][(kBad + 19) * kQ]));
        EXPECT_TRUE(same_bits(got[0].data() + (kBad + 20) * kQ, want[0].data() + (kBad + 20) * kQ, (70 - kBad) * kQ));
    }
}

TEST_P(Attention, TakesScalesThatAreNotPositive) {
    Random random(29);
    AttentionShape shape{.heads = 3, .kv_heads = 1, .head_dim = 24, .block_size = 16, .kv_dtype = PB_BF16};
    std::vector<Sequence> sequences;
    sequences.emplace_back(random, shape, 70);
    for (const float scale : {-0.2f, 0.0f})
        for (const float soft_cap : {0.0f, 3.0f}) {
            shape.scale = scale;
            shape.soft_cap = soft_cap;
            expect_close(shape, sequences, {at_once(sequences)});
        }
}

// Within one sum, slowly and by more than a block's weights may differ.
TEST_P(Attention, FollowsScoresThatGrow) {
    Random random(30);
    AttentionShape shape{.heads = 4, .kv_heads = 1, .head_dim = 32, .block_size = 16, .scale = 0.125f};
    for (const pb_dtype dtype : kKvDtypes)
        for (const float growth : {0.01f, 0.08f}) {
            shape.kv_dtype = dtype;
            std::vector<Sequence> sequences;
            sequences.emplace_back(random, shape, 300);
            for (float& q : sequences[0].q) q = 1 + q / 4;
            for (size_t i = 0; i < sequences[0].k.size(); ++i)
                sequences[0].k[i] = growth * float(i / 32) / (32 * shape.scale) + sequences[0].k[i] / 4;
            SCOPED_TRACE(text(shape) + ", growth " + std::to_string(growth));
            expect_close(shape, sequences, {at_once(sequences)});
            if (HasFatalFailure()) return;
        }
}

TEST_P(Attention, SurvivesScoresThatOverflowAPlainSoftmax) {
    Random random(27);
    const AttentionShape shape{.heads = 2, .kv_heads = 1, .head_dim = 8, .block_size = 16, .scale = 300.0f};
    std::vector<Sequence> sequences;
    sequences.emplace_back(random, shape, 100);
    const std::vector<std::vector<Step>> steps = {at_once(sequences)};
    // Scores are in the thousands, so their own rounding (about 1e-4) moves the weights.
    expect_near(run_fast(machine, shape, sequences, steps)[0], run_reference(shape, sequences, steps)[0], 5e-3, 0);
}

// Of bf16: what a token's rows become in pages, by its slot. No number is too special for it.
TEST_P(Attention, WritesTheSamePagesAtEveryLevel) {
    Random random(31);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const int32_t block_size : {1, 5, 16, 48})
        for (const int32_t head_dim : {2, 8, 14, 24, 40, 50, 64}) {
            const AttentionShape shape{.heads = 2, .kv_heads = 2, .head_dim = head_dim, .block_size = block_size,
                                       .scale = 1, .kv_dtype = PB_BF16};
            const int32_t tokens = 2 * block_size;
            std::vector<float> k = random.values(tokens * 2 * head_dim), v = random.values(tokens * 2 * head_dim);
            const float special[] = {kNaN, -kNaN, kInfinity, -kInfinity, 0x1p-140f, -0.0f, 0x1.01p0f, 0x1.03p0f,
                                     0x1.fffffep127f, std::bit_cast<float>(0x7f800001u)};
            for (size_t i = 0; i < k.size(); i += 3) k[i] = v[k.size() - 1 - i] = special[i / 3 % std::size(special)];
            std::vector<int64_t> slots(static_cast<size_t>(tokens));
            for (int32_t t = 0; t < tokens; ++t) slots[size_t(t)] = tokens - 1 - t;
            slots[0] = -1;
            const AttentionBatch batch{.token_count = tokens, .slot_mapping = slots.data()};
            const auto pages = [&](const Machine& of) {
                const CpuAttention attention(of, shape);
                std::vector<uint8_t> memory(size_t(2 * attention.page_bytes()), 0xa5);
                attention.append_kv(batch, {memory.data(), attention.page_bytes()},
                                    tensor(k.data(), PB_F32, {tokens, 2, head_dim}),
                                    tensor(v.data(), PB_F32, {tokens, 2, head_dim}));
                return memory;
            };
            std::vector<uint8_t> want(size_t(2 * CpuAttention(machine, shape).page_bytes()), 0xa5);
            const size_t dim = size_t(head_dim), key_bytes = (size_t(block_size) + 15) / 16 * 16 * dim * 2;
            for (size_t t = 1; t < slots.size(); ++t)
                for (size_t i = 0; i < 2 * dim; ++i) {
                    const size_t page = size_t(slots[t] / block_size), at = size_t(slots[t] % block_size), d = i % dim;
                    uint8_t* const head = want.data() + want.size() / 4 * (page * 2 + i / dim);
                    const uint16_t key = f32_to_bf16(k[t * 2 * dim + i]), value = f32_to_bf16(v[t * 2 * dim + i]);
                    std::memcpy(head + 2 * (at / 16 * 16 * dim + d / 2 * 32 + at % 16 * 2 + d % 2), &key, sizeof key);
                    std::memcpy(head + key_bytes + 2 * (at / 2 * 2 * dim + 2 * d + at % 2), &value, sizeof value);
                }
            ASSERT_EQ(pages(machine), want) << text(shape);
        }
}

TEST(AttentionBatch, IsRefusedWhenARowSeesWhatIsNotThere) {
    const AttentionShape shape{.heads = 1, .kv_heads = 1, .head_dim = 8, .block_size = 4};
    std::vector<int32_t> starts = {0, 1}, lens = {6}, block_starts = {1, 3}, blocks = {7, 3, 4},
                         positions = {5};
    AttentionBatch batch{.seq_count = 1, .token_count = 1, .query_starts = starts.data(), .seq_lens = lens.data(),
                         .block_starts = block_starts.data(), .blocks = blocks.data(), .positions = positions.data()};
    EXPECT_EQ(fault_of(shape, batch), "");
    positions[0] = 6;
    EXPECT_EQ(fault_of(shape, batch), "sequence 0 of the batch: position 6 of 6 tokens");
    positions[0] = 5;
    blocks[1] = -1;
    EXPECT_EQ(fault_of(shape, batch), "sequence 0 of the batch: no page for block 0, which its rows see");
    AttentionShape windowed = shape;
    windowed.window = 2;
    EXPECT_EQ(fault_of(windowed, batch), "");
    lens[0] = 9;
    EXPECT_EQ(fault_of(shape, batch), "sequence 0 of the batch: 9 tokens need 3 blocks, the table has 2");
}

}  // namespace
}  // namespace patchbay::kernels::attention_test
