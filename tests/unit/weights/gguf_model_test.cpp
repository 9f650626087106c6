// GGUF files beside the Hugging Face folders that they stand for (fixtures/, made by make_gguf_fixtures.py).
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "patchbay/sdk/tensor.hpp"
#include "patchbay/sizes.hpp"
#include "unit/weights/gguf_fixture.hpp"
#include "unit/weights/safetensors_fixture.hpp"
#include "unit/weights/weight_specs.hpp"
#include "weights/gguf_keys.hpp"
#include "weights/loader.hpp"
#include "must.hpp"
#include "paths.hpp"

namespace patchbay::weights::gguf_model_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFixtures = std::string(kSourceDir) + "/tests/unit/weights/fixtures/";

std::vector<float> decoded(const Gguf& file, const GgufTensor& t, int64_t first, int64_t count) {
    std::vector<float> out(static_cast<size_t>(count));
    decode(*t.encoding, file.bytes.data() + t.begin, first, count, PB_F32, reinterpret_cast<std::byte*>(out.data()));
    return out;
}

// Returns how many tensors it compared.
size_t expect_what_the_package_says(const std::string& name_of_file) {
    const auto opened = open_gguf(kFixtures + name_of_file);
    EXPECT_TRUE(opened) << opened.error();
    if (!opened) return 0;
    const Gguf& file = opened->gguf;
    size_t seen = 0;
    for (const auto& [name, tensor] : file.header.tensors) {
        const auto expected_at = file.header.tensors.find(name + ".expected");
        if (expected_at == file.header.tensors.end()) continue;
        EXPECT_EQ(gguf_type_name(tensor.type), name);
        const int64_t count = tensor.shape[0] * tensor.shape[1];
        const auto expected = decoded(file, expected_at->second, 0, count);
        const auto got = decoded(file, tensor, 0, count);
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0) << name;
        // From the middle of one block to the middle of another.
        const int64_t first = count / 3, some = count / 2;
        EXPECT_EQ(decoded(file, tensor, first, some),
                  std::vector<float>(expected.begin() + first, expected.begin() + first + some));
        seen += 1;
    }
    return seen;
}

TEST(GgufBlocks, mean_what_the_formats_own_package_says_bit_for_bit) {
    EXPECT_EQ(expect_what_the_package_says("blocks.gguf"), 9u);
    EXPECT_EQ(expect_what_the_package_says("more_blocks.gguf"), 4u);
    EXPECT_EQ(expect_what_the_package_says("mxfp4_blocks.gguf"), 1u);
}

// Two numbers, or the same words.
void expect_same_value(const std::string& own, const std::string& value, const std::string& key) {
    char *end = nullptr, *own_end = nullptr;
    const float number = std::strtof(value.c_str(), &end), own_number = std::strtof(own.c_str(), &own_end);
    if (*end == '\0' && *own_end == '\0') EXPECT_EQ(own_number, number) << key;
    else EXPECT_EQ(own, value) << key;
}

pb_weight_spec spec_of(const std::string& name, const std::vector<int64_t>& shape) { // of the whole tensor
    pb_weight_spec spec = patchbay::sized<pb_weight_spec>();
    spec.part_count = 1;
    spec.role = shape.size() == 1 ? PB_WEIGHT_VECTOR : PB_WEIGHT_LINEAR;
    name.copy(spec.parts[0].name, sizeof spec.parts[0].name - 1);
    spec.parts[0].rows = shape[0];
    spec.cols = shape.back();
    return spec;
}

class GgufModel : public testing::TestWithParam<const char*> {
  protected:
    std::string folder() const { return kFixtures + GetParam(); }
    std::string file() const { return folder() + ".gguf"; }
};

TEST_P(GgufModel, has_the_configuration_of_its_folder) {
    const auto expected = read_model_config(folder()), got = read_model_config(file());
    ASSERT_TRUE(expected && got) << (got ? "" : got.error());
    for (const auto& [key, value] : *expected) {
        ASSERT_TRUE(got->contains(key)) << key;
        expect_same_value(got->at(key), value, key);
    }
}

