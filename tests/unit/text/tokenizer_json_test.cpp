#include "text/tokenizer_json.hpp"

#include <gmock/gmock.h>

#include <random>

#include "text/byte_alphabet.hpp"
#include "unit/text/byte_tokenizer_fixture.hpp"

namespace patchbay::text::tokenizer_json_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json added(int id, const std::string& content, const json& flags = json::object()) {
    json out = {{"id", id}, {"content", content}, {"special", true}};
    out.update(flags);
    return out;
}

TEST(Tokenizer, says_by_code_what_is_wrong_and_what_is_not_supported) {
    const std::pair<const char*, StatusCode> cases[] = {
        {R"({"model": 3})", StatusCode::kInvalid},
        {R"({"model": {"type": "BPE", "vocab": {"a": 0}}})", StatusCode::kInvalid},
        {R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})", StatusCode::kInvalid},
        {R"({"model": {"type": "Rhyme", "vocab": {"a": 0}}})", StatusCode::kUnsupported},
        {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "decoder": {"type": "Rhyme"}})",
         StatusCode::kUnsupported},
        {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "normalizer": {"type": "Sequence"}})",
         StatusCode::kInvalid}};
    for (const auto& [text, code] : cases) {
        const auto t = tokenizer_from_json(json::parse(text), json::object(), "folder");
        ASSERT_FALSE(t) << text;
        EXPECT_EQ(t.code(), code) << t.error();
    }
    EXPECT_EQ(Tokenizer::load("/no/such/folder").code(), StatusCode::kNotFound);
    EXPECT_EQ(Tokenizer::load("/proc/self").code(), StatusCode::kNotFound) << "a folder without a tokenizer";
}

TEST(Tokenizer, finds_added_tokens_leftmost_and_longest) {
    const auto t = built(with_added(byte_tokenizer(), {added(300, "<a>"), added(301, "<a><b>"), added(302, "b>x")}));
    EXPECT_THAT(t->encode("<a><b>x<a>"), ElementsAre(301, 'x', 300));
    EXPECT_THAT(t->encode("<a"), ElementsAre('<', 'a'));
    EXPECT_EQ(t->id_of("<a><b>"), 301);
    EXPECT_EQ(t->vocab_size(), 303u);
}

TEST(Tokenizer, leaves_special_tokens_out_of_decoded_text_and_keeps_other_added_ones) {
    const auto t = built(with_added(byte_tokenizer(), {added(300, "<s>"), added(301, "é ok", {{"special", false}})}));
    const auto ids = t->encode("<s>aé ok<s>");
    EXPECT_THAT(ids, ElementsAre(300, 'a', 301, 300));
    EXPECT_EQ(t->decode(ids), "aé ok");
    EXPECT_TRUE(t->is_special(300));
    EXPECT_FALSE(t->is_special(301));
}

TEST(Tokenizer, lets_added_tokens_take_the_white_space_around_them_where_they_say_so) {
    const json both = {{"lstrip", true}, {"rstrip", true}};
    const auto t = built(with_added(byte_tokenizer(), {added(300, "<m>", both), added(301, "<n>")}));
    EXPECT_THAT(t->encode("a \t\u3000<m>\n b"), ElementsAre('a', 300, 'b'));
    EXPECT_THAT(t->encode("a <n> b"), ElementsAre('a', ' ', 301, ' ', 'b'));
    EXPECT_THAT(t->encode("<m>  <m>"), ElementsAre(300, 300));
}

// As Hugging Face tokenizers 0.23: tokens are found first, then take white space.
TEST(Tokenizer, finds_added_tokens_in_the_white_space_that_another_takes) {
    const auto t = built(with_added(byte_tokenizer(), {added(300, "<m>", {{"rstrip", true}}), added(301, "\n"),
                                                       added(302, " y"), added(303, "\t", {{"rstrip", true}})}));
    EXPECT_THAT(t->encode("<m>\n\nx"), ElementsAre(300, 301, 301, 'x'));
    EXPECT_THAT(t->encode("<m>\n  x"), ElementsAre(300, 301, ' ', ' ', 'x'));
    EXPECT_THAT(t->encode("<m>  yx"), ElementsAre(300, 302, 'x'));
    EXPECT_EQ(t->encode(std::string(1'000'000, '\t')).size(), 1'000'000u) << "in linear time";
}

