// GGUF's blocks as codes: the same numbers as decode() gives, whatever is cut, fused or reordered.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "unit/weights/gguf_fixture.hpp"
#include "unit/weights/safetensors_fixture.hpp"
#include "unit/weights/weight_specs.hpp"
#include "weights/code_sources.hpp"
#include "weights/gguf_model.hpp"
#include "paths.hpp"

namespace patchbay::weights::gguf_codes_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kFixtures = std::string(kSourceDir) + "/tests/unit/weights/fixtures/";
constexpr WeightForm kStored{PB_F32, Quantization::kAsStored};

struct Kind {
    Encoding encoding;
    uint32_t type;  // GGUF's number
    pb_dtype dtype;
    uint32_t group;
    bool offsets;
    std::vector<size_t> halves;  // where a block has f16 numbers
};
const Kind kKinds[] = {
    {Encoding::kQ4_0, 2, PB_I4, 32, false, {0}},    {Encoding::kQ4_1, 3, PB_I4, 32, true, {0, 2}},
    {Encoding::kQ5_0, 6, PB_I8, 32, false, {0}},    {Encoding::kQ5_1, 7, PB_I8, 32, true, {0, 2}},
    {Encoding::kQ8_0, 8, PB_I8, 32, false, {0}},    {Encoding::kQ4_K, 12, PB_I4, 32, true, {0, 2}},
    {Encoding::kQ5_K, 13, PB_I8, 32, true, {0, 2}}, {Encoding::kQ6_K, 14, PB_I8, 16, false, {208}},
    {Encoding::kQ2_K, 10, PB_I4, 16, true, {80, 82}}, {Encoding::kQ3_K, 11, PB_I4, 16, false, {108}},
    {Encoding::kIQ4_NL, 20, PB_I8, 32, false, {0}}, {Encoding::kIQ4_XS, 23, PB_I8, 32, false, {0}},
    {Encoding::kMXFP4, 39, PB_I8, 32, false, {}}};

const Kind& kind_of(Encoding encoding) {
    for (const Kind& kind : kKinds)
        if (kind.encoding == encoding) return kind;
    throw std::runtime_error("no such kind");
}

// Random bits, whose f16 numbers and powers of two are finite.
std::string random_blocks(const Kind& kind, int64_t rows, int64_t cols, uint32_t seed) {
    const EncodingFacts facts = facts_of(kind.encoding);
    std::mt19937 random(seed);
    std::string out(static_cast<size_t>(rows * cols / facts.block * facts.block_bytes), '\0');
    for (char& c : out) c = static_cast<char>(random());
    for (size_t block = 0; block < out.size(); block += static_cast<size_t>(facts.block_bytes)) {
        if (kind.encoding == Encoding::kMXFP4) out[block] &= 0x7f;
        for (const size_t at : kind.halves) out[block + at + 1] &= static_cast<char>(0xBB); // no exponent of all ones
    }
    return out;
}

// Rounding of the offset, and of a sum with it, allowed for.
void expect_same(const LoadedWeight& codes, const std::vector<float>& decoded, const char* what) {
    const std::vector<float> got = meant(codes);
    ASSERT_EQ(got.size(), decoded.size());
    const int64_t groups = (codes.cols + codes.group - 1) / codes.group;
    for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
        const auto g = static_cast<size_t>(i / codes.cols * groups + i % codes.cols / codes.group);
        const float size = codes.offsets.empty() ? 0 : 16 * std::abs(codes.scales[g]) + std::abs(codes.offsets[g]);
        ASSERT_LE(std::abs(got[static_cast<size_t>(i)] - decoded[static_cast<size_t>(i)]), size * 0x1p-22f)
            << what << " " << i;
    }
}

