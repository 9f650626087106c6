// Rank files beside what tiktoken says of them, made by fixtures/make_tiktoken_vectors.py.
#include "text/tiktoken.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "paths.hpp"

namespace patchbay::text::tiktoken_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const json& vectors() {
    static const json all = [] {
        const char* given = std::getenv("PATCHBAY_TIKTOKEN_VECTORS"); // another file: for a longer comparison by hand
        const fs::path made = fs::path(kSourceDir) / "tests/unit/text/tiktoken_vectors.json";
        return json::parse(std::ifstream(given ? fs::path(given) : made));
    }();
    return all;
}

// The ranks and then, up to as many as the model's file has, tokens that occur in no text: bytes that UTF-8 lacks.
std::string rank_file(const json& scheme) {
    std::string out = vectors()["ranks"].get<std::string>();
    auto count = static_cast<size_t>(std::count(out.begin(), out.end(), '\n'));
    for (size_t rank = count; count < scheme["base"].get<size_t>(); ++rank) {
        const auto is_special = [&](const json& id) { return id == rank; }; // p50k_base has one between
        if (std::any_of(scheme["special"].begin(), scheme["special"].end(), is_special)) continue;
        count += 1;
        const std::string number = std::to_string(1'000'000 + rank); // "//" is of bytes that begin with FF
        out += "//" + number + "AAA " + std::to_string(rank) + "\n";
    }
    return out;
}

Result<std::shared_ptr<const Tokenizer>> load(const json& scheme) {
    return tiktoken_tokenizer(rank_file(scheme), scheme["config"], scheme["file"], "folder/tokenizer.model");
}

TEST(Tiktoken, gives_the_ids_of_tiktoken_for_each_model) {
    for (const json& scheme : vectors()["schemes"]) {
        const auto t = load(scheme);
        ASSERT_TRUE(t) << scheme["name"] << ": " << t.error();
        ASSERT_GE(scheme["cases"].size(), 60u);
        for (const json& one : scheme["cases"]) {
            const auto text = one[0].get<std::string>();
            EXPECT_EQ((*t)->encode_inside(text), one[1].get<std::vector<TokenId>>())
                << scheme["name"] << ": " << one[0];
        }
        for (const auto& [token, id] : scheme["special"].items()) {
            EXPECT_EQ((*t)->id_of(token), id.get<TokenId>()) << scheme["name"] << ": " << token;
            EXPECT_TRUE((*t)->is_special(id.get<TokenId>())) << token;
        }
        EXPECT_EQ((*t)->vocab_size(), scheme["vocab_size"].get<uint32_t>()) << scheme["name"];
    }
}

TEST(Tiktoken, of_llama_begins_with_bos_and_ends_at_end_of_text) {
    for (const json& scheme : vectors()["schemes"]) {
        if (scheme["name"] != "llama3" && scheme["name"] != "llama4") continue;
        const auto t = load(scheme);
        ASSERT_TRUE(t) << t.error();
        EXPECT_EQ((*t)->encode("").front(), scheme["special"]["<|begin_of_text|>"].get<TokenId>());
        EXPECT_EQ((*t)->eos(), scheme["special"]["<|end_of_text|>"].get<TokenId>());
        EXPECT_EQ((*t)->decode((*t)->encode("the engine <|eot_id|>x\xF0\x9F\x98\x80")), scheme["name"] == "llama3"
                      ? "the engine x\xF0\x9F\x98\x80"
                      : "the engine <|eot_id|>x\xF0\x9F\x98\x80");
    }
}

TEST(Tiktoken, names_the_line_that_cannot_be_read) {
    EXPECT_THAT(*parse_tiktoken("IQ== 0\r\n\nIg== 2\n"), ElementsAre("!", "", "\""));
    const auto error = [](const std::string& file) { return parse_tiktoken(file).error(); };
    EXPECT_THAT(error("IQ== 0\nIg= 1\n"), HasSubstr("line 2: got 'Ig= 1', expected a token in base64 and its rank"));
    EXPECT_THAT(error("IQ== 0\nIg==\n"), HasSubstr("line 2"));
    EXPECT_THAT(error("IQ== -1"), HasSubstr("line 1"));
    EXPECT_THAT(error("IQ== 0\nIg== 0\n"), HasSubstr("line 2: rank 0 is there twice"));
    EXPECT_THAT(error("IQ== 4194304\n"), HasSubstr("rank 4194304 is above 4194303"));
    EXPECT_THAT(error(std::string(4000, 'A') + " 1\n"), HasSubstr("a token of 3000 bytes is longer than 512"));
}

TEST(Tiktoken, refuses_a_file_whose_model_is_not_known) {
    const json config = json::object({{"tokenizer_class", "ChatGLM4Tokenizer"}});
    const auto made = tiktoken_tokenizer("IQ== 0\n", config, "tokenizer.model", "folder/tokenizer.model");
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), HasSubstr("a rank file of 1 tokens and the class 'ChatGLM4Tokenizer'"));
    EXPECT_THAT(made.error(), HasSubstr("supported: Llama 3, of 128000 tokens"));
}

}  // namespace
}  // namespace patchbay::text::tiktoken_test