TEST(Tokenizer, takes_single_word_tokens_only_where_no_letter_touches_them) {
    const auto t = built(with_added(byte_tokenizer(), {added(300, "cat", {{"single_word", true}})}));
    EXPECT_THAT(t->encode("cat,"), ElementsAre(300, ','));
    EXPECT_THAT(t->encode("cats"), ElementsAre('c', 'a', 't', 's'));
    EXPECT_THAT(t->encode("\u00e9cat"), ElementsAre(0xC3, 0xA9, 'c', 'a', 't'));
}

TEST(Tokenizer, normalises_text_but_not_the_added_tokens_that_ask_to_be_left_alone) {
    auto j = with_added(byte_tokenizer(), {added(300, "e\u0301!", {{"normalized", false}}),
                                           added(301, "o\u0301!", {{"normalized", true}})});
    j["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}};
    const auto t = built(j);
    EXPECT_EQ(t->decode(t->encode("e\u0301")), "\u00e9");
    EXPECT_THAT(t->encode("e\u0301!"), ElementsAre(300));
    EXPECT_THAT(t->encode("\u00e9!"), ElementsAre(0xC3, 0xA9, '!'));
    EXPECT_THAT(t->encode("\u00f3!"), ElementsAre(301));
    j["normalizer"] = {{"type", "NFKC"}};
    EXPECT_EQ(built(j)->decode(built(j)->encode("\uFB01")), "fi");
}

TEST(Tokenizer, puts_what_the_template_says_around_a_text) {
    auto j = with_added(byte_tokenizer(), {added(300, "<s>"), added(301, "</s>")});
    const auto special = [](const char* name) { return json{{"SpecialToken", {{"id", name}, {"type_id", 0}}}}; };
    const json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    const json table = {{"<s>", {{"id", "<s>"}, {"ids", {300}}}}, {"</s>", {{"id", "</s>"}, {"ids", {301}}}}};
    const json bos = {
        {"type", "TemplateProcessing"}, {"single", {special("<s>"), sequence}}, {"special_tokens", table}};
    j["post_processor"] = {{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}, bos}}};
    EXPECT_THAT(built(j)->encode("a"), ElementsAre(300, 'a'));
    EXPECT_THAT(built(j)->encode(""), ElementsAre(300));
    j["post_processor"] = {{"type", "TemplateProcessing"},
                           {"single", {special("<s>"), sequence, special("</s>")}},
                           {"special_tokens", table}};
    EXPECT_THAT(built(j)->encode("a"), ElementsAre(300, 'a', 301));
    EXPECT_THAT(built(j, {{"bos_token", "<s>"}, {"add_bos_token", false}})->encode("a"), ElementsAre('a', 301));
    EXPECT_THAT(built(j, {{"bos_token", "<s>"}, {"add_bos_token", true}})->encode("a"), ElementsAre(300, 'a', 301));
    j["post_processor"]["single"] = {special("<x>"), sequence};
    EXPECT_THAT(refusal(j), HasSubstr("post_processor: TemplateProcessing: no ids for '<x>'"));
    j["post_processor"] = {{"type", "PairProcessing"}};
    EXPECT_THAT(refusal(j), HasSubstr("post_processor: type 'PairProcessing' is not supported"));
}