TEST(GgufCodes, mean_what_the_fixtures_blocks_mean) {
    const auto first = open_gguf(kFixtures + "blocks.gguf"), more = open_gguf(kFixtures + "more_blocks.gguf"),
               last = open_gguf(kFixtures + "mxfp4_blocks.gguf");
    ASSERT_TRUE(first && more && last);
    for (const Kind& kind : kKinds) {
        const auto holds = [&](const auto& file) {
            return file->gguf.header.tensors.contains(facts_of(kind.encoding).name);
        };
        const auto& opened = holds(first) ? first : holds(more) ? more : last;
        const GgufTensor& tensor = opened->gguf.header.tensors.at(facts_of(kind.encoding).name);
        const TensorView view{*tensor.encoding, tensor.shape, opened->gguf.bytes.data() + tensor.begin,
                              tensor.end - tensor.begin};
        const int64_t rows = view.shape[0], cols = view.shape[1];
        const auto source = block_codes({"w", view.shape, 0, rows, 0, cols}, view);
        ASSERT_TRUE(source);
        CodeRows codes(source->form(), rows, cols);
        source->unpack(0, rows, codes);
        std::vector<float> expected(static_cast<size_t>(rows * cols));
        decode(view.encoding, view.data, 0, rows * cols, PB_F32, reinterpret_cast<std::byte*>(expected.data()));
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < cols; ++c) {
                const float scale = codes.scales_of(r)[c / kind.group], offset = codes.offsets_of(r)[c / kind.group];
                const float size = kind.offsets ? 16 * std::abs(scale) + std::abs(offset) : 0;
                ASSERT_NEAR(static_cast<float>(codes.codes_of(r)[c]) * scale + offset,
                            expected[static_cast<size_t>(r * cols + c)], size * 0x1p-22f)
                    << facts_of(kind.encoding).name;
            }
    }
}

class GgufCodeFiles : public ModelFolder {
  protected:
    struct Stored {
        std::string name;
        Encoding encoding;  // kF32 too
        int64_t rows, cols;
    };
    // Tensors in the order that is given, of a llama of 4 heads, 2 of them of keys.
    WeightSource source(const std::vector<Stored>& tensors) const {
        GgufBytes bytes;
        bytes.key("general.architecture", "llama").key("llama.attention.head_count", 4u);
        bytes.key("llama.attention.head_count_kv", 2u);
        std::string data;
        for (const Stored& t : tensors) {
            const auto sizes = {static_cast<uint64_t>(t.cols), static_cast<uint64_t>(t.rows)};
            bytes.tensor(t.name, sizes, t.encoding == Encoding::kF32 ? 0 : kind_of(t.encoding).type, data.size());
            data += t.encoding == Encoding::kF32
                        ? f32_bytes(std::vector<float>(static_cast<size_t>(t.rows * t.cols), 2))
                        : random_blocks(kind_of(t.encoding), t.rows, t.cols, 7);
            data.resize((data.size() + 31) / 32 * 32);
        }
        write("m.gguf", bytes.with(data));
        return *WeightSource::from_folder(folder / "m.gguf");
    }
};

TEST_F(GgufCodeFiles, stay_codes_of_every_kind_whole_and_cut_along_rows_and_columns) {
    for (const Kind& kind : kKinds) {
        const auto from = source({{"blk.0.ffn_down.weight", kind.encoding, 8, 512}});
        const auto down = [](pb_shard shard) {
            return spec(512, {part("model.layers.0.mlp.down_proj.weight", 8)}, shard);
        };
        for (const pb_shard shard : {PB_SHARD_NONE, PB_SHARD_ROWS, PB_SHARD_COLS}) {
            const uint32_t ranks = shard == PB_SHARD_NONE ? 1 : shard == PB_SHARD_ROWS ? 4 : 16;
            const auto codes = from.load(down(shard), kStored, ranks - 1, ranks);
            ASSERT_TRUE(codes) << codes.error();
            EXPECT_EQ(codes->dtype, kind.dtype);
            EXPECT_EQ(codes->group, kind.group);
            EXPECT_EQ(!codes->offsets.empty(), kind.offsets);
            const auto real = from.load(down(shard), {PB_F32}, ranks - 1, ranks);
            expect_same(*codes, values(real->data, PB_F32), facts_of(kind.encoding).name);
        }
        const auto within = from.load(down(PB_SHARD_COLS), kStored, 1, 64); // 8 columns: no whole group
        EXPECT_EQ(within->dtype, PB_F32);
    }
}