TEST_P(GgufModel, has_the_weights_of_its_folder) {
    const auto expected = Checkpoint::open(folder()), got = Checkpoint::open(file());
    ASSERT_TRUE(expected && got) << (got ? "" : got.error());
    EXPECT_EQ((*got)->names(), (*expected)->names());
    const auto from = WeightSource::from_folder(folder()), own = WeightSource::from_folder(file());
    for (const std::string& name : (*expected)->names()) {
        const auto shape = (*expected)->tensor(name)->shape;
        pb_weight_spec spec = spec_of(name, shape);
        if (name.find(".c_") != name.npos && shape.size() == 2) {  // GPT-2's: stored as (in, out)
            spec.parts[0].transposed = 1;
            spec.parts[0].rows = shape[1];
            spec.cols = shape[0];
        }
        // Gemma asks for its norms so: the file has the sums already.
        if (file().find("gemma") != std::string::npos && name.find("norm") != name.npos) spec.offset = 1;
        const bool cut = shape.size() == 2 && spec.parts[0].rows % 4 == 0;
        for (const pb_shard shard : {PB_SHARD_NONE, PB_SHARD_ROWS, PB_SHARD_COLS}) {
            if (shard != PB_SHARD_NONE && !cut) continue;
            spec.shard = shard;
            for (const pb_dtype dtype : {PB_F32, PB_BF16}) {
                const uint32_t ranks = shard == PB_SHARD_NONE ? 1 : 4;
                const auto a = from->load(spec, {dtype}, ranks - 1, ranks);
                const auto b = own->load(spec, {dtype}, ranks - 1, ranks);
                ASSERT_TRUE(a && b) << (b ? a : b).error();
                EXPECT_TRUE(std::ranges::equal(a->data, b->data)) << name << ", shard " << shard;
            }
        }
    }
}

// What make_gguf_goldens.py makes of golden models, with the names and the order of rows of llama.cpp's converter.
class GoldenGguf : public testing::TestWithParam<const char*> {
  protected:
    static std::string golden() { return std::string(kSourceDir) + "/tests/golden/"; }
    std::string folder() const { return golden() + "models/" + GetParam(); }
    std::string file() const { return golden() + "gguf/" + GetParam() + ".gguf"; }
};

TEST_P(GoldenGguf, says_nothing_else_than_the_configuration_of_its_folder) {
    const auto expected = read_model_config(folder()), got = read_model_config(file());
    ASSERT_TRUE(expected && got) << (got ? "" : got.error());
    // What the folder need not say, by what it says otherwise.
    std::map<std::string, std::string> usual{{"tie_word_embeddings", "true"}, {"head_dim", "8"}};
    if (expected->contains("ffn_hidden_size")) usual["intermediate_size"] = expected->at("ffn_hidden_size");
    if (expected->contains("rotary_emb_base")) usual["rope_theta"] = expected->at("rotary_emb_base");
    if (expected->at("model_type") == "cohere2") usual["sliding_window_pattern"] = "4";
    if (expected->at("model_type") == "smollm3") usual["mlp_bias"] = "false";
    for (const auto& [key, own] : *got) {
        const auto at = expected->find(key);
        ASSERT_TRUE(at != expected->end() || usual.contains(key)) << key << " is " << own;
        std::string value = at != expected->end() ? at->second : usual.at(key);
        // Falcon 7B's configuration repeats its heads here, and has one.
        if (key == "num_kv_heads" && expected->at("new_decoder_architecture") == "false") value = "1";
        expect_same_value(own, value, key);
    }
}

