#include "text/normalizer.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

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
