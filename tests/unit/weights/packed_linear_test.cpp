// Linears of AWQ and GPTQ checkpoints that the test packs itself, number by number as the formats say.
#include "weights/packed_linear.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <random>

#include "unit/weights/safetensors_fixture.hpp"
#include "unit/weights/weight_specs.hpp"

namespace patchbay::weights::packed_linear_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr WeightForm kStored{PB_F32, Quantization::kAsStored};

struct Linear {
    std::string name;
    int64_t rows, cols;
    std::vector<int32_t> groups = {};  // g_idx; empty: not stored
    uint32_t seed = 1;
};

struct Format {
    std::string method;
    int64_t bits, group_size;
    bool zeros_vary = true;
    std::string more = "";  // of quantization_config

    int64_t size(int64_t cols) const { return group_size < 0 ? cols : group_size; }
    int64_t zero_short() const { return method == "gptq" && more.find("gptq_v2") == more.npos ? 1 : 0; }
    std::string config() const {
        return R"({"quantization_config": {"quant_method": ")" + method + R"(", "bits": )" + std::to_string(bits) +
               R"(, "group_size": )" + std::to_string(group_size) + more + "}}";
    }
};

std::string words(const std::vector<uint32_t>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * 4};
}

class PackedLinears : public ModelFolder {
  protected:
    // Writes the linears and remembers the numbers that they stand for.
    WeightSource source(const Format& format, const std::vector<Linear>& linears) {
        std::vector<WrittenTensor> tensors;
        for (const Linear& linear : linears) add(format, linear, tensors);
        write("model.safetensors", safetensors(tensors));
        write("config.json", format.config());
        auto opened = WeightSource::from_folder(folder);
        if (!opened) throw std::runtime_error(opened.error());
        return *std::move(opened);
    }
    std::map<std::string, std::vector<float>> meant_by_;

  private:
    void add(const Format& f, const Linear& l, std::vector<WrittenTensor>& tensors) {
        constexpr int kAwqOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};  // the number that each place of a word holds
        const bool awq = f.method == "awq";
        const int64_t per = 32 / f.bits, max_code = (1 << f.bits) - 1, size = f.size(l.cols);
        const int64_t groups = (l.cols + size - 1) / size;
        std::mt19937 random(l.seed);
        std::vector<int64_t> q(static_cast<size_t>(l.rows * l.cols)), zeros(static_cast<size_t>(groups * l.rows));
        for (auto& x : q) x = random() & static_cast<uint32_t>(max_code);
        for (auto& z : zeros) z = f.zeros_vary ? 1 + random() % static_cast<uint32_t>(max_code) : (max_code + 1) / 2;
        std::vector<uint16_t> scales;
        for (int64_t i = 0; i < groups * l.rows; ++i) scales.push_back(static_cast<uint16_t>(0x2000 + random() % 2048));
        const auto place_of = [&](int64_t number) {
            return awq ? std::find(kAwqOrder, kAwqOrder + 8, number % 8) - kAwqOrder : number % per;
        };
        std::vector<uint32_t> packed(static_cast<size_t>(l.rows * l.cols / per)),
            packed_zeros(static_cast<size_t>(groups * l.rows / per));
        auto& meant = meant_by_[l.name];
        meant.assign(q.size(), 0);
        for (int64_t r = 0; r < l.rows; ++r) {
            for (int64_t g = 0; g < groups; ++g)
                packed_zeros[static_cast<size_t>(g * (l.rows / per) + r / per)] |=
                    static_cast<uint32_t>(zeros[static_cast<size_t>(g * l.rows + r)] - f.zero_short())
                    << (f.bits * place_of(r));
            for (int64_t c = 0; c < l.cols; ++c) {
                const int64_t number = q[static_cast<size_t>(r * l.cols + c)];
                const int64_t g = l.groups.empty() ? c / size : l.groups[static_cast<size_t>(c)];
                const auto at = static_cast<size_t>(g * l.rows + r);
                meant[static_cast<size_t>(r * l.cols + c)] =
                    static_cast<float>(number - zeros[at]) * f16_to_f32(scales[at]);
                const int64_t word = awq ? c * (l.rows / per) + r / per : c / per * l.rows + r;
                packed[static_cast<size_t>(word)] |= static_cast<uint32_t>(number)
                                                     << (f.bits * place_of(awq ? r : c));
            }
        }
        const std::vector<int64_t> shape =
            awq ? std::vector{l.cols, l.rows / per} : std::vector{l.cols / per, l.rows};
        tensors.push_back({l.name + ".qweight", "I32", shape, words(packed)});
        tensors.push_back({l.name + ".qzeros", "I32", {groups, l.rows / per}, words(packed_zeros)});
        tensors.push_back({l.name + ".scales", "F16", {groups, l.rows}, u16_bytes(scales)});
        if (!l.groups.empty())
            tensors.push_back({l.name + ".g_idx", "I32", {l.cols},
                               words(std::vector<uint32_t>(l.groups.begin(), l.groups.end()))});
    }
};

