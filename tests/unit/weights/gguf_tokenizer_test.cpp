// Tokenizers of GGUF files: beside llama.cpp's ids (fixtures/make_llama_cpp_vectors.py), and where they are wrong.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "unit/weights/gguf_fixture.hpp"
#include "unit/weights/safetensors_fixture.hpp"
#include "weights/gguf_tokenizer.hpp"
#include "paths.hpp"

namespace patchbay::weights::gguf_tokenizer_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kFixtures = std::string(kSourceDir) + "/tests/unit/weights/fixtures/";

const json& vectors() { // another file: for a longer comparison by hand
    static const json all = [] {
        const char* given = std::getenv("PATCHBAY_LLAMA_CPP_VECTORS");
        const fs::path made = fs::path(kSourceDir) / "tests/unit/weights/fixtures/llama_cpp_vectors.json";
        return json::parse(std::ifstream(given ? fs::path(given) : made));
    }();
    return all;
}

GgufBytes bytes_of_file(const json& file) {
    GgufBytes out;
    out.key("general.architecture", file.value("architecture", "llama"));
    for (const auto& [key, value] : file["keys"].items()) {
        if (value.is_boolean())
            out.key(key, GgufType::kBool, std::string(1, value.get<bool>() ? '\1' : '\0'));
        else if (value.is_number())
            out.key(key, value.get<uint32_t>());
        else
            out.key(key, value.get<std::string>());
    }
    for (const auto& [key, values] : vectors()["vocabularies"][file["vocabulary"].get<std::string>()].items()) {
        const std::string name = "tokenizer.ggml." + key;
        std::string numbers;
        if (key == "scores")
            for (const json& value : values) numbers += bytes_of(value.get<float>());
        if (key == "token_type")
            for (const json& value : values) numbers += bytes_of(value.get<int32_t>());
        if (numbers.empty())
            out.texts(name, values.get<std::vector<std::string>>());
        else
            out.array(name, key == "scores" ? GgufType::kF32 : GgufType::kI32, values.size(), numbers);
    }
    return out;
}

Result<std::shared_ptr<const text::Tokenizer>> load(const json& file) {
    const fs::path path = fs::temp_directory_path() / ("patchbay-tokenizer-" + std::to_string(getpid()) + ".gguf");
    std::ofstream(path, std::ios::binary) << bytes_of_file(file).with("");
    auto out = load_gguf_tokenizer(path);
    fs::remove(path);
    return out;
}

const json& file_named(const std::string& name) {
    for (const json& file : vectors()["files"])
        if (file["name"] == name) return file;
    throw std::runtime_error("no file " + name);
}

TEST(GgufTokenizer, gives_the_ids_of_llama_cpp_for_each_kind_of_file) {
    size_t cases = 0;
    for (const json& file : vectors()["files"]) {
        const auto tokenizer = load(file);
        ASSERT_TRUE(tokenizer) << file["name"] << ": " << tokenizer.error();
        for (const json& one : file["cases"]) {
            EXPECT_EQ((*tokenizer)->encode(one[0].get<std::string>()), one[1].get<std::vector<text::TokenId>>())
                << file["name"] << ": " << one[0];
            ++cases;
        }
        for (const json& name : file["also"]) { // split text in the same way
            json other = file;
            other["keys"]["tokenizer.ggml.pre"] = name;
            const auto same = load(other);
            ASSERT_TRUE(same) << name << ": " << same.error();
            for (const json& one : file["cases"])
                EXPECT_EQ((*same)->encode(one[0].get<std::string>()), one[1].get<std::vector<text::TokenId>>()) << name;
        }
    }
    EXPECT_GE(cases, vectors()["files"].size() * 30);
}

TEST(GgufTokenizer, of_phi_3_takes_the_white_space_after_special_tokens) {
    const auto made = load(file_named("phi-3"));
    ASSERT_TRUE(made) << made.error();
    const text::Tokenizer& t = **made;
    const auto id = [&](const char* token) { return *t.id_of(token); };
    EXPECT_THAT(t.encode("<|user|>\nthe<|end|>\n<|assistant|>\n"),
                ElementsAre(1, id("<|user|>"), id("▁the"), id("<|end|>"), id("<|assistant|>")));
    EXPECT_EQ(t.encode("<|user|>\u00a0\u2003the"), t.encode("<|user|>the")) << "as Hugging Face: all of Unicode's";
    json by_architecture = file_named("no phi"); // whatever its name is
    EXPECT_NE((*load(by_architecture))->encode("<|user|>\nthe"), t.encode("<|user|>\nthe"));
    by_architecture["architecture"] = "phi3";
    EXPECT_EQ((*load(by_architecture))->encode("<|user|>\nthe"), t.encode("<|user|>\nthe"));
}

