#include <gmock/gmock.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "text/sentencepiece_tokenizer.hpp"

namespace patchbay::text::sentencepiece_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = SentencePieceModel::PieceKind;

std::string varint(uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    return out + static_cast<char>(value);
}
std::string number(uint32_t field, uint64_t value) { return varint(field << 3) + varint(value); }
std::string bytes(uint32_t field, const std::string& content) {
    return varint(field << 3 | 2) + varint(content.size()) + content;
}
std::string piece(const std::string& text, float score, Kind kind = Kind::kNormal) {
    std::string bits;
    for (int shift = 0; shift < 32; shift += 8) bits += static_cast<char>(std::bit_cast<uint32_t>(score) >> shift);
    return bytes(1, bytes(1, text) + varint(2 << 3 | 5) + bits + number(3, static_cast<uint64_t>(kind)));
}

const std::string kSpecials =
    piece("<unk>", 0, Kind::kUnknown) + piece("<s>", 0, Kind::kControl) + piece("</s>", 0, Kind::kControl);
const std::string kBpe = bytes(2, number(3, 2));
// 3: ▁, 4: a, 5: b, 6: ab, 7: ▁a
const std::string kSmall =
    kSpecials + piece("\u2581", -3) + piece("a", -4) + piece("b", -5) + piece("ab", -1) + piece("\u2581a", -2);

std::shared_ptr<const Tokenizer> built(const std::string& file, const json& config = json::object()) {
    const auto model = parse_sentencepiece(file);
    if (!model) throw std::runtime_error(model.error());
    auto made = sentencepiece_tokenizer(*model, config, "test");
    if (!made) throw std::runtime_error(made.error());
    return *made;
}

std::string refusal(const std::string& file, const json& config = json::object()) {
    const auto model = parse_sentencepiece(file);
    if (!model) return model.error();
    const auto made = sentencepiece_tokenizer(*model, config, "test");
    return made ? "(was accepted)" : made.error();
}

TEST(SentencePiece, merges_what_has_the_highest_score_first) {
    const auto t = built(kSmall + kBpe);
    EXPECT_THAT(t->encode("ab a"), ElementsAre(3, 6, 7));
    EXPECT_EQ(t->decode({3, 6, 7}), "ab a");
    EXPECT_EQ(t->eos(), 2);
    EXPECT_EQ(t->id_of("</s>"), 2);
    EXPECT_TRUE(t->is_special(0) && t->is_special(1));
}

TEST(SentencePiece, merges_through_characters_that_are_no_piece) {
    const auto t = built(kSpecials + piece("xy", -1) + piece("xyz", -2) + kBpe + bytes(3, number(3, 0)));
    EXPECT_THAT(t->encode("xyzxyx"), ElementsAre(4, 3, 0));
    EXPECT_THAT(t->encode("xx zxy"), ElementsAre(0, 3)); // a run of the unknown is one token
}

TEST(SentencePiece, finds_special_tokens_in_text_only_where_the_configuration_names_them) {
    EXPECT_THAT(built(kSmall + kBpe)->encode("a</s>"), ElementsAre(7, 0));
    const json named = {{"eos_token", "</s>"}, {"additional_special_tokens", {"<x>"}}};
    EXPECT_THAT(built(kSmall + kBpe, named)->encode("a</s>a"), ElementsAre(7, 2, 7));
    const json listed = {{"added_tokens_decoder", {{"8", {{"content", "<x>"}, {"special", true}}}}}, {"legacy", false}};
    const auto t = built(kSmall + kBpe, listed);
    EXPECT_THAT(t->encode("a<x>a"), ElementsAre(7, 8, 4)); // only the text's begin gets a space
    EXPECT_EQ(t->decode({7, 8, 4}), "aa");
    EXPECT_EQ(t->vocab_size(), 9u);
}

TEST(SentencePiece, begins_with_bos_as_the_class_or_the_configuration_says) {
    EXPECT_THAT(built(kSmall + kBpe, {{"tokenizer_class", "LlamaTokenizer"}})->encode("a"), ElementsAre(1, 7));
    EXPECT_THAT(built(kSmall + kBpe, {{"tokenizer_class", "LlamaTokenizer"}, {"add_bos_token", false}})->encode("a"),
                ElementsAre(7));
    EXPECT_THAT(built(kSmall + kBpe, {{"eos_token", "</s>"}, {"add_eos_token", true}})->encode("a"), ElementsAre(7, 2));
    EXPECT_THAT(refusal(kSmall + kBpe, {{"add_bos_token", true}}),
                HasSubstr("the tokenizer of test: tokenizer_config.json: add_bos"));
}