std::vector<int32_t> shuffled_groups(int64_t cols, int64_t size, uint32_t seed) {
    std::vector<int32_t> out;
    for (int64_t c = 0; c < cols; ++c) out.push_back(static_cast<int32_t>(c / size));
    std::shuffle(out.begin(), out.end(), std::mt19937(seed));
    return out;
}

TEST_F(PackedLinears, mean_what_their_formats_say_as_codes_and_as_real_numbers) {
    const Format formats[] = {{"awq", 4, 32},
                              {"awq", 4, 128},
                              {"gptq", 4, 64},
                              {"gptq", 4, -1},
                              {"gptq", 8, 32},
                              {"gptq", 8, -1, true, R"(, "checkpoint_format": "gptq_v2")"},
                              {"gptq", 4, 32, true, R"(, "checkpoint_format": "gptq_v2")"},
                              {"gptq", 4, 16, false}};
    for (const Format& f : formats) {
        const auto from = source(f, {{"a", 48, 256}});
        const auto codes = from.load(spec(256, {part("a.weight", 48)}), kStored, 0, 1);
        ASSERT_TRUE(codes) << codes.error();
        EXPECT_EQ(codes->dtype, f.bits == 4 ? PB_I4 : PB_I8);
        EXPECT_EQ(codes->group, f.group_size < 0 ? 128 : f.group_size);
        EXPECT_EQ(!codes->offsets.empty(), f.zeros_vary);
        EXPECT_EQ(meant(*codes), meant_by_["a"]) << f.config();
        const auto real = *from.load(spec(256, {part("a.weight", 48)}), {PB_F32}, 0, 1);
        EXPECT_EQ(values(real.data, PB_F32), meant_by_["a"]) << f.config();
        EXPECT_EQ(real.group, 0u);
    }
}

TEST_F(PackedLinears, are_cut_along_rows_and_along_columns_in_whole_groups) {
    for (const Format& f : {Format{"awq", 4, 32}, Format{"gptq", 8, 64}, Format{"gptq", 8, -1}}) {
        const auto from = source(f, {{"a", 48, 256}});
        for (const pb_shard shard : {PB_SHARD_ROWS, PB_SHARD_COLS}) {
            const auto wanted = spec(256, {part("a.weight", 48)}, shard);
            EXPECT_EQ(meant(*from.load(wanted, kStored, 1, 4)),
                      values(from.load(wanted, {PB_F32}, 1, 4)->data, PB_F32));
        }
        if (f.group_size < 0) continue; // one scale for all of a row
        EXPECT_THAT(from.load(spec(256, {part("a.weight", 48)}, PB_SHARD_COLS), kStored, 0, 16).error(),
                    HasSubstr("'a' cannot be cut within its groups of"));
    }
}

