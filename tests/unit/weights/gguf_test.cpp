#include "weights/gguf.hpp"

#include <gmock/gmock.h>

#include "unit/weights/gguf_fixture.hpp"
#include "unit/weights/safetensors_fixture.hpp"

namespace patchbay::weights::gguf_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<GgufHeader> parse(const std::string& file) {
    return parse_gguf({reinterpret_cast<const std::byte*>(file.data()), file.size()}, "m.gguf");
}
std::string error_of(const std::string& file) {
    const auto parsed = parse(file);
    return parsed ? "(was read)" : parsed.error();
}

TEST(Gguf, says_by_code_what_is_wrong_and_what_is_not_supported) {
    GgufBytes old;
    old.version = 1;
    EXPECT_EQ(parse(old.with("")).code(), StatusCode::kUnsupported);
    const std::string whole = GgufBytes().key("u32", 4u).with("");
    EXPECT_EQ(parse("GGML" + whole.substr(4)).code(), StatusCode::kInvalid);
    EXPECT_EQ(parse(whole.substr(0, 40)).code(), StatusCode::kInvalid) << "the end of a key is missing";
    EXPECT_EQ(parse(GgufBytes().key("general.alignment", 7u).with("")).code(), StatusCode::kInvalid);
    EXPECT_EQ(parse(GgufBytes().array("a", GgufType::kU8, 999, "").with("")).code(), StatusCode::kInvalid);
}

TEST(Gguf, reads_values_of_every_type) {
    GgufBytes out;
    out.key("u8", GgufType::kU8, "\xFF")
        .key("i8", GgufType::kI8, "\xFF")
        .key("u16", GgufType::kU16, bytes_of<uint16_t>(65535));
    out.key("i16", GgufType::kI16, bytes_of<int16_t>(-2))
        .key("u32", 4000000000u)
        .key("i32", GgufType::kI32, bytes_of(-3));
    out.key("f32", 0.5f).key("bool", GgufType::kBool, "\1").key("text", "caf\xC3\xA9");
    out.key("u64", GgufType::kU64, bytes_of(uint64_t{1} << 40)).key("i64", GgufType::kI64, bytes_of(int64_t{-1} << 40));
    out.key("f64", GgufType::kF64, bytes_of(0.1)).key("huge", GgufType::kU64, bytes_of(UINT64_MAX));
    out.texts("texts", {"a", "", "ccc"})
        .array("numbers", GgufType::kI16, 2, bytes_of<int16_t>(7) + bytes_of<int16_t>(-7));
    out.array("none", GgufType::kF32, 0, "");
    out.array("nested", GgufType::kArray, 1, bytes_of(GgufType::kU8) + bytes_of(uint64_t{2}) + "ab").key("after", 1u);
    const std::string file = out.with("");
    const auto parsed = parse(file);
    ASSERT_TRUE(parsed) << parsed.error();
    const auto at = [&](const char* key) { return *parsed->find(key); };
    EXPECT_EQ(at("u8").integer(), 255);
    EXPECT_EQ(at("i8").integer(), -1);
    EXPECT_EQ(at("u16").integer(), 65535);
    EXPECT_EQ(at("i16").integer(), -2);
    EXPECT_EQ(at("u32").integer(), 4000000000);
    EXPECT_EQ(at("i32").integer(), -3);
    EXPECT_EQ(at("f32").number(), 0.5);
    EXPECT_EQ(at("f32").integer(), std::nullopt);
    EXPECT_EQ(at("bool").truth(), true);
    EXPECT_EQ(at("bool").number(), std::nullopt);
    EXPECT_EQ(at("text").text(), "caf\xC3\xA9");
    EXPECT_EQ(at("u64").integer(), int64_t{1} << 40);
    EXPECT_EQ(at("i64").number(), -0x1p40);
    EXPECT_EQ(at("f64").number(), 0.1);
    EXPECT_EQ(at("huge").integer(), std::nullopt);
    EXPECT_THAT(*at("texts").texts(), ElementsAre("a", "", "ccc"));
    EXPECT_EQ(at("texts").text(), std::nullopt);
    EXPECT_THAT(*at("numbers").numbers(), ElementsAre(7, -7));
    EXPECT_THAT(*at("none").numbers(), ElementsAre());
    EXPECT_EQ(at("nested").numbers(), std::nullopt);
    EXPECT_EQ(at("nested").shown(), "an array of 1 array");
    EXPECT_EQ(at("after").integer(), 1);
    EXPECT_EQ(parsed->find("not there"), nullptr);
}

TEST(Gguf, places_tensors_behind_the_header_at_their_alignment) {
    for (const uint32_t alignment : {8u, 64u}) {
        GgufBytes out;
        out.key("general.alignment", alignment)
            .tensor("a", {3, 2}, 0, 0)
            .tensor("q", {64}, 8, 64)
            .tensor("odd", {64}, 16, 0);
        const std::string file = out.with(std::string(132, 'x'), alignment);
        const auto parsed = parse(file);
        ASSERT_TRUE(parsed) << parsed.error();
        const GgufTensor &a = parsed->tensors.at("a"), &q = parsed->tensors.at("q");
        EXPECT_THAT(a.shape, ElementsAre(2, 3));
        EXPECT_EQ(a.begin, file.size() - 132);
        EXPECT_EQ(a.end - a.begin, 24u);
        EXPECT_EQ(q.encoding, Encoding::kQ8_0);
        EXPECT_EQ(q.end, file.size());
        EXPECT_EQ(parsed->tensors.at("odd").encoding, std::nullopt);
        EXPECT_EQ(gguf_type_name(parsed->tensors.at("odd").type), std::string("IQ2_XXS"));
    }
}

