// Tokenizers of GGUF files beside llama.cpp's words on them, made by fixtures/make_llama_cpp_vectors.py.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "unit/weights/gguf_fixture.hpp"
#include "weights/gguf_tokenizer.hpp"
#include "paths.hpp"

namespace patchbay::weights {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;

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

}  // namespace
}  // namespace patchbay::weights