TEST_F(PackedLinears, give_their_rows_in_the_order_that_a_model_takes) {
    const auto rows_of = [&](const std::vector<int64_t>& rows, int64_t cols) {
        std::vector<float> out;
        for (const int64_t r : rows)
            for (int64_t c = 0; c < cols; ++c) out.push_back(meant_by_["qkv"][static_cast<size_t>(r * cols + c)]);
        return out;
    };
    for (const Format& f : {Format{"awq", 4, 32}, Format{"gptq", 8, 64}}) {
        const auto from = source(f, {{"qkv", 24, 128}});
        pb_weight_part k = part("qkv.weight", 8, "", 4); // of each 12 rows those from 4 on, in pairs
        k.first_row = 4;
        k.stored_rows = 24;
        pb_weight_spec wanted = spec(128, {k}, PB_SHARD_ROWS);
        wanted.orders[0] = {4, 12, 4};
        const auto all = from.load(wanted, kStored, 0, 1), second = from.load(wanted, kStored, 1, 2);
        ASSERT_TRUE(all && second) << (all ? second : all).error();
        EXPECT_EQ(meant(*all), rows_of({4, 6, 5, 7, 16, 18, 17, 19}, 128)) << f.method;
        EXPECT_EQ(meant(*second), rows_of({16, 18, 17, 19}, 128)) << f.method;
    }
}

TEST_F(PackedLinears, of_compressed_tensors_do_so_too) {
    std::string codes;
    for (char r = 0; r < 4; ++r) codes += std::string(32, r);
    write("model.safetensors", safetensors({{"a.weight", "I8", {4, 32}, codes},
                                            {"a.weight_scale", "F32", {4, 1}, f32_bytes({1, 10, 100, 1000})},
                                            {"a.weight_zero_point", "I8", {4, 1}, {0, 0, 0, 1}}}));
    write("config.json", R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized",
        "config_groups": {"group_0": {"weights": {"num_bits": 8, "strategy": "channel"}}}}})");
    pb_weight_spec wanted = spec(32, {part("a.weight", 4)});
    wanted.orders[0] = {0, 0, 4};
    const auto loaded = WeightSource::from_folder(folder)->load(wanted, kStored, 0, 1);
    ASSERT_TRUE(loaded) << loaded.error();
    std::vector<float> expected;
    for (const float row : {0.0f, 200.0f, 10.0f, 2000.0f}) expected.insert(expected.end(), 32, row);
    EXPECT_EQ(meant(*loaded), expected);
    EXPECT_TRUE(loaded->whole_rows);
}

TEST_F(PackedLinears, keep_their_columns_by_group_with_the_order_that_undoes_it) {
    const Format f{"gptq", 4, 32, true, R"(, "desc_act": true)"};
    const auto groups = shuffled_groups(128, 32, 5), others = shuffled_groups(128, 32, 6);
    const auto from = source(f, {{"q", 16, 128, groups, 1}, {"k", 8, 128, groups, 2}, {"v", 8, 128, others, 3}});
    const auto fused = *from.load(spec(128, {part("q.weight", 16), part("k.weight", 8)}), kStored, 0, 1);
    auto expected = meant_by_["q"];
    expected.insert(expected.end(), meant_by_["k"].begin(), meant_by_["k"].end());
    EXPECT_EQ(fused.group, 32u);
    EXPECT_FALSE(fused.whole_rows);
    EXPECT_EQ(fused.order.size(), 128u);
    EXPECT_EQ(meant(fused), expected);
    // Parts that are ordered each in its own way have no order in common: they become real.
    const auto apart = *from.load(spec(128, {part("q.weight", 16), part("v.weight", 8)}), kStored, 0, 1);
    EXPECT_EQ(apart.group, 0u);
    expected = meant_by_["q"];
    expected.insert(expected.end(), meant_by_["v"].begin(), meant_by_["v"].end());
    EXPECT_EQ(values(apart.data, PB_F32), expected);
    EXPECT_THAT(from.load(spec(128, {part("q.weight", 16)}, PB_SHARD_COLS), kStored, 0, 2).error(),
                HasSubstr("they cannot be split over ranks"));
}

TEST_F(PackedLinears, have_no_order_where_g_idx_counts_up) {
    std::vector<int32_t> groups;
    for (int i = 0; i < 128; ++i) groups.push_back(i / 32);
    const auto from = source({"gptq", 4, 32, true, R"(, "desc_act": true)"}, {{"a", 8, 128, groups}});
    const auto codes = *from.load(spec(128, {part("a.weight", 8)}), kStored, 0, 1);
    EXPECT_THAT(codes.order, IsEmpty());
    EXPECT_EQ(meant(codes), meant_by_["a"]);
}

