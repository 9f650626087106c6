#include "weights/gguf_keys.hpp"

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
