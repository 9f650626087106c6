#include "weights/checkpoint.hpp"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstring>
#include <fstream>

#include "unit/weights/safetensors_fixture.hpp"

namespace patchbay::weights::checkpoint_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointFolder : public ModelFolder {
  protected:
    std::string error_of(const std::string& file_content) const {
        write("model.safetensors", file_content);
        return error();
    }
    std::string error() const {
        const auto opened = Checkpoint::open(folder);
        return opened ? "(was opened)" : opened.error();
    }
    std::string header_error(const std::string& entry, const std::string& data = std::string(8, 'x')) const {
        return error_of(safetensors("{\"t\":" + entry + "}", data));
    }
};

TEST_F(CheckpointFolder, gives_each_tensor_its_dtype_shape_and_bytes) {
    write("model.safetensors",
          safetensors({{"a", "F32", {2, 1}, f32_bytes({1.5f, -2})}, {"b", "BF16", {3}, u16_bytes({0x3F80, 0, 1})}}));
    const auto opened = Checkpoint::open(folder);
    ASSERT_TRUE(opened) << opened.error();
    const auto a = (*opened)->tensor("a"), b = (*opened)->tensor("b");
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->encoding, Encoding::kF32);
    EXPECT_THAT(a->shape, ElementsAre(2, 1));
    float second;
    std::memcpy(&second, a->data + 4, 4);
    EXPECT_EQ(second, -2);
    EXPECT_EQ(b->encoding, Encoding::kBf16);
    EXPECT_EQ(b->bytes, 6u);
    EXPECT_THAT((*opened)->names(), ElementsAre("a", "b"));
}

TEST_F(CheckpointFolder, says_by_code_what_is_wrong_what_is_not_there_and_what_is_not_supported) {
    const auto code = [&] { return Checkpoint::open(folder).code(); };
    EXPECT_EQ(code(), StatusCode::kNotFound) << "an empty folder";
    EXPECT_EQ(Checkpoint::open(folder / "none").code(), StatusCode::kNotFound);
    EXPECT_EQ(Checkpoint::open(folder / "none.gguf").code(), StatusCode::kNotFound);
    write("model.safetensors.index.json", R"({"weight_map": {"t": "one.safetensors"}})");
    EXPECT_EQ(code(), StatusCode::kNotFound) << "its shard";
    write("model.safetensors.index.json", R"({"weight_map": {"t": "../one.safetensors"}})");
    EXPECT_EQ(code(), StatusCode::kInvalid);
    for (const char* header : {"no JSON", R"({"t": 3})", R"({"t": {"dtype": "F32", "shape": [1]}})",
                               R"({"t": {"dtype": "F32", "shape": [9], "data_offsets": [0, 8]}})"}) {
        write("model.safetensors", safetensors(header, std::string(8, 'x')));
        EXPECT_EQ(code(), StatusCode::kInvalid) << header;
    }
    write("model.safetensors", safetensors({{"t", "F64", {1}, std::string(8, 'x')}}));
    const auto opened = Checkpoint::open(folder);
    ASSERT_TRUE(opened) << opened.error();
    EXPECT_EQ((*opened)->tensor("t").code(), StatusCode::kUnsupported);
    EXPECT_EQ((*opened)->tensor("u").code(), StatusCode::kInvalid);
    EXPECT_EQ(read_model_config(folder / "none").code(), StatusCode::kNotFound);
    EXPECT_EQ(read_model_config(folder / "model.safetensors").code(), StatusCode::kInvalid);
}

TEST_F(CheckpointFolder, names_a_near_miss_of_a_tensor_that_is_not_there) {
    write("model.safetensors", safetensors({{"model.norm.weight", "F32", {1}, f32_bytes({1})}}));
    const auto opened = Checkpoint::open(folder);
    ASSERT_TRUE(opened);
    EXPECT_THAT((*opened)->tensor("model.norn.weight").error(),
                HasSubstr("no tensor 'model.norn.weight' in the checkpoint (did you mean 'model.norm.weight'?)"));
}

TEST_F(CheckpointFolder, refuses_an_unsupported_dtype_only_when_that_tensor_is_asked_for) {
    write("model.safetensors",
          safetensors({{"new", "F4", {3}, "xy"}, {"f8", "F8_E5M2", {2}, "xy"}, {"ok", "F32", {1}, f32_bytes({1})}}));
    const auto opened = Checkpoint::open(folder);
    ASSERT_TRUE(opened) << opened.error();
    EXPECT_TRUE((*opened)->tensor("ok"));
    EXPECT_THAT((*opened)->tensor("f8").error(), HasSubstr("has dtype F8_E5M2, which is not supported"));
    EXPECT_THAT((*opened)->tensor("new").error(), HasSubstr("has dtype F4"));
}

