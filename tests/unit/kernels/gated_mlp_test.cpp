// gated_mlp() is linear, gate, linear: whatever it keeps in caches or rounds on the way, the bits are theirs.
#include "guarded.hpp"

namespace patchbay::kernels::gated_mlp_test {
namespace {

struct MlpCase {
    MlpCase(Random& random, const Machine& machine, int64_t token_count, int64_t hidden_size, int64_t inner_size,
            pb_dtype dtype, bool with_bias)
        : tokens(token_count), hidden(hidden_size), inner(inner_size), x(random.values(tokens * hidden)) {
        gate_up.emplace_back(packed(random, machine, 2 * inner, hidden, dtype, with_bias));
        down.emplace_back(packed(random, machine, hidden, inner, dtype, with_bias));
    }

    static PackedMatrix packed(Random& random, const Machine& machine, int64_t rows, int64_t cols, pb_dtype dtype,
                               bool with_bias) {
        const std::vector<float> w = random.values(rows * cols), bias = random.values(rows);
        if (dtype == PB_F32)
            return PackedMatrix::pack(machine, dtype, rows, cols, w.data(), with_bias ? bias.data() : nullptr);
        const std::vector<uint16_t> w16 = to_bf16(w), bias16 = to_bf16(bias);
        return PackedMatrix::pack(machine, dtype, rows, cols, w16.data(), with_bias ? bias16.data() : nullptr);
    }

    int64_t tokens, hidden, inner;
    std::vector<float> x;
    std::vector<PackedMatrix> gate_up, down; // one each
};

std::vector<float> composed(const Machine& machine, const MlpCase& c, Gate gate) {
    Poisoned x(c.tokens, c.hidden), halves(c.tokens, 2 * c.inner), gated(c.tokens, c.inner), out(c.tokens, c.hidden);
    x.fill(c.x);
    linear(machine, halves.view(), x.view(), c.gate_up[0]);
    if (gate == Gate::kSilu) silu_mul(machine, gated.view(), halves.view());
    else gelu_tanh_mul(machine, gated.view(), halves.view());
    linear(machine, out.view(), gated.view(), c.down[0]);
    return out.values();
}

std::vector<float> at_once(const Machine& machine, const MlpCase& c, Gate gate, int64_t from, int64_t count) {
    Poisoned out(count, c.hidden), x(count, c.hidden, 5);
    x.fill({c.x.begin() + from * c.hidden, c.x.begin() + (from + count) * c.hidden});
    Scratch rows;
    gated_mlp(machine, rows, out.view(), x.view(), c.gate_up[0], c.down[0], gate);
    EXPECT_TRUE(out.intact());
    return out.values();
}

class GatedMlp : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, GatedMlp, each_isa(), isa_test_name);

TEST_P(GatedMlp, HasTheBitsOfItsParts) {
    Random random(1);
    const Machine machine{GetParam(), {}};
    for (int i = 0; i < 40; ++i) {
        const int64_t tokens = random.between(1, 110), hidden = random.between(1, 150);
        const int64_t inner = i % 4 ? random.between(1, 6) * 32 : random.between(1, 200); // whole panels, or not
        const MlpCase c(random, machine, tokens, hidden, inner, i % 5 ? PB_BF16 : PB_F32, i % 3 == 0);
        const Gate gate = i % 2 ? Gate::kSilu : Gate::kGeluTanh;
        const std::vector<float> got = at_once(machine, c, gate, 0, tokens);
        ASSERT_TRUE(same_bits(got.data(), composed(machine, c, gate).data(), tokens * hidden))
            << tokens << " tokens, " << hidden << " to " << inner << ", case " << i;
    }
}

TEST_P(GatedMlp, HasTheBitsOfItsPartsWhereKIsTakenInParts) {
    Random random(2);
    const Machine machine{GetParam(), {}};
    const MlpCase wide(random, machine, 290, 4200, 96, PB_BF16, true);
    const MlpCase deep(random, machine, 290, 70, 4224, PB_BF16, false);
    for (const MlpCase* c : {&wide, &deep}) {
        const std::vector<float> all = at_once(machine, *c, Gate::kSilu, 0, c->tokens);
        ASSERT_TRUE(same_bits(all.data(), composed(machine, *c, Gate::kSilu).data(), c->tokens * c->hidden));
        for (const int64_t count : {1, 17, 33, 129})
            for (int64_t from = 0; from + count <= c->tokens; from += 2 * count) {
                const std::vector<float> part = at_once(machine, *c, Gate::kSilu, from, count);
                ASSERT_TRUE(same_bits(part.data(), all.data() + from * c->hidden, count * c->hidden))
                    << count << " rows from " << from;
            }
    }
}

TEST_P(GatedMlp, HasTheSameBitsForAnyNumberOfThreads) {
    Random random(3);
    const Machine alone{GetParam(), {}};
    const MlpCase c(random, alone, 70, 320, 1024, PB_BF16, true);
    const std::vector<float> want = at_once(alone, c, Gate::kSilu, 0, c.tokens);
    for (const uint32_t threads : {2u, 3u, 7u}) {
        const Machine workers{GetParam(), backwards_crew(threads)};
        const std::vector<float> got = at_once(workers, c, Gate::kSilu, 0, c.tokens);
        ASSERT_TRUE(same_bits(got.data(), want.data(), c.tokens * c.hidden)) << threads << " threads";
    }
}

}  // namespace
}  // namespace patchbay::kernels::gated_mlp_test