TEST_F(GgufCodeFiles, put_the_rows_of_each_head_back) {
    const auto from = source({{"blk.0.attn_q.weight", Encoding::kQ4_K, 32, 256}});
    const auto q = spec(256, {part("model.layers.0.self_attn.q_proj.weight", 32)});
    expect_same(*from.load(q, kStored, 0, 1), values(from.load(q, {PB_F32}, 0, 1)->data, PB_F32), "q");
}

TEST_F(GgufCodeFiles, fuse_kinds_in_the_form_that_holds_both) {
    const auto both = [&](Encoding a, Encoding b) {
        const auto from =
            source({{"blk.0.ffn_gate.weight", a, 6, 256}, {"blk.0.ffn_up.weight", b, 6, 256}});
        const auto gate_up = spec(256, {part("model.layers.0.mlp.gate_proj.weight", 6),
                                        part("model.layers.0.mlp.up_proj.weight", 6)});
        auto codes = *from.load(gate_up, kStored, 0, 1);
        const auto real = values(from.load(gate_up, {PB_F32}, 0, 1)->data, PB_F32);
        if (codes.group) expect_same(codes, real, "gate_up");
        else EXPECT_EQ(values(codes.data, codes.dtype), real);
        return std::tuple(codes.dtype, codes.group, !codes.offsets.empty());
    };
    EXPECT_EQ(both(Encoding::kQ4_K, Encoding::kQ4_K), std::tuple(PB_I4, 32u, true));
    EXPECT_EQ(both(Encoding::kQ4_0, Encoding::kQ4_K), std::tuple(PB_I4, 32u, true));
    EXPECT_EQ(both(Encoding::kQ4_K, Encoding::kQ6_K), std::tuple(PB_I8, 16u, true));
    EXPECT_EQ(both(Encoding::kQ4_0, Encoding::kQ8_0), std::tuple(PB_I8, 32u, false));
    EXPECT_EQ(both(Encoding::kQ2_K, Encoding::kQ3_K), std::tuple(PB_I4, 16u, true)); // a Q2_K file mixes these
    EXPECT_EQ(both(Encoding::kQ3_K, Encoding::kQ5_K), std::tuple(PB_I8, 16u, true));
    EXPECT_EQ(both(Encoding::kIQ4_XS, Encoding::kQ4_K), std::tuple(PB_I8, 32u, true));
    EXPECT_EQ(both(Encoding::kQ6_K, Encoding::kF32), std::tuple(PB_F32, 0u, false));
}

TEST_F(GgufCodeFiles, are_not_rounded_once_more) {
    const auto from = source({{"blk.0.ffn_down.weight", Encoding::kQ6_K, 8, 512}});
    EXPECT_EQ(from.stored_quantization(), "Q6_K");
    const auto down = spec(512, {part("model.layers.0.mlp.down_proj.weight", 8)});
    EXPECT_EQ(from.load(down, {PB_F32, Quantization::kInt4, 32}, 0, 1).error(),
              "'model.layers.0.mlp.down_proj.weight' is quantised already (Q6_K), and quantization: int4 rounds real "
              "weights (leave it at auto, or set none to decode them)");
}

TEST_F(GgufCodeFiles, are_refused_where_a_scale_is_not_finite) {
    GgufBytes bytes;
    bytes.key("general.architecture", "qwen2").tensor("output.weight", {32, 1}, 8, 0);
    write("m.gguf", bytes.with(std::string("\x00\x7C", 2) + std::string(32, '\1')));
    EXPECT_EQ(WeightSource::from_folder(folder / "m.gguf")->load(spec(32, {part("lm_head.weight", 1)}), kStored, 0, 1)
                  .error(),
              "tensor 'lm_head.weight' holds numbers that are not finite (is the file damaged?)");
}

}  // namespace
}  // namespace patchbay::weights::gguf_codes_test