TEST(Tokenizer, follows_add_bos_token_and_names_the_end_token) {
    const auto j = with_added(byte_tokenizer(), {added(300, "<s>"), added(301, "</s>")});
    const auto t = built(j, {{"bos_token", {{"content", "<s>"}}}, {"eos_token", "</s>"}, {"add_bos_token", true}});
    EXPECT_THAT(t->encode("a"), ElementsAre(300, 'a'));
    EXPECT_EQ(t->eos(), 301);
    EXPECT_EQ(built(j)->eos(), std::nullopt);
    EXPECT_THAT(refusal(j, {{"add_bos_token", true}}), HasSubstr("no bos_token"));
}

// Ids are the vocabulary's, flags those that tokenizer_config.json lists. What is in no vocabulary would get an id that
// the model may have no row for.
TEST(Tokenizer, takes_the_tokens_of_its_config_that_are_in_the_vocabulary) {
    const json flags = {{"lstrip", true}, {"special", false}};
    const auto j = with_added(byte_tokenizer({{"a", "b"}}), {added(300, "<x>", flags)});
    const json listed = {{"7", {{"content", "ab"}, {"special", true}, {"rstrip", true}}},
                         {"300", {{"content", "<x>"}, {"special", true}}},
                         {"301", {{"content", "<none>"}, {"special", true}}}};
    EXPECT_THAT(built(j)->encode("c <x>ab "), ElementsAre('c', 300, 256, ' '));
    const auto t = built(j, {{"added_tokens_decoder", listed}});
    EXPECT_THAT(t->encode("c <x>ab <none>"), ElementsAre('c', ' ', 300, 256, '<', 'n', 'o', 'n', 'e', '>'));
    EXPECT_TRUE(t->is_special(300));
    EXPECT_EQ(t->decode(std::vector<TokenId>{256, 'c'}), "c");

    // What is only named keeps its flags, and becomes special.
    for (const char* key : {"eos_token", "additional_special_tokens", "extra_special_tokens"}) {
        const json names = std::string(key) == "eos_token" ? json("ab") : json{"ab", {{"content", "<x>"}}, "<none>"};
        const auto named = built(j, {{key, names}, {"bos_token", "<x>"}});
        EXPECT_THAT(named->encode("c <x>"), ElementsAre('c', 300)) << key;
        EXPECT_TRUE(named->is_special(300) && named->is_special(256)) << key;
        EXPECT_FALSE(named->is_special('c')) << key;
    }
    EXPECT_TRUE(built(j, {{"extra_special_tokens", {{"image_token", "ab"}}}})->is_special(256));
}

TEST(Tokenizer, gives_back_any_valid_text_and_any_bytes_that_are_not) {
    const auto t = built(byte_tokenizer({{"Ġ", "t"}, {"h", "e"}, {"Ġt", "he"}, {"Ã", "©"}}));
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        std::string text, bytes;
        for (int i = 0; i < 50; ++i) {
            bytes += static_cast<char>(random());
            uint32_t c = random() % (round % 2 ? 0x110000 : 0x180);
            if (c >= 0xD800 && c < 0xE000) c = ' ';
            if (c < 0x80)
                text += static_cast<char>(c);
            else if (c < 0x800)
                text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
            else if (c < 0x10000)
                text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
                         static_cast<char>(0x80 | (c & 63))};
            else
                text += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
                         static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
        }
        EXPECT_EQ(t->decode(t->encode(text)), text);
        std::string joined;
        for (const TokenId id : t->encode(bytes)) joined += t->token_bytes(id);
        EXPECT_EQ(joined, bytes);
    }
}

TEST(Tokenizer, keeps_ill_formed_bytes_apart_from_the_words_around_them) {
    const auto t = built(byte_tokenizer({{"a", "b"}, {"b", "Ã"}}));
    EXPECT_THAT(t->encode("ab\xC3"
                          "ab"),
                ElementsAre(256, 0xC3, 256));
}

TEST(Tokenizer, knows_nothing_of_ids_outside_its_vocabulary) {
    const auto t = built(byte_tokenizer());
    for (const TokenId id : {-1, 256, INT32_MAX, INT32_MIN}) {
        EXPECT_EQ(t->token_bytes(id), "");
        EXPECT_FALSE(t->is_special(id));
    }
    EXPECT_EQ(t->decode({'a', -5, 999, 'b'}), "ab");
    EXPECT_EQ(t->id_of("nope"), std::nullopt);
}