TEST_F(PackedLinears, are_refused_where_g_idx_does_not_deal_whole_groups) {
    auto groups = shuffled_groups(128, 32, 5);
    const Format f{"gptq", 4, 32, true, R"(, "desc_act": true)"};
    for (const int32_t wrong : {0, 3}) {
        const auto old = std::exchange(*std::find(groups.begin(), groups.end(), 1), wrong);
        EXPECT_THAT(source(f, {{"a", 8, 128, groups}}).load(spec(128, {part("a.weight", 8)}), kStored, 0, 1).error(),
                    HasSubstr("tensor 'a.g_idx' does not deal the columns in groups of 32"));
        *std::find(groups.begin(), groups.end(), wrong) = old;
    }
    EXPECT_THAT(source(f, {{"a", 8, 128}}).load(spec(128, {part("a.weight", 8)}), kStored, 0, 1).error(),
                HasSubstr("no tensor 'a.g_idx'"));
}

TEST_F(PackedLinears, are_not_rounded_once_more_and_make_what_is_real_bf16) {
    const auto from = source({"awq", 4, 32}, {{"a", 8, 64}});
    EXPECT_EQ(from.load(spec(64, {part("a.weight", 8)}), {PB_F32, Quantization::kInt8, 32}, 0, 1).error(),
              "'a.weight' is quantised already (awq), and quantization: int8 rounds real weights (leave it at auto, or "
              "set none to decode them)");
    EXPECT_EQ(*from.native_dtype({}), PB_BF16);
    EXPECT_EQ(from.stored_quantization(), "awq");
}

TEST_F(PackedLinears, say_which_shape_they_have_and_which_they_need) {
    const auto from = source({"gptq", 4, 32}, {{"a", 8, 64}});
    const auto error = [&](int64_t rows, int64_t cols) {
        return from.load(spec(cols, {part("a.weight", rows)}), kStored, 0, 1).error();
    };
    EXPECT_EQ(error(16, 64), "tensor 'a.qweight' is i32 (8, 8) but the model needs i32 (8, 16) (is quantization_config "
                             "of another model?)");
    EXPECT_EQ(error(8, 128), "tensor 'a.qweight' is i32 (8, 8) but the model needs i32 (16, 8) (is quantization_config "
                             "of another model?)");
    EXPECT_EQ(error(8, 60), "'a' is packed by gptq, but its shape (8, 60) is not a multiple of 8");
    const auto narrow = source({"gptq", 4, 8}, {{"a", 8, 64}});
    EXPECT_EQ(narrow.load(spec(64, {part("a.weight", 8)}), kStored, 0, 1).error(),
              "'a' has groups of 8 columns, expected a multiple of 16");
    write("config.json", Format{"gptq", 4, 32}.config());
    EXPECT_THAT(WeightSource::from_folder(folder)->load(spec(64, {part("a.weight", 8)}), kStored, 0, 1).error(),
                HasSubstr("tensor 'a.qzeros' is i32 (8, 1) but the model needs i32 (2, 1)"));
    write("config.json", "{}");
    EXPECT_EQ(WeightSource::from_folder(folder)->load(spec(64, {part("a.weight", 8)}), kStored, 0, 1).error(),
              "there is 'a.qweight' in place of 'a.weight', but config.json has no quantization_config that says how "
              "it is packed");
}