// Of the mapping that holds the address.
uint64_t resident_kilobytes(const void* address) {
    std::ifstream maps("/proc/self/smaps");
    bool here = false;
    for (std::string line; std::getline(maps, line);) {
        uint64_t begin = 0, end = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
            here = begin <= reinterpret_cast<uint64_t>(address) && reinterpret_cast<uint64_t>(address) < end;
        if (uint64_t kilobytes = 0; here && std::sscanf(line.c_str(), "Rss: %lu kB", &kilobytes) == 1) return kilobytes;
    }
    return 0;
}

TEST_F(CheckpointFolder, lets_go_of_what_was_read_and_reads_it_again) {
    constexpr size_t kNumbers = 1 << 20;
    std::vector<float> numbers(kNumbers);
    for (size_t i = 0; i < kNumbers; ++i) numbers[i] = static_cast<float>(i);
    write("model.safetensors", safetensors({{"a", "F32", {kNumbers}, f32_bytes(numbers)}}));
    const auto checkpoint = *Checkpoint::open(folder);
    const TensorView a = *checkpoint->tensor("a");
    EXPECT_EQ(std::memcmp(a.data, numbers.data(), a.bytes), 0);
    EXPECT_GT(resident_kilobytes(a.data), 4000u);
    checkpoint->forget("a");
    EXPECT_LT(resident_kilobytes(a.data), 100u);
    EXPECT_EQ(std::memcmp(a.data, numbers.data(), a.bytes), 0);
    checkpoint->forget("b"); // of no tensor
}