TEST(SentencePiece, keeps_or_removes_spaces_as_the_model_says) {
    const auto with = [](bool dummy, bool remove) {
        return built(kSmall + kBpe + bytes(3, number(3, dummy) + number(4, remove)));
    };
    EXPECT_THAT(with(true, true)->encode("  b  b "), ElementsAre(3, 5, 3, 5));
    EXPECT_THAT(with(true, false)->encode(" b"), ElementsAre(3, 3, 5));
    EXPECT_THAT(with(false, false)->encode(" b"), ElementsAre(3, 5));
    EXPECT_EQ(with(true, true)->decode({3, 3, 5}), "b");
    EXPECT_EQ(with(true, false)->decode({3, 3, 5}), " b");
    EXPECT_EQ(with(false, false)->decode({3, 3, 5}), "  b");
}

TEST(SentencePiece, refuses_files_that_are_none) {
    EXPECT_THAT(refusal(""), HasSubstr("no SentencePiece model that can be read: there are no pieces"));
    EXPECT_THAT(refusal("IQ== 0\nIg== 1\n"), HasSubstr("no SentencePiece model that can be read"));
    EXPECT_THAT(refusal(kSmall.substr(0, kSmall.size() - 1)), HasSubstr("bytes where"));
    EXPECT_THAT(refusal(std::string("\x0A") + std::string(10, '\xFF')), HasSubstr("a number of more than 64 bits"));
    EXPECT_THAT(refusal("\x0B"), HasSubstr("a field of the wire type 3"));
    EXPECT_THAT(refusal(kSmall + piece("", 0)), HasSubstr("piece 8: it is empty"));
    EXPECT_THAT(refusal(kSmall + piece("\xC3", 0)), HasSubstr("piece 8: it is not UTF-8"));
    EXPECT_THAT(refusal(kSmall + piece("c", std::nanf(""))), HasSubstr("piece 8: its score is not finite"));
    EXPECT_THAT(refusal(kSmall + piece("c", 0, static_cast<Kind>(7))), HasSubstr("piece 8: kind 7 is unknown"));
    EXPECT_THAT(refusal(kSmall + piece("a", 0)), HasSubstr("token 'a' has the ids 4 and 8"));
    EXPECT_THAT(refusal(kSmall + piece(std::string(2000, 'c'), 0)),
                HasSubstr("token 8 of 2000 bytes is longer than 1024"));
    EXPECT_THAT(refusal(piece("a", -1)), HasSubstr("no piece stands for the unknown"));
}

TEST(SentencePiece, refuses_by_name_what_it_does_not_do) {
    EXPECT_THAT(refusal(kSmall + bytes(2, number(3, 3))),
                HasSubstr("model type 3 is not supported (supported: 1, Unigram; 2, BPE)"));
    EXPECT_THAT(refusal(kSmall + bytes(2, number(24, 1))), HasSubstr("treat_whitespace_as_suffix is not supported"));
    EXPECT_THAT(refusal(kSmall + kBpe + piece("c", 0, Kind::kUnused)), HasSubstr("piece 8 is of the kind 'unused'"));
    EXPECT_THAT(refusal(kSmall + bytes(2, number(35, 1))), HasSubstr("no piece stands for the byte 0"));
    EXPECT_THAT(refusal(kSmall + bytes(3, bytes(2, "abc"))), HasSubstr("the charsmap of 3 bytes has no size"));
}

std::string load_error(const std::string& file) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::temp_directory_path() / ("patchbay-tiktoken-" + std::to_string(getpid()));
    fs::create_directories(folder);
    std::ofstream(folder / "tokenizer.model", std::ios::binary) << file;
    const auto t = Tokenizer::load(folder);
    fs::remove_all(folder);
    return t ? "(was accepted)" : t.error();
}

TEST(SentencePiece, is_told_from_the_format_of_tiktoken) {
    for (const char* file : {"IQ== 0\nIg== 1\n", "IHRoZQ== 279", "IQ== 0\r\n"}) {
        EXPECT_THAT(load_error(file), HasSubstr("does not say how text is split")) << file;
        EXPECT_THAT(load_error(file), HasSubstr("add the tokenizer.json of the model's Hugging Face folder"));
    }
    for (const char* file : {"", "IQ==", "IQ== x\n", "I Q\n", " 3\n", "IQ==  0\n"})
        EXPECT_THAT(load_error(file), HasSubstr("no SentencePiece model that can be read")) << file;
    EXPECT_EQ(load_error(kSmall + kBpe), "(was accepted)");
}

TEST(SentencePiece, loads_from_a_folder_with_its_older_list_of_added_tokens) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::temp_directory_path() / ("patchbay-sentencepiece-" + std::to_string(getpid()));
    fs::create_directories(folder);
    std::ofstream(folder / "tokenizer.model", std::ios::binary) << kSmall + kBpe;
    std::ofstream(folder / "added_tokens.json") << R"({"<x>": 8})";
    std::ofstream(folder / "tokenizer_config.json") << R"({"tokenizer_class": "LlamaTokenizer"})";
    const auto t = Tokenizer::load(folder);
    fs::remove_all(folder);
    ASSERT_TRUE(t) << t.error();
    EXPECT_THAT((*t)->encode("a<x>"), ElementsAre(1, 7, 8));
    EXPECT_EQ((*t)->eos(), 2);
}

}  // namespace
}  // namespace patchbay::text::sentencepiece_test