TEST(PackedFormats, are_awq_and_gptq_as_they_are_written) {
    const auto error = [](FlatConfig keys) {
        FlatConfig config;
        for (auto& [key, value] : keys) config["quantization_config." + key] = value;
        const auto read = packed_format(config);
        return read ? "(was read)" : read.error();
    };
    const std::string at = "config.json: quantization_config.";
    EXPECT_FALSE(packed_format({{"hidden_size", "4"}})->has_value());
    EXPECT_EQ(error({{"quant_method", "awq"}, {"version", "gemm"}}), "(was read)");
    EXPECT_EQ(error({{"quant_method", "bitsandbytes"}}),
              at + "quant_method is 'bitsandbytes', expected awq, gptq, compressed-tensors, fp8 or mxfp4 (or real "
                   "weights, which quantization: int8 rounds)");
    EXPECT_EQ(error({{"quant_method", "mxfp4"}}), "(was read)");
    EXPECT_EQ(error({{"quant_method", "fp8"}, {"weight_block_size.0", "128"}, {"weight_block_size.1", "128"}}),
              "(was read)");
    EXPECT_EQ(error({{"quant_method", "fp8"}, {"fmt", "e5m2"}}), at + "fmt is 'e5m2', expected e4m3");
    EXPECT_EQ(error({{"quant_method", "fp8"}, {"weight_block_size.0", "0"}, {"weight_block_size.1", "8"}}),
              at + "weight_block_size is '0, 8', expected two numbers above 0");
    const auto compressed = [&](FlatConfig weights) {
        FlatConfig keys = {{"quant_method", "compressed-tensors"}};
        for (auto& [key, value] : weights) keys["config_groups.group_0.weights." + key] = value;
        return error(keys);
    };
    const std::string its = at + "config_groups.group_0.weights.";
    EXPECT_EQ(compressed({{"num_bits", "4"}, {"strategy", "group"}, {"group_size", "32"}}), "(was read)");
    const auto transformed = [&](const std::string& key, const std::string& value) {
        return error({{"quant_method", "compressed-tensors"}, {"config_groups.group_0.weights.num_bits", "4"},
                      {"transform_config" + key, value}});
    };
    EXPECT_EQ(transformed("", "{}"), "(was read)");
    EXPECT_EQ(transformed("", "null"), "(was read)");
    EXPECT_EQ(transformed(".config_groups", "{}"), "(was read)");
    EXPECT_EQ(transformed(".config_groups.u.type", "hadamard"),
              at + "transform_config is not empty, and transforms (as of SpinQuant and QuIP) are not supported (use a "
                   "checkpoint of the model without them)");
    EXPECT_EQ(compressed({{"num_bits", "2"}}), its + "num_bits is '2', expected 4 or 8");
    EXPECT_EQ(compressed({{"num_bits", "8"}, {"strategy", "token"}}),
              its + "strategy is 'token', expected channel or group");
    EXPECT_EQ(compressed({{"num_bits", "4"}, {"type", "float"}}),
              its + "num_bits is '4', expected 8 for floating-point codes");
    EXPECT_EQ(error({{"quant_method", "compressed-tensors"}, {"format", "nvfp4-pack-quantized"}}),
              at + "format is 'nvfp4-pack-quantized', expected pack-quantized, int-quantized, naive-quantized or "
                   "float-quantized");
    EXPECT_EQ(error({{"quant_method", "compressed-tensors"}, {"config_groups.a.weights.num_bits", "4"},
                     {"config_groups.b.weights.num_bits", "8"}}),
              at + "config_groups is 'a and b', expected one group: linears of several kinds are not read");
    EXPECT_EQ(error({{"quant_method", "awq"}, {"bits", "8"}}), at + "bits is '8', expected 4 for awq");
    EXPECT_EQ(error({{"quant_method", "awq"}, {"version", "gemv"}}), at + "version is 'gemv', expected gemm");
    EXPECT_EQ(error({{"quant_method", "gptq"}, {"bits", "3"}}), at + "bits is '3', expected 4 or 8 for gptq");
    EXPECT_EQ(error({{"quant_method", "gptq"}, {"bits", "four"}}), at + "bits is 'four', expected a whole number");
    EXPECT_EQ(error({{"quant_method", "gptq"}, {"group_size", "0"}}),
              at + "group_size is '0', expected a number of columns, or -1 for all");
    EXPECT_EQ(error({{"quant_method", "gptq"}, {"checkpoint_format", "marlin"}}),
              at + "checkpoint_format is 'marlin', expected gptq or gptq_v2");
    EXPECT_EQ(error({{"quant_method", "gptq"}, {"desc_act", "\"true\""}}),
              at + "desc_act is '\"true\"', expected true or false");
    EXPECT_EQ(error({{"quant_method", "gptq"}, {"bits.0", "4"}}),
              at + "bits is a list, expected a single value");
    for (const char* bad : {"x", "[]", "5"})
        EXPECT_THAT(packed_format({{"quantization_config", bad}}).error(),
                    HasSubstr("config.json: quantization_config is '" + std::string(bad) + "', expected a map"));
}

}  // namespace
}  // namespace patchbay::weights::packed_linear_test