TEST_F(CheckpointFolder, reads_the_shards_that_an_index_names) {
    write("one.safetensors", safetensors({{"a", "F32", {1}, f32_bytes({1})}}));
    write("two.safetensors", safetensors({{"b", "F32", {1}, f32_bytes({2})}}));
    write("model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
    const auto opened = Checkpoint::open(folder);
    ASSERT_TRUE(opened) << opened.error();
    EXPECT_TRUE((*opened)->has("a") && (*opened)->has("b"));

    write("model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}})");
    EXPECT_THAT(error(), HasSubstr("one.safetensors lacks tensor 'b'"));
    write("model.safetensors.index.json", R"({"weight_map": {"a": "three.safetensors"}})");
    EXPECT_THAT(error(), AllOf(HasSubstr("three.safetensors is missing"), HasSubstr("places 'a' in it")));
    for (const char* bad : {"../one.safetensors", "/etc/passwd", "sub/one.safetensors", "", ".."}) {
        write("model.safetensors.index.json", std::string(R"({"weight_map": {"a": ")") + bad + "\"}}");
        EXPECT_THAT(error(), HasSubstr("is not a plain file name")) << bad;
    }
    write("model.safetensors.index.json", "[]");
    EXPECT_THAT(error(), HasSubstr("no 'weight_map'"));
    write("model.safetensors.index.json", "{\"weight_map\": {\"a\": 3}}");
    EXPECT_THAT(error(), HasSubstr("is not a string"));
}

TEST_F(CheckpointFolder, refuses_a_tensor_that_two_shards_hold) {
    write("one.safetensors", safetensors({{"a", "F32", {1}, f32_bytes({1})}}));
    write("two.safetensors", safetensors({{"a", "F32", {1}, f32_bytes({1})}, {"b", "F32", {1}, f32_bytes({2})}}));
    write("model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
    EXPECT_THAT(error(), HasSubstr("tensor 'a' is in both"));
}

TEST_F(CheckpointFolder, says_what_a_folder_without_safetensors_holds) {
    EXPECT_THAT(error(), HasSubstr("no model.safetensors and no model.safetensors.index.json in"));
    write("pytorch_model.bin", "x");
    EXPECT_THAT(error(), HasSubstr("only pytorch_model.bin (convert it to safetensors)"));
    write("model-00001-of-00002.safetensors", "x");
    EXPECT_THAT(error(), HasSubstr("only model-00001-of-00002.safetensors (is the index file missing?)"));
    folder /= "none";
    EXPECT_THAT(error(), HasSubstr("no model folder"));
    folder = folder.parent_path();
}

TEST_F(CheckpointFolder, refuses_a_file_that_is_empty_or_something_else) {
    EXPECT_THAT(error_of(""), AllOf(HasSubstr("model.safetensors is not a safetensors file"), HasSubstr("0 bytes")));
    EXPECT_THAT(error_of("short"), HasSubstr("is not a safetensors file"));
    EXPECT_THAT(error_of("this is a text file, named as if it were not"),
                HasSubstr("byte 8 does not open a JSON header"));
    std::filesystem::remove(folder / "model.safetensors");
    std::filesystem::create_directory(folder / "model.safetensors");
    EXPECT_THAT(error(), HasSubstr("not a regular file"));
}

TEST_F(CheckpointFolder, refuses_a_header_larger_than_the_file_or_the_limit) {
    EXPECT_THAT(error_of(u64_bytes(100) + "{}"),
                HasSubstr("the header says that it has 100 bytes, but the file has only 2"));
    EXPECT_THAT(error_of(u64_bytes(UINT64_MAX) + "{}"), HasSubstr("over the format's limit"));
    EXPECT_THAT(error_of(u64_bytes(100'000'001) + "{}"), HasSubstr("over the format's limit of 100000000"));
}

TEST_F(CheckpointFolder, refuses_a_truncated_file_wherever_it_ends) {
    const std::string whole = safetensors({{"a", "F32", {4}, f32_bytes({1, 2, 3, 4})}});
    for (size_t size = 0; size < whole.size(); ++size)
        EXPECT_NE(error_of(whole.substr(0, size)), "(was opened)") << size;
    EXPECT_THAT(error_of(whole.substr(0, whole.size() - 1)), HasSubstr("the file holds only 15 (is it truncated?)"));
    EXPECT_EQ(error_of(whole), "(was opened)");
}

TEST_F(CheckpointFolder, refuses_a_header_that_is_no_json_or_no_object_or_too_deep) {
    EXPECT_THAT(error_of(safetensors("{\"t\": nul}", "")), HasSubstr("model.safetensors (header):1:"));
    EXPECT_THAT(error_of(safetensors("{\"t\":" + std::string(5000, '[') + "}", "")),
                HasSubstr("nested more than 8 levels"));
    EXPECT_THAT(header_error("3"), HasSubstr("tensor 't' is not an object"));
}

TEST_F(CheckpointFolder, refuses_entries_that_do_not_fit_together) {
    EXPECT_THAT(header_error(R"({"shape":[2],"data_offsets":[0,8]})"), HasSubstr("has no 'dtype'"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","data_offsets":[0,8]})"), HasSubstr("has no 'shape'"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":[2]})"), HasSubstr("has no 'data_offsets'"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), HasSubstr("has no 'data_offsets'"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})"),
                HasSubstr("has no 'data_offsets'"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), HasSubstr("'shape' holds -2"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), HasSubstr("'shape' holds 2.0"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":3,"data_offsets":[0,8]})"), HasSubstr("'shape' is not a list"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":[1],"data_offsets":[8,4]})"),
                HasSubstr("ends at byte 4, before it begins at 8"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"),
                HasSubstr("the file holds only 8"));
    EXPECT_THAT(
        header_error(R"({"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551615]})"),
        HasSubstr("the file holds only"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})"),
                HasSubstr("takes 8 bytes, but its shape needs 4 of F32"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]})"),
                HasSubstr("size overflows"));
    EXPECT_THAT(header_error(R"({"dtype":"F32","shape":[9223372036854775807,2],"data_offsets":[0,8]})"),
                HasSubstr("size overflows"));
    EXPECT_EQ(header_error(R"({"dtype":"F64","shape":[],"data_offsets":[0,8]})"), "(was opened)");
}

class ModelConfigFolder : public ModelFolder {};

TEST_F(ModelConfigFolder, flattens_nested_keys_lists_and_scalars) {
    write("config.json", R"({"architectures": ["LlamaForCausalLM"], "rope_scaling": {"factor": 8.0, "type": null},
                             "tie": true, "eps": 1e-05, "hidden_size": 256, "eos_token_id": [1, 2], "empty": {}})");
    const auto config = read_model_config(folder);
    ASSERT_TRUE(config) << config.error();
    const FlatConfig expected{{"architectures.0", "LlamaForCausalLM"},
                              {"rope_scaling.factor", "8.0"},
                              {"rope_scaling.type", "null"},
                              {"tie", "true"},
                              {"eps", "1e-05"},
                              {"hidden_size", "256"},
                              {"eos_token_id.0", "1"},
                              {"eos_token_id.1", "2"},
                              {"empty", "{}"}};
    EXPECT_EQ(*config, expected);
}

TEST_F(ModelConfigFolder, keeps_numbers_as_they_are_written) {
    write("config.json", R"({"size": 99999999999999999999, "theta": 5e5, "list": [[-1, 2.50], {"a": [-0.0]}, 3]})");
    const auto config = read_model_config(folder);
    ASSERT_TRUE(config) << config.error();
    const FlatConfig expected{{"size", "99999999999999999999"}, {"theta", "5e5"},       {"list.0.0", "-1"},
                              {"list.0.1", "2.50"},             {"list.1.a.0", "-0.0"}, {"list.2", "3"}};
    EXPECT_EQ(*config, expected);
}

