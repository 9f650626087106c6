#include "text/normalizer.hpp"

#include <gmock/gmock.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>

#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "text/characters.hpp"

namespace patchbay::text::normalizer_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string normalized(const json& part, const std::string& text) {
    const auto made = Normalizer::from_json(part);
    if (!made) return "refused: " + made.error();
    std::string storage;
    return std::string(made->apply(text, TextBegin::kYes, storage));
}

json sequence(const std::vector<json>& parts) { return {{"type", "Sequence"}, {"normalizers", parts}}; }
json replace(const std::string& key, const std::string& from, const std::string& to) {
    return {{"type", "Replace"}, {"pattern", {{key, from}}}, {"content", to}};
}

TEST(Normalizer, does_each_step_on_what_the_one_before_left) {
    const json all = sequence({{{"type", "NFD"}},
                               {{"type", "StripAccents"}},
                               {{"type", "Lowercase"}},
                               {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}},
                               replace("Regex", "\\s+", "_"),
                               {{"type", "Prepend"}, {"prepend", ">"}}});
    EXPECT_EQ(normalized(all, " \u3000\u00c9a \n B\u0308 "), ">ea_b");
    EXPECT_EQ(normalized(all, "  "), ""); // nothing is put in front of nothing
    EXPECT_EQ(normalized(nullptr, " A"), " A");
    EXPECT_EQ(normalized({{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}}, " a "), " a");
    EXPECT_EQ(normalized({{"type", "Lowercase"}}, "\u0130\u03a3\u01c5"), "i\u0307\u03c3\u01c6");
    EXPECT_EQ(normalized(replace("String", ".", ""), "a.b."), "ab");
}

// What ICU makes of a text by itself.
std::string plain(const std::string& form, const std::string& text) {
    UErrorCode error = U_ZERO_ERROR;
    const icu::Normalizer2* const normalizer = form == "NFC"    ? icu::Normalizer2::getNFCInstance(error)
                                               : form == "NFD"  ? icu::Normalizer2::getNFDInstance(error)
                                               : form == "NFKC" ? icu::Normalizer2::getNFKCInstance(error)
                                                                : icu::Normalizer2::getNFKDInstance(error);
    if (U_FAILURE(error)) return "no data";
    std::string out;
    icu::StringByteSink<std::string> sink(&out);
    normalizer->normalizeUTF8(0, text, sink, nullptr, error);
    return U_SUCCESS(error) ? out : "refused";
}

// All characters whose decomposition begins with a mark; some are made of several.
std::u32string all_marks() {
    UErrorCode error = U_ZERO_ERROR;
    const icu::Normalizer2* const decomposing = icu::Normalizer2::getNFKDInstance(error);
    std::u32string out;
    for (char32_t c = 0x300; c <= 0x10FFFF; ++c)
        if (!decomposing->hasBoundaryBefore(static_cast<UChar32>(c))) out += c;
    return out;
}

TEST(Normalizer, puts_long_runs_of_marks_in_the_order_that_icu_does) {
    const std::u32string marks = all_marks(), between = U"a\u00e1\u1e69\u3042\uac00\u0fa5\u0e33 ";
    for (const char32_t composed : std::u32string(U"\u0340\u0341\u0343\u0344\u0f73\u0f75\u0f81\uff9e\uff9f"))
        EXPECT_NE(marks.find(composed), marks.npos) << static_cast<uint32_t>(composed);
    std::mt19937 random(7);
    const auto any_of = [](const std::u32string& from, size_t which) { return from[which % from.size()]; };
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (int run = 0; run < 3; ++run) {
            append_character(text, any_of(between, random()));
            const size_t kinds = 1 + random() % 5, from = random(), count = random() % 100;
            const bool composed = random() % 2 == 0;
            const std::u32string few = U"\u0344\u0f73\u0f71\u0f75\u0f81\uff9e\u0301\u0316\u0345";
            for (size_t i = 0; i < count; ++i) {
                const size_t which = from + random() % kinds * 7;
                append_character(text, composed ? any_of(few, which) : any_of(marks, which));
            }
        }
        for (const char* form : {"NFC", "NFD", "NFKC", "NFKD"})
            ASSERT_EQ(normalized({{"type", form}}, text), plain(form, text)) << form << " of " << text;
    }
}