TEST(GgufTokenizer, of_sentencepiece_encodes_and_decodes) {
    const auto made = load_gguf_tokenizer(kFixtures + "llama.gguf");
    ASSERT_TRUE(made) << made.error();
    const text::Tokenizer& t = **made;
    EXPECT_EQ(t.vocab_size(), 32u);
    EXPECT_EQ(t.eos(), 2);
    EXPECT_THAT(t.encode("abcd"), ElementsAre(1, *t.id_of("▁abcd")));
    EXPECT_THAT(t.encode("a b<mark></s>"), ElementsAre(1, *t.id_of("▁a"), *t.id_of("▁b"), *t.id_of("<mark>"), 2));
    EXPECT_EQ(t.decode(t.encode("a bcd ab</s>")), "a bcd ab");
    EXPECT_TRUE(t.is_special(2) && t.is_special(31) && !t.is_special(*t.id_of("<mark>")));
}

TEST(GgufTokenizer, of_gemma_begins_a_text_without_a_space) {
    const auto made = load_gguf_tokenizer(kFixtures + "gemma2.gguf");
    ASSERT_TRUE(made) << made.error();
    const text::Tokenizer& t = **made;
    EXPECT_THAT(t.encode("ab a"), ElementsAre(1, *t.id_of("ab"), *t.id_of("▁a")));
    EXPECT_EQ(t.decode(t.encode("ab a")), "ab a");
}

class GgufTokenizers : public ModelFolder {
  protected:
    std::string tokenizer_error(const GgufBytes& bytes) const {
        write("m.gguf", bytes.with(""));
        const auto made = load_gguf_tokenizer(folder / "m.gguf");
        return made ? "(was read)" : made.error();
    }
};

