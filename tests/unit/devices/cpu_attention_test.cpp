#include <cmath>
#include <limits>

#include "loaded_plugin.hpp"
#include "patchbay/abi/attention.h"
#include "patchbay/sdk/tensor.hpp"
#include "patchbay/sizes.hpp"

namespace patchbay::cpu_attention_test {
namespace {

constexpr pb_attention_spec kSpec{.struct_size = sizeof(pb_attention_spec), .heads = 4, .kv_heads = 2, .head_dim = 16,
                                  .block_size = 8, .sliding_window = 0, .activation_dtype = PB_F32, .kv_dtype = PB_F32,
                                  .scale = 0.25f, .soft_cap = 0, .device = "cpu"};

class CpuAttentionPlugins : public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        ASSERT_EQ(plugin.create("auto"), PB_OK) << plugin.error();
        attention = &plugin.table<pb_attention>();
    }
    std::string refusal(const pb_attention_spec& spec) {
        pb_attention_layout layout = patchbay::sized<pb_attention_layout>();
        EXPECT_EQ(attention->describe(plugin.self(), &spec, &layout), PB_UNSUPPORTED);
        void* bound = nullptr;
        EXPECT_EQ(attention->bind(plugin.self(), &spec, &bound), PB_UNSUPPORTED);
        return plugin.error();
    }
    pb_attention_layout layout_of(const pb_attention_spec& spec) {
        pb_attention_layout layout = patchbay::sized<pb_attention_layout>();
        EXPECT_EQ(attention->describe(plugin.self(), &spec, &layout), PB_OK) << plugin.error();
        return layout;
    }

    LoadedPlugin plugin{GetParam(), 2};
    const pb_attention* attention = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Plugins, CpuAttentionPlugins, testing::Values("attention-paged", "attention-reference"),
                         [](const auto& test) { return std::string(test.index == 0 ? "paged" : "reference"); });

TEST_P(CpuAttentionPlugins, RefuseWhatTheyDoNotDoWithAReason) {
    pb_attention_spec spec = kSpec;
    spec.device = "cuda";
    EXPECT_TRUE(refusal(spec).starts_with("device 'cuda' is not 'cpu'")) << refusal(spec);
    spec = kSpec;
    spec.kv_dtype = PB_I4;
    EXPECT_EQ(refusal(spec), "kv dtype i4 not in {f32, bf16, fp8, i8}");
    spec = kSpec;
    spec.activation_dtype = PB_BF16;
    EXPECT_EQ(refusal(spec), "activation dtype bf16 is not f32");
    spec = kSpec;
    spec.heads = 5;
    EXPECT_EQ(refusal(spec), "heads 5 is not a multiple of kv_heads 2");
}

TEST_P(CpuAttentionPlugins, GiveEveryLayoutATagOfItsOwn) {
    const std::string tag = layout_of(kSpec).layout_tag;
    EXPECT_LT(tag.size(), sizeof(pb_attention_layout::layout_tag) - 1);
    using Spec = pb_attention_spec;
    for (const auto change : {+[](Spec& s) { s.kv_dtype = PB_BF16; }, +[](Spec& s) { s.kv_dtype = PB_FP8; },
                              +[](Spec& s) { s.kv_dtype = PB_I8; }, +[](Spec& s) { s.block_size = 16; },
                              +[](Spec& s) { s.kv_heads = 4; }, +[](Spec& s) { s.head_dim = 32; }}) {
        pb_attention_spec spec = kSpec;
        change(spec);
        EXPECT_NE(layout_of(spec).layout_tag, tag);
    }
    pb_attention_spec other = kSpec; // no bytes of a page depend on these
    other.sliding_window = 4;
    other.heads = 8;
    EXPECT_EQ(layout_of(other).layout_tag, tag);
}