TEST_P(GoldenGguf, has_every_number_of_its_folder_in_its_place) {
    const auto expected = Checkpoint::open(folder()), got = Checkpoint::open(file());
    ASSERT_TRUE(expected && got) << (got ? "" : got.error());
    EXPECT_EQ((*got)->names(), (*expected)->names());
    const auto from = WeightSource::from_folder(folder()), own = WeightSource::from_folder(file());
    for (const std::string& name : (*expected)->names()) {
        const auto shape = (*expected)->tensor(name)->shape;
        const pb_weight_spec spec = spec_of(name, shape);
        const auto a = from->load(spec, {PB_F32}, 0, 1), b = own->load(spec, {PB_F32}, 0, 1);
        ASSERT_TRUE(a && b) << (b ? a : b).error();
        EXPECT_TRUE(std::ranges::equal(a->data, b->data)) << name;
    }
}

TEST(GptOssGguf, says_nothing_else_than_the_configuration_of_its_folder) {
    const std::string golden = std::string(kSourceDir) + "/tests/golden/";
    const auto expected = read_model_config(golden + "models/gpt_oss_mxfp4"),
               got = read_model_config(golden + "gguf/gpt_oss_mxfp4.gguf");
    ASSERT_TRUE(expected && got) << (got ? "" : got.error());
    EXPECT_GT(got->size(), 18u);
    for (const auto& [key, value] : *got) {
        ASSERT_TRUE(expected->contains(key)) << key << " is " << value;
        const std::string& own = expected->at(key);
        char* end = nullptr;
        const float number = std::strtof(own.c_str(), &end);
        if (*end == '\0') EXPECT_EQ(std::strtof(value.c_str(), nullptr), number) << key;
        else EXPECT_EQ(value, own) << key;
    }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenGguf,
                         testing::Values("gpt_neox", "falcon", "falcon_grouped", "falcon_one_norm", "stablelm",
                                         "stablelm_parallel", "phi", "starcoder2", "cohere", "cohere2", "olmo2",
                                         "granite", "smollm3", "qwen2_moe"),
                         [](const auto& test) { return std::string(test.param); });

INSTANTIATE_TEST_SUITE_P(Fixtures, GgufModel,
                         testing::Values("llama", "llama_scaled", "qwen2", "qwen3", "gpt2", "gemma2", "gemma3", "phi3",
                                         "mixtral", "qwen3_moe"),
                         [](const auto& test) { return test.param; });

class GgufFiles : public ModelFolder {};

TEST_F(GgufFiles, name_the_type_of_a_tensor_that_cannot_be_read_only_when_it_is_asked_for) {
    write("m.gguf", tiny_llama()
                        .tensor("output.weight", {256, 8}, 18, 0)
                        .tensor("blk.0.attn_q.weight", {32, 30}, 0, 0)
                        .with(std::string(8192, '\0')));
    EXPECT_THAT(Checkpoint::open(folder / "m.gguf").error(),
                HasSubstr("tensor 'blk.0.attn_q.weight' has 30 rows, expected 4 heads of an even size"));
    write("m.gguf", tiny_llama().tensor("output.weight", {256, 8}, 18, 0).with(std::string(1024, '\0')));
    const auto opened = Checkpoint::open(folder / "m.gguf");
    ASSERT_TRUE(opened) << opened.error();
    EXPECT_THAT((*opened)->names(), ElementsAre("model.embed_tokens.weight", "lm_head.weight"));
    EXPECT_TRUE((*opened)->tensor("model.embed_tokens.weight"));
    EXPECT_THAT((*opened)->tensor("lm_head.weight").error(),
                HasSubstr("is of type IQ3_XXS (18), which is not supported (supported: F32, F16, BF16, Q8_0,"));
    EXPECT_THAT((*opened)->tensor("lm_heat.weight").error(), HasSubstr("(did you mean 'lm_head.weight'?)"));
    EXPECT_THAT(Checkpoint::open(folder).error(),
                HasSubstr("only m.gguf (a GGUF file is named itself, without its folder)"));
}

