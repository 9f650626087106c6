#include <algorithm>

#include "base/numbers.hpp"
#include "base/refusals.hpp"
#include "patchbay/sdk/config_shape.hpp"
#include "weights/packed_linear.hpp"

namespace patchbay::weights {
namespace {

constexpr const char* kSection = "quantization_config.";

Failure unread(const std::string& key, const std::string& value, const std::string& expected) {
    return invalid("config.json: " + std::string(kSection) + key + " is " + shown(value) + ", expected " + expected);
}

Result<std::string> value_of(const FlatConfig& config, const std::string& key, const std::string& default_value) {
    auto value = single_value(config, kSection + key);
    if (!value) return prefixed("config.json", value.failure());
    return value->value_or(default_value);
}

Result<int64_t> integer(const FlatConfig& config, const std::string& key, const std::string& default_value) {
    PB_TRY(const std::string text, value_of(config, key, default_value));
    if (const auto value = parse_number<int64_t>(text)) return *value;
    return unread(key, text, "a whole number");
}

using Method = PackedFormat::Method;

// DeepSeek's and Qwen's: a scale for each block; others': one for each tensor.
Result<PackedFormat> fp8_format(const FlatConfig& config) {
    PackedFormat out{Method::kFp8, 8, -1, 0, PackedFormat::Columns::kInOrder};
    PB_TRY(const std::string kind, value_of(config, "fmt", "e4m3"));
    if (kind != "e4m3") return unread("fmt", kind, "e4m3");
    if (!config.contains(std::string(kSection) + "weight_block_size.0")) return out;
    PB_TRY(out.block_rows, integer(config, "weight_block_size.0", ""));
    PB_TRY(out.block_cols, integer(config, "weight_block_size.1", ""));
    if (out.block_rows < 1 || out.block_cols < 1)
        return unread("weight_block_size", std::to_string(out.block_rows) + ", " + std::to_string(out.block_cols),
                      "two numbers above 0");
    return out;
}

// "config_groups.group_0.weights.": of the only group.
Result<std::string> only_group(const FlatConfig& config) {
    const std::string begin = std::string(kSection) + "config_groups.";
    std::string name;
    for (auto at = config.lower_bound(begin); at != config.end() && at->first.starts_with(begin); ++at) {
        const std::string its = at->first.substr(begin.size(), at->first.find('.', begin.size()) - begin.size());
        if (!name.empty() && its != name)
            return unread("config_groups", name + " and " + its, "one group: linears of several kinds are not read");
        name = its;
    }
    if (name.empty()) return unread("config_groups", "", "a group of linears");
    return "config_groups." + name + ".weights.";
}

// Matrices that weights and activations are multiplied by at run time, so that they lose less when they are rounded.
Result<> refuse_transforms(const FlatConfig& config) {
    const std::string name = std::string(kSection) + "transform_config";
    for (auto at = config.lower_bound(name); at != config.end() && at->first.starts_with(name); ++at) {
        const bool is_of_it = at->first.size() == name.size() || at->first[name.size()] == '.';
        if (is_of_it && at->second != "{}" && at->second != "[]" && at->second != "null")
            return unsupported("config.json: " + name + " is not empty, and transforms (as of SpinQuant and QuIP) are "
                               "not supported (use a checkpoint of the model without them)");
    }
    return {};
}

Result<PackedFormat> compressed_format(const FlatConfig& config) {
    PB_CHECK(refuse_transforms(config));
    PackedFormat out{Method::kCompressed, 4, -1, 0, PackedFormat::Columns::kInOrder};
    PB_TRY(const std::string format, value_of(config, "format", "pack-quantized"));
    if (format != "pack-quantized" && format != "int-quantized" && format != "naive-quantized" &&
        format != "float-quantized")
        return unread("format", format, "pack-quantized, int-quantized, naive-quantized or float-quantized");
    PB_TRY(const std::string of, only_group(config));
    PB_TRY(const std::string type, value_of(config, of + "type", "int"));
    PB_TRY(const int64_t bits, integer(config, of + "num_bits", "8"));
    PB_TRY(const std::string strategy, value_of(config, of + "strategy", "channel"));
    if (type == "float") {
        if (bits != 8) return unread(of + "num_bits", std::to_string(bits), "8 for floating-point codes");
        out.method = Method::kFp8;
        out.bits = 8;
        if (strategy == "tensor" || strategy == "channel") return out;
        if (strategy != "block") return unread(of + "strategy", strategy, "tensor, channel or block for fp8");
        PB_TRY(out.block_rows, integer(config, of + "block_structure.0", "128"));
        PB_TRY(out.block_cols, integer(config, of + "block_structure.1", "128"));
        if (out.block_rows < 1 || out.block_cols < 1)
            return unread(of + "block_structure", "a number below 1", "two numbers above 0");
        return out;
    }
    if (type != "int") return unread(of + "type", type, "int or float");
    if (bits != 4 && bits != 8) return unread(of + "num_bits", std::to_string(bits), "4 or 8");
    out.bits = static_cast<uint32_t>(bits);
    if (strategy == "channel") return out;
    if (strategy != "group") return unread(of + "strategy", strategy, "channel or group");
    PB_TRY(out.group_size, integer(config, of + "group_size", "128"));
    if (out.group_size < 1)
        return unread(of + "group_size", std::to_string(out.group_size), "a number of columns");
    return out;
}

}  // namespace

uint32_t PackedFormat::device_group(int64_t cols) const {
    return weights::device_group(group_size < 0 ? cols : group_size, cols);
}

Result<std::optional<PackedFormat>> packed_format(const FlatConfig& config) {
    if (const auto at = config.find("quantization_config"); at != config.end() && at->second != "null")
        return invalid("config.json: quantization_config is " + shown(at->second) +
                       ", expected a map with quant_method");
    const auto first = config.lower_bound(kSection);
    if (first == config.end() || !first->first.starts_with(kSection)) return std::optional<PackedFormat>();
    using Columns = PackedFormat::Columns;
    PackedFormat out{Method::kAwq, 4, 0, 0, Columns::kInOrder};
    PB_TRY(const std::string method, value_of(config, "quant_method", ""));
    if (method == "fp8" || method == "compressed-tensors") {
        PB_TRY(out, method == "fp8" ? fp8_format(config) : compressed_format(config));
        return std::optional(out);
    }
    if (method == "mxfp4") return std::optional(PackedFormat{Method::kMxfp4, 8, 32, 0, Columns::kInOrder});
    if (method != "awq" && method != "gptq")
        return unread("quant_method", method,
                      "awq, gptq, compressed-tensors, fp8 or mxfp4 (or real weights, which quantization: int8 rounds)");
    PB_TRY(const int64_t bits, integer(config, "bits", "4"));
    PB_TRY(out.group_size, integer(config, "group_size", "128"));
    if (out.group_size < 1 && out.group_size != -1)
        return unread("group_size", std::to_string(out.group_size), "a number of columns, or -1 for all");
    if (method == "awq") {
        if (bits != 4) return unread("bits", std::to_string(bits), "4 for awq");
        PB_TRY(const std::string version, value_of(config, "version", "gemm"));
        if (version != "gemm" && version != "GEMM") return unread("version", version, "gemm");
    } else {
        if (bits != 4 && bits != 8) return unread("bits", std::to_string(bits), "4 or 8 for gptq");
        PB_TRY(const std::string format, value_of(config, "checkpoint_format", "gptq"));
        if (format != "gptq" && format != "gptq_v2") return unread("checkpoint_format", format, "gptq or gptq_v2");
        out.method = Method::kGptq;
        out.zero_short = format == "gptq" ? 1 : 0;
        PB_TRY(const std::string by_group, value_of(config, "desc_act", "false"));
        if (by_group != "true" && by_group != "false") return unread("desc_act", by_group, "true or false");
        if (by_group == "true") out.columns = Columns::kByGroup;
    }
    out.bits = static_cast<uint32_t>(bits);
    return std::optional(out);
}

}  // namespace patchbay::weights