// Two sequences, two steps, pages out of order, one token not to be written: against softmax by hand.
TEST_P(CpuAttentionPlugins, AttendOverPagesAndSkipSlotsThatAreNotToBeWritten) {
    const uint64_t page_bytes = layout_of(kSpec).page_bytes;
    ASSERT_EQ(page_bytes % 4, 0u);
    std::vector<float> pages(page_bytes / 4 * 3, std::numeric_limits<float>::quiet_NaN());
    void* bound = nullptr;
    ASSERT_EQ(attention->bind(plugin.self(), &kSpec, &bound), PB_OK);
    const pb_kv_view kv{sizeof(pb_kv_view), 0, reinterpret_cast<uint8_t*>(pages.data()), page_bytes, 3, 0};

    // Tokens 0 … 8 of one sequence: a key is (token, 0, …), a value is the token; so weights follow from e^(token / 4).
    constexpr int kTokens = 9;
    std::vector<float> k(kTokens * 2 * 16), v(k.size()), q(kTokens * 4 * 16), out(q.size());
    for (int t = 0; t < kTokens; ++t)
        for (int i = 0; i < 64; ++i) {
            if (i < 32) {
                k[size_t(t * 32 + i)] = i % 16 == 0 ? float(t) : 0;
                v[size_t(t * 32 + i)] = float(t + i);
            }
            q[size_t(t * 64 + i)] = i % 16 == 0 ? 1.0f : 0;
        }
    const std::vector<int32_t> starts = {0, kTokens}, lens = {kTokens}, block_starts = {0, 2}, table = {2, 0};
    std::vector<int32_t> positions(kTokens);
    std::vector<int64_t> slots(kTokens);
    for (int t = 0; t < kTokens; ++t) {
        positions[size_t(t)] = t;
        slots[size_t(t)] = t < 8 ? 2 * 8 + t : 0 * 8 + t - 8;
    }
    const auto step = [&] {
        const pb_attention_batch batch{sizeof batch,        1,            kTokens,      0,
                                       starts.data(),       lens.data(),  block_starts.data(), table.data(),
                                       slots.data(),        positions.data(), kTokens,  kTokens};
        const pb_tensor k_view = tensor(k.data(), PB_F32, {kTokens, 2, 16}),
                        v_view = tensor(v.data(), PB_F32, {kTokens, 2, 16}),
                        q_view = tensor(q.data(), PB_F32, {kTokens, 4, 16}),
                        o_view = tensor(out.data(), PB_F32, {kTokens, 4, 16});
        ASSERT_EQ(attention->plan(plugin.self(), bound, &batch, nullptr), PB_OK) << plugin.error();
        attention->append_kv(plugin.self(), bound, &batch, &kv, &k_view, &v_view);
        attention->run(plugin.self(), bound, &batch, &kv, &o_view, &q_view);
    };
    step();
    const auto check = [&] {
        for (int t = 0; t < kTokens; ++t) {
            double total = 0, sum = 0;
            for (int key = 0; key <= t; ++key) {
                total += std::exp(key / 4.0);
                sum += std::exp(key / 4.0) * key;
            }
            for (int i = 0; i < 64; ++i) {
                const int kv_element = i / 32 * 16 + i % 16; // heads 0 and 1 read kv head 0
                ASSERT_NEAR(out[size_t(t * 64 + i)], sum / total + kv_element, 1e-5)
                    << "token " << t << ", element " << i;
            }
        }
    };
    check();
    // The same step again, with other keys that are not to be written: the pages answer.
    for (float& x : k) x = 100;
    slots.assign(kTokens, -1);
    step();
    check();
    EXPECT_TRUE(std::isnan(pages[page_bytes / 4])) << "page 1 belongs to no sequence";
    attention->unbind(plugin.self(), bound);
}

TEST_P(CpuAttentionPlugins, RefuseAPlanThatReachesPastTheTable) {
    void* bound = nullptr;
    ASSERT_EQ(attention->bind(plugin.self(), &kSpec, &bound), PB_OK);
    const std::vector<int32_t> starts = {0, 1}, lens = {30}, block_starts = {0, 1}, table = {0},
                               positions = {29};
    const int64_t slot = 0;
    const pb_attention_batch batch{sizeof batch, 1, 1, 0, starts.data(), lens.data(), block_starts.data(),
                                   table.data(), &slot, positions.data(), 1, 30};
    EXPECT_EQ(attention->plan(plugin.self(), bound, &batch, nullptr), PB_INVALID);
    EXPECT_EQ(plugin.error(), "sequence 0 of the batch: 30 tokens need 4 blocks, the table has 1");
    attention->unbind(plugin.self(), bound);
}

TEST(PagedAttention, TakesEvenHeadSizesAndNamesTheBackendThatTakesTheOthers) {
    LoadedPlugin plugin("attention-paged", 1);
    ASSERT_EQ(plugin.create("auto"), PB_OK);
    pb_attention_layout layout = patchbay::sized<pb_attention_layout>();
    pb_attention_spec spec = kSpec;
    for (const uint32_t even : {2u, 20u, 510u}) {
        spec.head_dim = even;
        EXPECT_EQ(plugin.table<pb_attention>().describe(plugin.self(), &spec, &layout), PB_OK) << even;
    }
    spec.head_dim = 21;
    EXPECT_EQ(plugin.table<pb_attention>().describe(plugin.self(), &spec, &layout), PB_UNSUPPORTED);
    EXPECT_EQ(plugin.error(), "head_dim 21 is not even (--attention reference takes any)");
    spec.head_dim = 1024;
    EXPECT_EQ(plugin.table<pb_attention>().describe(plugin.self(), &spec, &layout), PB_UNSUPPORTED);
    EXPECT_EQ(plugin.error(), "head_dim 1024 is above 512 (--attention reference takes any)");
}

TEST(ReferenceAttention, TakesAnyHeadSize) {
    LoadedPlugin plugin("attention-reference", 1);
    ASSERT_EQ(plugin.create("auto"), PB_OK);
    pb_attention_layout layout = patchbay::sized<pb_attention_layout>();
    pb_attention_spec spec = kSpec;
    spec.head_dim = 7;
    EXPECT_EQ(plugin.table<pb_attention>().describe(plugin.self(), &spec, &layout), PB_OK);
    EXPECT_EQ(layout.page_bytes, 2u * 2 * 8 * 7 * 4);
}

}  // namespace
}  // namespace patchbay::cpu_attention_test