TEST(Gguf, refuses_what_is_no_gguf_file_of_a_version_that_it_knows) {
    EXPECT_EQ(error_of("GGU"), "m.gguf is not a GGUF file: it does not begin with 'GGUF'");
    EXPECT_EQ(error_of("PK\3\4 and so on"), "m.gguf is not a GGUF file: it does not begin with 'GGUF'");
    GgufBytes out;
    out.version = 1;
    EXPECT_EQ(error_of(out.with("")), "m.gguf is GGUF version 1, expected 2 or 3 (convert the model again)");
    out.version = 4;
    EXPECT_EQ(error_of(out.with("")), "m.gguf is GGUF version 4, expected 2 or 3");
    out.version = 3 << 24;
    EXPECT_EQ(error_of(out.with("")), "m.gguf is a big-endian GGUF file, expected a little-endian one");
    out.version = 2;
    EXPECT_EQ(error_of(out.with("")), "(was read)");
}

TEST(Gguf, refuses_every_file_that_ends_too_early) {
    GgufBytes out;
    out.key("a", 1u).texts("list", {"x", "yy"}).tensor("t", {4}, 0, 0);
    const std::string file = out.with(std::string(16, 'x'));
    ASSERT_EQ(error_of(file), "(was read)");
    for (size_t size = 0; size < file.size(); ++size) EXPECT_NE(error_of(file.substr(0, size)), "(was read)") << size;
    EXPECT_EQ(error_of(file.substr(0, file.size() - 1)),
              "m.gguf: tensor 't' ends at byte 16 of the data, but the file holds only 15 (is it truncated?)");
    EXPECT_THAT(error_of(file.substr(0, 20)), HasSubstr("(is it truncated?) (at byte 16)"));
}

TEST(Gguf, bounds_every_count_and_length_that_a_file_gives) {
    const auto start = [](uint64_t tensors, uint64_t keys) {
        return "GGUF" + bytes_of(3) + bytes_of(tensors) + bytes_of(keys);
    };
    const auto one = [](GgufType type, const std::string& bytes) { return GgufBytes().key("k", type, bytes).with(""); };
    constexpr uint64_t kHuge = UINT64_MAX / 2;
    EXPECT_THAT(error_of(start(kHuge, 0)), HasSubstr("tensors are more than 1048576"));
    EXPECT_THAT(error_of(start(0, kHuge)), HasSubstr("keys are more than 65536"));
    EXPECT_THAT(error_of(start(0, 1) + bytes_of(kHuge)), HasSubstr("more than 65535"));
    EXPECT_THAT(error_of(one(GgufType::kString, bytes_of(kHuge))), HasSubstr("but the file has only"));
    EXPECT_THAT(error_of(one(GgufType::kArray, bytes_of(GgufType::kU64) + bytes_of(kHuge))),
                HasSubstr("(is it truncated?)"));
    EXPECT_THAT(error_of(one(GgufType::kArray, bytes_of(GgufType::kString) + bytes_of(kHuge))),
                HasSubstr("does not fit the file"));
    EXPECT_THAT(error_of(one(static_cast<GgufType>(13), "x")),
                HasSubstr("a value of type 13, which the format does not define"));
    std::string deep;
    for (int i = 0; i < 9; ++i) deep += bytes_of(GgufType::kArray) + bytes_of(uint64_t{1});
    EXPECT_THAT(error_of(one(GgufType::kArray, deep)), HasSubstr("arrays are nested more than 4 deep"));
    EXPECT_THAT(error_of(GgufBytes().key("a", 1u).key("a", 1u).with("")), HasSubstr("the key 'a' is there twice"));
}

TEST(Gguf, checks_each_tensor_s_shape_and_place) {
    const auto with = [](std::vector<uint64_t> sizes, uint32_t type, uint64_t offset) {
        return error_of(GgufBytes().tensor("t", std::move(sizes), type, offset).with(std::string(64, 'x')));
    };
    EXPECT_EQ(with({4, 4}, 0, 0), "(was read)");
    EXPECT_THAT(with({}, 0, 0), HasSubstr("tensor 't' has 0 dimensions, expected 1 to 4"));
    EXPECT_THAT(with({1, 1, 1, 1, 1}, 0, 0), HasSubstr("has 5 dimensions"));
    EXPECT_THAT(with({4, 0}, 0, 0), HasSubstr("has a size of 0"));
    EXPECT_THAT(with({uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0), HasSubstr("has a size of 1099511627776"));
    EXPECT_THAT(with({uint64_t{1} << 40, uint64_t{1} << 23}, 0, 0), HasSubstr("has a size that overflows"));
    EXPECT_THAT(with({33}, 8, 0), HasSubstr("has rows of 33 numbers, which are not whole blocks of Q8_0 (32)"));
    EXPECT_THAT(with({4}, 0, 16), HasSubstr("begins at byte 16 of the data, not a multiple of 32"));
    EXPECT_THAT(with({4}, 0, 64), HasSubstr("ends at byte 80 of the data, but the file holds only 64"));
    EXPECT_THAT(with({4}, 0, UINT64_MAX - 8), HasSubstr("has a size that overflows"));
    EXPECT_THAT(error_of(GgufBytes().tensor("t", {1}, 0, 0).tensor("t", {1}, 0, 0).with("xxxx")),
                HasSubstr("'t' is there twice"));
    EXPECT_EQ(error_of(GgufBytes().key("general.alignment", 24u).with("")),
              "m.gguf: general.alignment is 24, expected a power of two to 1048576");
}

}  // namespace
}  // namespace patchbay::weights::gguf_test