TEST_F(GgufFiles, say_how_many_experts_a_tensor_holds) {
    const auto error = [&](const GgufBytes& bytes) {
        write("m.gguf", bytes.with(std::string(4096, '\0')));
        const auto opened = Checkpoint::open(folder / "m.gguf");
        return opened ? "(was read)" : opened.error();
    };
    const std::string tensor = (folder / "m.gguf").string() + ": tensor 'blk.0.ffn_up_exps.weight' ";
    const auto three = [&](uint32_t experts) {
        return tiny_llama().key("llama.expert_count", experts).tensor("blk.0.ffn_up_exps.weight", {4, 2, 3}, 0, 0);
    };
    EXPECT_EQ(error(three(3)), "(was read)");
    EXPECT_EQ(error(three(2)), tensor + "holds 3 experts, but llama.expert_count is 2");
    EXPECT_EQ(error(tiny_llama().tensor("blk.0.ffn_up_exps.weight", {4, 2, 3}, 0, 0)),
              tensor + "holds 3 experts, but llama.expert_count is not there");
    EXPECT_EQ(error(tiny_llama().key("llama.expert_count", 3u).tensor("blk.0.ffn_up_exps.weight", {4, 3}, 0, 0)),
              tensor + "has 2 dimensions, expected 3: experts, rows, columns");
    GgufBytes many = tiny_llama().key("llama.expert_count", 2000u);
    for (int i = 0; i < 66; ++i) many.tensor("blk." + std::to_string(i) + ".ffn_up_exps.weight", {1, 1, 2000}, 1, 0);
    EXPECT_THAT(error(many), HasSubstr("experts have more than 131072 matrices"));
    // Of a type that is not read.
    EXPECT_EQ(error(tiny_llama().key("llama.expert_count", 2u).tensor("blk.0.ffn_up_exps.weight", {256, 1, 2}, 16, 0)),
              "(was read)");
    const auto opened = Checkpoint::open(folder / "m.gguf");
    EXPECT_THAT((*opened)->tensor("model.layers.0.block_sparse_moe.experts.1.w3.weight").error(),
                HasSubstr("is of type IQ2_XXS"));
}

TEST_F(GgufFiles, put_the_gate_of_a_gpt_oss_expert_beside_its_up) {
    const auto opened = [&](const std::vector<uint64_t>& up, uint32_t type) {
        GgufBytes file;
        file.key("general.architecture", "gpt-oss").key("gpt-oss.expert_count", 2u);
        file.tensor("blk.0.ffn_gate_exps.weight", {4, 3, 2}, 0, 0).tensor("blk.0.ffn_up_exps.weight", up, type, 96);
        std::string numbers;
        for (int i = 0; i < 512; ++i) numbers += bytes_of(static_cast<float>(i));
        write("m.gguf", file.with(numbers));
        return Checkpoint::open(folder / "m.gguf");
    };
    ASSERT_TRUE(opened({4, 3, 2}, 0)) << opened({4, 3, 2}, 0).error();
    pb_weight_spec rows = patchbay::sized<pb_weight_spec>();
    rows.part_count = 1;
    std::string("model.layers.0.mlp.experts.1.gate_up_proj.weight").copy(rows.parts[0].name, 159);
    rows.parts[0].rows = 6;
    rows.cols = 4;
    const auto loaded = WeightSource::from_folder(folder / "m.gguf")->load(rows, {PB_F32}, 0, 1);
    ASSERT_TRUE(loaded) << loaded.error();
    EXPECT_THAT(values(loaded->data, PB_F32), ElementsAre(12, 13, 14, 15, 36, 37, 38, 39, 16, 17, 18, 19, 40, 41, 42,
                                                           43, 20, 21, 22, 23, 44, 45, 46, 47));
    const std::string fault = "'model.layers.0.mlp.experts.0.gate_proj.weight' has no "
                              "'model.layers.0.mlp.experts.0.up_proj.weight' of its type and shape beside it";
    EXPECT_THAT(opened({4, 2, 2}, 0).error(), HasSubstr(fault));
    EXPECT_THAT(opened({4, 3, 2}, 1).error(), HasSubstr(fault));
}

