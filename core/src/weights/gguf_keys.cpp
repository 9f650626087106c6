#include "weights/gguf_keys.hpp"

#include <cmath>
#include <cstring>

#include "base/numbers.hpp"
#include "base/refusals.hpp"

namespace patchbay::weights {

std::string text_of(float value) { return number_text(value); }
std::string text_of(double value) { return number_text(value); }

Failure GgufKeys::fault(const std::string& key, const std::string& expected) const {
    const GgufValue* const value = find(key);
    return invalid(file.where + ": " + key + " is " + (value ? value->shown() : "not there") + ", expected " +
                   expected);
}

Result<int64_t> GgufKeys::integer(const std::string& key) const {
    const GgufValue* const value = find(key);
    const auto number = value ? value->integer() : std::nullopt;
    if (!number || *number < 0 || *number > INT32_MAX) return fault(key, "a size");
    return *number;
}

Result<double> GgufKeys::number(const std::string& key) const {
    const GgufValue* const value = find(key);
    const auto number = value ? value->number() : std::nullopt;
    if (!number) return fault(key, "a number");
    return *number;
}

Result<> GgufKeys::copy_integer(const std::string& from, const std::string& to) {
    PB_TRY(const int64_t value, integer(own(from)));
    out[to] = std::to_string(value);
    return {};
}

Result<> GgufKeys::copy_number(const std::string& from, const std::string& to) {
    PB_TRY(const double value, number(own(from)));
    out[to] = text_of(static_cast<float>(value));
    return {};
}

Result<> GgufKeys::copy_integer_if_there(const std::string& from, const std::string& to) {
    if (!has(own(from))) return {};
    return copy_integer(from, to);
}

Result<> GgufKeys::copy_number_if_there(const std::string& from, const std::string& to) {
    if (!has(own(from))) return {};
    return copy_number(from, to);
}

Result<> GgufKeys::only(const std::string& key, int64_t value, const std::string& description) const {
    const GgufValue* const given = find(own(key));
    if (!given || given->number() == static_cast<double>(value)) return {};
    return fault(own(key), std::to_string(value) + description);
}

Result<> GgufKeys::at_most(const std::string& key, int64_t value) const {
    if (!has(own(key))) return {};
    PB_TRY(const int64_t given, integer(own(key)));
    if (given > value) return fault(own(key), "at most " + std::to_string(value));
    return {};
}

void GgufKeys::name_it(const char* class_name, const char* model_type) {
    out["architectures.0"] = class_name;
    out["model_type"] = model_type;
}

Result<> GgufKeys::copy_sizes(const char* eps) {
    PB_CHECK(copy_integer("embedding_length", "hidden_size"));
    PB_CHECK(copy_integer("feed_forward_length", "intermediate_size"));
    PB_CHECK(copy_integer("block_count", "num_hidden_layers"));
    PB_CHECK(copy_integer("attention.head_count", "num_attention_heads"));
    PB_CHECK(copy_integer("context_length", "max_position_embeddings"));
    if (eps) return copy_number("attention.layer_norm_epsilon", eps);
    return copy_number("attention.layer_norm_rms_epsilon", "rms_norm_eps");
}

Result<> GgufKeys::copy_kv_heads() {
    const bool there = has(own("attention.head_count_kv"));
    return copy_integer(there ? "attention.head_count_kv" : "attention.head_count", "num_key_value_heads");
}

Result<int64_t> GgufKeys::copy_turning_part(int64_t head_dim, const std::string& to) {
    const std::string key = own("rope.dimension_count");
    int64_t turning = head_dim;
    double part = 1;
    if (has(key)) {
        PB_TRY(turning, integer(key));
        if (turning < 2 || turning > head_dim || turning % 2 != 0)
            return fault(key, "an even number to " + std::to_string(head_dim));
        part = static_cast<double>(turning) / static_cast<double>(head_dim);
        // Models multiply it by the head and drop the fraction.
        if (static_cast<int64_t>(static_cast<double>(head_dim) * part) < turning) part = std::nextafter(part, 1);
    }
    out[to] = text_of(part);
    return turning;
}

Result<> GgufKeys::copy_numbers(const std::string& name, int64_t count, const std::string& to) {
    const auto at = file.header.tensors.find(name);
    if (at == file.header.tensors.end() || at->second.encoding != Encoding::kF32 ||
        at->second.shape != std::vector<int64_t>{count})
        return invalid(file.where + ": tensor '" + name + "' is not " + std::to_string(count) + " f32 numbers");
    for (int64_t i = 0; i < count; ++i) {
        float number;
        std::memcpy(&number, at->second.data + i * 4, 4);
        out[to + "." + std::to_string(i)] = text_of(number);
    }
    return {};
}

}  // namespace patchbay::weights