TEST(Tokenizer, refuses_by_name_what_it_does_not_do) {
    auto j = byte_tokenizer();
    j["model"]["type"] = "Words";
    EXPECT_THAT(refusal(j), HasSubstr("the tokenizer of test: model type 'Words' is not supported (supported: BPE"));
    for (const char* type : {"WordPiece", "WordLevel"}) {
        j["model"]["type"] = type;
        EXPECT_THAT(refusal(j), HasSubstr("with a ByteLevel pre_tokenizer is not supported"));
    }
    j["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
    EXPECT_THAT(refusal(j), HasSubstr("unk_token \"<unk>\" is not in the vocabulary"));
    j = byte_tokenizer();
    j["model"]["dropout"] = 0.1;
    EXPECT_THAT(refusal(j), HasSubstr("dropout 0.1 is not supported"));
    j = byte_tokenizer();
    j["model"]["end_of_word_suffix"] = "</w>";
    EXPECT_THAT(refusal(j), HasSubstr("end_of_word_suffix '</w>' with a ByteLevel pre_tokenizer is not supported"));
    j = byte_tokenizer();
    j["normalizer"] = {{"type", "Bert"}};
    EXPECT_THAT(refusal(j), HasSubstr("normalizer: type 'Bert' is not supported (supported: BertNormalizer,"));
    j = byte_tokenizer();
    j["decoder"] = {{"type", "CTC"}};
    EXPECT_THAT(refusal(j), HasSubstr("decoder: type 'CTC' is not supported (supported: BPEDecoder, ByteFallback,"));
    j["decoder"] = {{"type", "Sequence"}, {"decoders", {{{"type", "Fuse"}}, {{"type", "BPEDecoder"}}}}};
    EXPECT_THAT(refusal(j), HasSubstr("decoder: BPEDecoder after another step is not supported"));
    j["decoder"] = {{"type", "WordPiece"}, {"prefix", ""}};
    EXPECT_THAT(refusal(j), HasSubstr("WordPiece: the mark '' is empty or too long"));
    EXPECT_THAT(refusal(json::array()), HasSubstr("no 'model'"));
    EXPECT_THAT(refusal({{"model", {{"type", "BPE"}, {"merges", json::array()}}}}), HasSubstr("no object 'vocab'"));
    EXPECT_THAT(refusal({{"model", {{"type", "BPE"}, {"vocab", json::object()}}}}), HasSubstr("no list 'merges'"));
}

TEST(Tokenizer, refuses_ids_that_clash_or_are_out_of_range) {
    auto j = byte_tokenizer();
    j["model"]["vocab"]["zz"] = 65;
    EXPECT_THAT(refusal(j), HasSubstr("have the same id 65"));
    for (const json& id : {json(-1), json(1 << 22), json(1e300), json("7"), json(nullptr), json(uint64_t{1} << 63)}) {
        j = byte_tokenizer();
        j["model"]["vocab"]["zz"] = id;
        EXPECT_THAT(refusal(j), HasSubstr("token 'zz' has id " + id.dump()));
    }
    EXPECT_THAT(refusal(with_added(byte_tokenizer(), {added(300, "a")})),
                HasSubstr("added token 'a' has id 300, but the vocabulary gives it 97"));
    EXPECT_THAT(refusal(with_added(byte_tokenizer(), {added(97, "<s>")})), HasSubstr("which is that of 'a'"));
    EXPECT_THAT(refusal(with_added(byte_tokenizer(), {added(300, "")})), HasSubstr("added token 0 has no 'content'"));
    EXPECT_THAT(refusal(with_added(byte_tokenizer(), {added(300, std::string(2000, 'x'))})),
                HasSubstr("longer than 1024"));
}

}  // namespace
}  // namespace patchbay::text::tokenizer_json_test