TEST_F(GgufFiles, of_phi2_may_have_q_k_and_v_in_one_tensor) {
    const auto opened = [&](uint64_t rows, uint32_t type_of_bias) {
        GgufBytes file;
        file.key("general.architecture", "phi2").key("phi2.attention.head_count", 2u);
        file.tensor("blk.3.attn_qkv.weight", {2, rows}, 0, 0).tensor("blk.3.attn_qkv.bias", {32}, type_of_bias, 256);
        std::string numbers;
        for (int i = 0; i < 256; ++i) numbers += bytes_of(static_cast<float>(i));
        write("m.gguf", file.key("phi2.attention.head_count_kv", 1u).with(numbers));
        return Checkpoint::open(folder / "m.gguf");
    };
    ASSERT_TRUE(opened(8, 0)) << opened(8, 0).error();
    const auto from = *WeightSource::from_folder(folder / "m.gguf");
    const auto numbers_of = [&](const std::string& letter, int64_t rows) {
        const std::string name = "model.layers.3.self_attn." + letter + "_proj.";
        const auto loaded = from.load(spec(2, {part(name + "weight", rows)}), {PB_F32}, 0, 1);
        return loaded ? values(loaded->data, PB_F32) : std::vector<float>();
    };
    EXPECT_THAT(numbers_of("q", 4), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    EXPECT_THAT(numbers_of("k", 2), ElementsAre(8, 9, 10, 11));
    EXPECT_THAT(numbers_of("v", 2), ElementsAre(12, 13, 14, 15));
    const auto bias = (*opened(8, 0))->tensor("model.layers.3.self_attn.v_proj.bias");
    ASSERT_TRUE(bias) << bias.error();
    EXPECT_EQ(bias->shape, std::vector<int64_t>{8});
    EXPECT_EQ(bias->bytes, 32u);
    EXPECT_THAT(opened(6, 0).error(), HasSubstr("'blk.3.attn_qkv.weight' has 6 rows, expected those of 2 heads of q"));
    EXPECT_THAT(opened(8, 8).error(), HasSubstr("'blk.3.attn_qkv.bias' is Q8_0, expected a bias of real numbers"));
}

TEST(GgufExperts, stay_in_codes) {
    for (const std::string name : {"mixtral", "qwen3_moe"}) {
        const auto source = WeightSource::from_folder(kFixtures + name + ".gguf");
        const std::string mixtral = "model.layers.0.block_sparse_moe.experts.2.w1.weight",
                          qwen = "model.layers.0.mlp.experts.2.gate_proj.weight";
        pb_weight_spec spec = patchbay::sized<pb_weight_spec>();
        spec.part_count = 1;
        spec.role = PB_WEIGHT_LINEAR;
        (name == "mixtral" ? mixtral : qwen).copy(spec.parts[0].name, sizeof spec.parts[0].name - 1);
        spec.parts[0].rows = spec.cols = 32;
        const auto real = source->load(spec, {PB_F32}, 0, 1);
        const auto codes = source->load(spec, {PB_F32, Quantization::kAsStored}, 0, 1);
        ASSERT_TRUE(real && codes) << (codes ? real : codes).error();
        ASSERT_EQ(codes->dtype, PB_I8);
        for (size_t i = 0; i < 32 * 32; ++i) {
            float value;
            std::memcpy(&value, real->data.data() + 4 * i, 4);
            ASSERT_EQ(static_cast<float>(static_cast<int8_t>(codes->data[i])) * codes->scales[i / 32], value) << i;
        }
    }
}

TEST_F(GgufFiles, lie_in_parts_beside_the_first) {
    const auto part = [](GgufBytes bytes, uint32_t number, uint32_t count) {
        return bytes.key("split.no", number).key("split.count", count).key("split.tensors.count", 2u);
    };
    const auto put = [&](const std::string& name, const GgufBytes& bytes, char value) {
        write(name, bytes.with(std::string(1024, value)));
        return folder / name;
    };
    const auto second = [&] { return GgufBytes().tensor("output.weight", {32, 8}, 0, 0); };
    const auto error = [&](const std::filesystem::path& path) {
        const auto opened = Checkpoint::open(path);
        return opened ? "(was read)" : opened.error();
    };
    const auto first = put("m-00001-of-00002.gguf", part(tiny_llama(), 0, 2), '\1');
    const std::string other = (folder / "m-00002-of-00002.gguf").string();
    EXPECT_EQ(error(first), "part 2 of 2 of the model " + first.string() + ": cannot open " + other +
                                ": No such file or directory");
    put("m-00002-of-00002.gguf", part(second(), 1, 2), '\2');
    EXPECT_EQ(error(first), "(was read)");
    EXPECT_EQ(read_model_config(first)->at("tie_word_embeddings"), "false");  // says the second
    const auto opened = Checkpoint::open(first);
    EXPECT_EQ(*(*opened)->tensor("model.embed_tokens.weight")->data, std::byte{1});
    EXPECT_EQ(*(*opened)->tensor("lm_head.weight")->data, std::byte{2});
    EXPECT_EQ(error(other), other + " is part 2 of 2 of a model, expected the first (name the file that ends in "
                                    "-00001-of-00002.gguf)");
    put("m-00002-of-00002.gguf", part(second(), 0, 2), '\2');
    EXPECT_EQ(error(first), other + " does not say that it is part 2 of 2 (split.no, split.count)");
    put("m-00002-of-00002.gguf", part(second().tensor("token_embd.weight", {32, 8}, 0, 0), 1, 2), '\2');
    EXPECT_EQ(error(first), "tensor 'token_embd.weight' in " + other + " is in another part of the model, too");
    put("m-00002-of-00002.gguf", part(GgufBytes(), 1, 2), '\2');
    EXPECT_THAT(error(first), HasSubstr("split.tensors.count is 2, but the parts have 1"));
    EXPECT_THAT(error(put("m.gguf", part(tiny_llama(), 0, 2), '\1')),
                HasSubstr("is one of 2 parts of a model, expected the first, whose name ends in -00001-of-00002.gguf"));
    EXPECT_THAT(error(put("m.gguf", part(tiny_llama(), 0, 0), '\1')),
                HasSubstr("split.count is 0, expected a number from 1"));
    EXPECT_EQ(error(put("m.gguf", part(tiny_llama(), 0, 1), '\1')), "(was read)");
}

TEST_F(GgufFiles, become_bf16_where_they_are_quantised) {
    write("m.gguf", tiny_llama().tensor("output.weight", {256, 8}, 8, 0).with(std::string(4096, '\0')));
    EXPECT_EQ(*WeightSource::from_folder(folder / "m.gguf")->native_dtype({}), PB_BF16);
    EXPECT_EQ(*WeightSource::from_folder(kFixtures + "qwen2.gguf")->native_dtype({}), PB_F32);
}

TEST_F(GgufFiles, have_an_identity_of_their_metadata_and_values) {
    std::vector<std::string> seen;
    const auto note = [&](const GgufBytes& bytes, char value) {
        write("m.gguf", bytes.with(std::string(1024, value)));
        seen.push_back(*model_identity(folder / "m.gguf"));
    };
    note(tiny_llama(), '\0');
    note(tiny_llama(), '\1');
    note(tiny_llama().key("general.name", "other"), '\0');
    EXPECT_TRUE(seen[0] != seen[1] && seen[0] != seen[2] && seen[1] != seen[2]);
    note(tiny_llama(), '\0');
    EXPECT_EQ(seen[0], seen[3]);
}

}  // namespace
}  // namespace patchbay::weights::gguf_model_test