TEST_F(ModelConfigFolder, keeps_types_apart) {
    write("config.json", R"({"number": 8, "text": "8", "word": "silu", "yes": "true", "none": "null", "nan": "nan",
                             "list": [], "map": {"in": {}, "also": [[]]}, "like a list": "[]", "quote": "\"a"})");
    const auto config = read_model_config(folder);
    ASSERT_TRUE(config) << config.error();
    const FlatConfig expected{{"number", "8"},        {"text", "\"8\""},   {"word", "silu"},
                              {"yes", "\"true\""},    {"none", "\"null\""}, {"nan", "\"nan\""},
                              {"list", "[]"},         {"map.in", "{}"},     {"map.also.0", "[]"},
                              {"like a list", "\"[]\""}, {"quote", "\"\"a\""}};
    EXPECT_EQ(*config, expected);
    write("config.json", "{}");
    EXPECT_EQ(*read_model_config(folder), FlatConfig());
}

TEST(SingleValue, refuses_another_shape_by_key) {
    const FlatConfig config{{"a", "1"}, {"b.0", "x"}, {"c.d", "null"}, {"e", "{}"}};
    EXPECT_EQ(*single_value(config, "a"), "1");
    EXPECT_EQ(*single_value(config, "b.0"), "x");
    for (const char* missing : {"c.d", "z", "e.f", "b.7"}) EXPECT_EQ(*single_value(config, missing), std::nullopt);
    EXPECT_EQ(single_value(config, "a.b").error(), "a is '1', expected a map");
    EXPECT_EQ(single_value(config, "a.0").error(), "a is '1', expected a list");
    EXPECT_EQ(single_value(config, "b").error(), "b is a list, expected a single value");
    EXPECT_EQ(single_value(config, "b.x").error(), "b is a list, expected a map");
    EXPECT_EQ(single_value(config, "c").error(), "c is a map, expected a single value");
    EXPECT_EQ(single_value(config, "e.0").error(), "e is an empty map, expected a list");
}

TEST_F(ModelConfigFolder, has_a_bounded_number_of_values) {
    const auto list = [&](size_t values) {
        std::string text = "{\"a\": [0";
        for (size_t i = 1; i < values; ++i) text += ",0";
        write("config.json", text + "]}");
        return read_model_config(folder);
    };
    ASSERT_TRUE(list(kMaxConfigKeys)) << list(kMaxConfigKeys).error();
    EXPECT_EQ(list(kMaxConfigKeys)->size(), kMaxConfigKeys);
    EXPECT_THAT(list(kMaxConfigKeys + 1).error(), HasSubstr("config.json has more than 65536 values"));
}

TEST_F(ModelConfigFolder, has_each_key_once) {
    write("config.json", R"({"rope_scaling": {"rope_type": "linear", "factor": 4}, "rope_scaling": null})");
    EXPECT_THAT(read_model_config(folder).error(), HasSubstr("config.json: 'rope_scaling' is given twice"));
    write("config.json", R"({"a": [{"b": 1}, {"b": 2, "b": 3}]})");
    EXPECT_THAT(read_model_config(folder).error(), HasSubstr("config.json: 'a.1.b' is given twice"));
}

TEST_F(ModelConfigFolder, says_where_it_is_missing_or_broken) {
    EXPECT_THAT(read_model_config(folder).error(), HasSubstr("no config.json in"));
    EXPECT_THAT(read_model_config(folder / "none").error(), HasSubstr("no model folder"));
    write("config.json", "{\n  \"hidden_size\": 256,\n  oops\n}");
    EXPECT_THAT(read_model_config(folder).error(), AllOf(HasSubstr("config.json:3:"), HasSubstr("invalid JSON")));
    EXPECT_THAT(read_model_config(folder / "config.json").error(), HasSubstr("is not a folder"));
    write("config.json", "[1]");
    EXPECT_THAT(read_model_config(folder).error(), HasSubstr("is not a JSON object"));
    write("config.json", "{\"a\": 1e999}");
    EXPECT_THAT(read_model_config(folder).error(), HasSubstr("invalid JSON"));
    write("config.json", "{\"a\":" + std::string(100, '['));
    EXPECT_THAT(read_model_config(folder).error(), HasSubstr("nested more than 32 levels"));
    write("config.json", "{\"a\": \"\xFF\"}");
    EXPECT_THAT(read_model_config(folder).error(), HasSubstr("invalid JSON"));
    write("config.json", "");
    EXPECT_THAT(read_model_config(folder).error(), HasSubstr("config.json:1:1"));
}

}  // namespace
}  // namespace patchbay::weights::checkpoint_test