GgufBytes byte_level(const std::string& pre) {
    std::vector<std::string> tokens, merges{"h e", "Ġ t", "Ġt he", "1 2"};
    const auto character = [](int c) {
        return c < 128 ? std::string(1, static_cast<char>(c))
                       : std::string{static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    };
    for (int c = 33; c < 256; ++c)  // the byte alphabet: what prints stands for itself, the rest are U+0100 and up
        if (c < 127 || (c > 160 && c != 173)) tokens.push_back(character(c));
    for (int c = 0x100; tokens.size() < 256; ++c) tokens.push_back(character(c));
    for (const char* token : {"he", "Ġt", "Ġthe", "12", "123", "<|end|>", "<tool>"}) tokens.push_back(token);
    std::string kinds;
    for (size_t i = 0; i < tokens.size(); ++i) kinds += bytes_of<int32_t>(i == 261 ? 3 : i == 262 ? 4 : 1);
    GgufBytes out;
    out.key("tokenizer.ggml.model", "gpt2").key("tokenizer.ggml.pre", pre).texts("tokenizer.ggml.tokens", tokens);
    out.texts("tokenizer.ggml.merges", merges).array("tokenizer.ggml.token_type", GgufType::kI32, tokens.size(), kinds);
    return out.key("tokenizer.ggml.eos_token_id", 261u).key("tokenizer.ggml.bos_token_id", 261u);
}

TEST_F(GgufTokenizers, split_text_by_the_name_of_their_pre_tokenizer) {
    const auto tokens = [&](const std::string& pre, const std::string& text) {
        write("m.gguf", byte_level(pre).with(""));
        const auto made = load_gguf_tokenizer(folder / "m.gguf");
        EXPECT_TRUE(made) << made.error();
        std::vector<std::string> out;
        if (!made) return out;
        const auto ids = (*made)->encode(text);
        EXPECT_EQ((*made)->decode(ids), text);
        for (const auto id : ids) out.emplace_back((*made)->is_special(id) ? "*" : (*made)->token_bytes(id));
        return out;
    };
    EXPECT_THAT(tokens("gpt-2", " the 123"), ElementsAre(" the", " ", "12", "3"));
    EXPECT_THAT(tokens("llama-bpe", " the 123"), ElementsAre("*", " the", " ", "123"));
    EXPECT_THAT(tokens("dbrx", " the 123"), ElementsAre(" the", " ", "12", "3"));
    EXPECT_THAT(tokens("qwen2", " the 12"), ElementsAre(" the", " ", "1", "2"));
    EXPECT_THAT(tokens("smollm", "12 the<tool>"), ElementsAre("1", "2", " the", "<tool>"));
    EXPECT_THAT(tokens("gpt-2", "he\xC3\xA9\xF0\x9F\xA6\x99"), testing::SizeIs(7));
    EXPECT_THAT(tokenizer_error(byte_level("tekkn")),
                HasSubstr("tokenizer.ggml.pre 'tekkn' is not known (did you mean 'tekken'?)"));
    EXPECT_THAT(tokenizer_error(byte_level("default")),
                HasSubstr("pre 'default' is not supported: it says that the converter did not know how text is split"));
    EXPECT_THAT(tokenizer_error(byte_level("gemma4")), HasSubstr("(or name a folder with tokenizer.json"));
}

// Converters write 0 where a model has no token for padding, which is "!" in most byte-level vocabularies.
TEST_F(GgufTokenizers, keep_the_text_of_ordinary_tokens_that_an_id_names) {
    GgufBytes bytes = byte_level("gpt-2");
    bytes.key("tokenizer.ggml.padding_token_id", 0u).key("tokenizer.ggml.unknown_token_id", 1u);
    write("m.gguf", bytes.with(""));
    const auto made = load_gguf_tokenizer(folder / "m.gguf");
    ASSERT_TRUE(made) << made.error();
    const text::Tokenizer& t = **made;
    EXPECT_THAT(t.encode("he!\"<|end|>"), ElementsAre(*t.id_of("he"), 0, 1, 261));
    EXPECT_FALSE(t.is_special(0) || t.is_special(1));
    EXPECT_TRUE(t.is_special(261));
    EXPECT_EQ(t.decode(t.encode("he!\"")), "he!\"");
}

TEST_F(GgufTokenizers, begin_texts_with_an_ordinary_token_that_is_no_added_one) {
    const auto token = [](const std::string& key) { return "tokenizer.ggml." + key; };
    GgufBytes bytes;
    bytes.key(token("model"), "llama").texts(token("tokens"), {"<unk>", "<", "s", ">", "<s>", "</s>", "\u2581"});
    std::string scores, kinds;
    for (const float score : {0.f, -1.f, -2.f, -3.f, -4.f, -5.f, -6.f}) scores += bytes_of(score);
    for (const int32_t kind : {2, 1, 1, 1, 1, 3, 1}) kinds += bytes_of(kind);
    bytes.array(token("scores"), GgufType::kF32, 7, scores).array(token("token_type"), GgufType::kI32, 7, kinds);
    bytes.key(token("bos_token_id"), 4u).key(token("eos_token_id"), 5u).key(token("padding_token_id"), 2u);
    bytes.key(token("add_space_prefix"), GgufType::kBool, std::string(1, '\0'));
    write("m.gguf", bytes.with(""));
    const auto made = load_gguf_tokenizer(folder / "m.gguf");
    ASSERT_TRUE(made) << made.error();
    const text::Tokenizer& t = **made;
    EXPECT_EQ(t.eos(), 5);
    EXPECT_THAT(t.encode("ss</s>"), ElementsAre(4, 2, 2, 5));
    EXPECT_THAT(t.encode("<s>"), ElementsAre(4, 1, 2, 3)) << "no pair of pieces makes it";
    EXPECT_TRUE(t.is_special(5) && !t.is_special(2) && !t.is_special(4));
}

TEST_F(GgufTokenizers, say_what_is_wrong_with_their_file) {
    const auto with = [](const std::string& model) { return GgufBytes().key("tokenizer.ggml.model", model); };
    const auto llama = [&] { return with("llama").texts("tokenizer.ggml.tokens", {"<unk>", "a"}); };
    EXPECT_THAT(tokenizer_error(GgufBytes()), HasSubstr("tokenizer.ggml.model is not there, expected a name"));
    EXPECT_THAT(tokenizer_error(with("bert")), HasSubstr("tokenizer.ggml.model is 'bert', expected llama or gpt2"));
    EXPECT_THAT(tokenizer_error(with("llama")), HasSubstr("tokenizer.ggml.tokens is not there, expected an array"));
    EXPECT_THAT(tokenizer_error(llama()), HasSubstr("tokenizer.ggml.scores is not there"));
    EXPECT_THAT(tokenizer_error(llama().array("tokenizer.ggml.scores", GgufType::kF32, 1, bytes_of(0.f))),
                HasSubstr("tokenizer.ggml.scores is an array of 1 f32, expected an array of 2 numbers"));
    const std::string not_finite = bytes_of(0.f) + bytes_of(std::numeric_limits<float>::quiet_NaN());
    EXPECT_THAT(tokenizer_error(llama().array("tokenizer.ggml.scores", GgufType::kF32, 2, not_finite)),
                HasSubstr("expected finite numbers"));
    const std::string no_floats = bytes_of(0.) + bytes_of(1e300), zeros = bytes_of(0.f) + bytes_of(0.f);
    EXPECT_THAT(tokenizer_error(llama().array("tokenizer.ggml.scores", GgufType::kF64, 2, no_floats)),
                HasSubstr("expected finite numbers"));
    EXPECT_THAT(tokenizer_error(llama().array("tokenizer.ggml.scores", GgufType::kF32, 2, zeros)),
                HasSubstr("tokenizer.ggml.bos_token_id is not there, expected a token id, which texts begin with"));
    EXPECT_THAT(tokenizer_error(llama().array("tokenizer.ggml.token_type", GgufType::kU8, 2, "\1\7")),
                HasSubstr("expected numbers from 1 to 6"));
    EXPECT_THAT(tokenizer_error(byte_level("gpt-2").key("tokenizer.ggml.padding_token_id", 263u)),
                HasSubstr("tokenizer.ggml.padding_token_id is 263, expected a token id below 263"));
    EXPECT_THAT(tokenizer_error(with("gpt2")
                                    .key("tokenizer.ggml.pre", "gpt-2")
                                    .texts("tokenizer.ggml.tokens", {"a", "a"})
                                    .texts("tokenizer.ggml.merges", {})),
                HasSubstr("tokenizer.ggml.tokens has number 1 twice"));
}

}  // namespace
}  // namespace patchbay::weights::gguf_tokenizer_test