TEST(Normalizer, leaves_bytes_that_are_not_utf8_to_icu) {
    std::string text = "a\xFF";
    for (int i = 0; i < 40; ++i) text += "\u0301\u0316";
    text += "\xCC \xE0\xBD";
    for (const char* form : {"NFC", "NFD", "NFKC", "NFKD"})
        EXPECT_EQ(normalized({{"type", form}}, text), plain(form, text)) << form;
}

// ICU alone takes time that grows as the square of such a run: minutes here.
TEST(Normalizer, takes_runs_of_marks_of_any_length) {
    constexpr size_t kMarks = 200'000;
    using Text = const char*;
    for (const auto& [high, low] : {std::pair<Text, Text>{"\u0301", "\u0316"}, {"\u0f74", "\u0f73"},
                                    {"\u0345", "\u0344"}, {"\u0301", "\uff9e"}}) {
        std::string text = "a";
        for (size_t i = 0; i < kMarks; ++i) text += high;
        for (size_t i = 0; i < kMarks; ++i) text += low;
        for (const char* form : {"NFC", "NFD", "NFKC", "NFKD"}) {
            const std::string once = normalized({{"type", form}}, text);
            EXPECT_GE(once.size(), kMarks * std::string(low).size()) << form;
            EXPECT_TRUE(normalized({{"type", form}}, once) == once) << form;
        }
    }
    std::string text = "a";
    for (const char* mark : {"\u0301", "\u0316"})
        for (size_t i = 0; i < kMarks; ++i) text += mark;
    EXPECT_EQ(normalized({{"type", "BertNormalizer"}}, text), "a");
}

TEST(Normalizer, leaves_out_a_step_that_would_blow_the_text_up) {
    const json doubling = replace("String", "a", "aa");
    EXPECT_EQ(normalized(sequence(std::vector<json>(60, doubling)), "a").size(), 4096u);
    EXPECT_EQ(normalized(replace("String", "a", std::string(100'000, 'b')), "aaa"), "aaa");
}

TEST(Normalizer, refuses_by_name_what_it_does_not_do) {
    EXPECT_THAT(normalized({{"type", "Nmr"}}, ""),
                HasSubstr("type 'Nmr' is not supported (supported: BertNormalizer, Lowercase, NFC"));
    EXPECT_THAT(normalized(sequence(std::vector<json>(65, {{"type", "NFC"}})), ""), HasSubstr("more than 64 steps"));
    EXPECT_THAT(normalized({{"type", "Prepend"}}, ""), HasSubstr("'prepend' is not a string but null"));
    EXPECT_THAT(normalized({{"type", "Replace"}, {"content", ""}}, ""), HasSubstr("Replace has no 'pattern'"));
    EXPECT_THAT(normalized({{"type", "Precompiled"}, {"precompiled_charsmap", "????"}}, ""), HasSubstr("not base64"));
    EXPECT_THAT(normalized({{"type", "Precompiled"}, {"precompiled_charsmap", "AAA"}}, ""), HasSubstr("not base64"));
    EXPECT_THAT(normalized({{"type", "Precompiled"}, {"precompiled_charsmap", "AAAAAA=="}}, ""),
                HasSubstr("charsmap of 4 bytes has a trie of 0"));
    EXPECT_THAT(normalized({{"type", "Precompiled"}, {"precompiled_charsmap", ""}}, ""), HasSubstr("has no size"));
}

TEST(Charsmap, never_leaves_the_arrays_of_a_hostile_file) {
    // A root that points far away; a leaf whose replacement lies far away.
    for (const uint32_t root : {0xFFFFFC00u, 0x00000400u, 0u}) {
        std::string blob{16, 0, 0, 0};
        for (const uint32_t unit : {root, root | 'a' | 0x100u, root, 0x7FFFFFFFu})
            for (int shift = 0; shift < 32; shift += 8) blob += static_cast<char>(unit >> shift);
        const auto map = Charsmap::parse(blob + std::string("x\0y", 3));
        ASSERT_TRUE(map) << map.error();
        std::string out;
        EXPECT_TRUE(map->apply("abc a\u0301\u00e9", 100, out));
        EXPECT_EQ(out, "abc a\u0301\u00e9");
    }
    EXPECT_THAT(Charsmap::parse(std::string("\4\0\0\0\0\0\0\0\xFF", 9)).error(), HasSubstr("not UTF-8"));
    EXPECT_THAT(Charsmap::parse(std::string("\5\0\0\0\0\0\0\0\0", 9)).error(), HasSubstr("a trie of 5"));
}

}  // namespace
}  // namespace patchbay::text::normalizer_test
