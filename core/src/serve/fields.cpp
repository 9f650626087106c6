#include "serve/fields.hpp"

#include <algorithm>
#include <cmath>

#include "base/ordered_json.hpp"
#include "base/printable.hpp"
#include "base/suggest.hpp"

namespace patchbay::serve {
namespace {

std::string described(const Json& value) {
    std::string text = value.is_array()    ? "a list"
                       : value.is_object() ? "an object"
                                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return printable(text, 60);
}

}  // namespace

const Json* Fields::find(std::string_view name) const {
    const auto at = object_.find(std::string(name));
    return at == object_.end() || at->is_null() ? nullptr : &*at;
}

void Fields::refuse(std::string_view name, std::string text, StatusCode code) {
    if (refusal_) return;
    const std::string path = prefix_ + std::string(name);
    refusal_ = Refusal{fail(code, path + ": " + std::move(text)), path.substr(0, path.find('['))};
}

void Fields::wrong_type(const std::string& name, const Json& got, std::string_view expected) {
    refuse(name, "got " + described(got) + ", expected " + std::string(expected));
}

const Json* Fields::object(std::string_view name) {
    const Json* value = refusal_ ? nullptr : find(name);
    if (!value || value->is_object()) return value;
    wrong_type(std::string(name), *value, "an object");
    return nullptr;
}

void Fields::expect_only(std::span<const std::string> names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    for (const auto& [name, value] : object_.items())
        if (!value.is_null() && std::ranges::find(names, name) == names.end())
            return refuse(printable(name, 40), "is unknown" + did_you_mean(name, names) + ", expected " + all);
}

void Fields::take(const std::string& name, const Json& value, bool& out) {
    if (!value.is_boolean()) return wrong_type(name, value, "true or false");
    out = value.get<bool>();
}

void Fields::take(const std::string& name, const Json& value, std::string& out) {
    if (!value.is_string()) return wrong_type(name, value, "a string");
    out = value.get<std::string>();
}

void Fields::take(const std::string& name, const Json& value, double& out) {
    if (!value.is_number()) return wrong_type(name, value, "a number");
    out = value.get<double>();
    if (!std::isfinite(out)) wrong_type(name, value, "a finite number");
}

bool Fields::take_integer(const std::string& name, const Json& value, int64_t low, uint64_t high) {
    constexpr double kExact = 9007199254740992; // up to which doubles hold every whole number
    if (value.is_number_float()) { // 4.0, as some programs write 4
        const auto given = value.get<double>();
        if (given == std::floor(given) && std::abs(given) <= kExact)
            return take_integer(name, static_cast<int64_t>(given), low, high);
    }
    const bool fits = value.is_number_unsigned() ? value.get<uint64_t>() <= high
                      : value.is_number_integer()
                          ? value.get<int64_t>() >= low &&
                                (value.get<int64_t>() < 0 || static_cast<uint64_t>(value.get<int64_t>()) <= high)
                          : false;
    if (!fits) wrong_type(name, value, "a whole number of " + std::to_string(low) + " to " + std::to_string(high));
    return fits;
}

Result<Json> parse_body(const std::string& text) {
    auto body = parse_ordered_json(text);
    if (!body) return fail(StatusCode::kInvalid, "the body " + body.error());
    if (!body->is_object())
        return fail(StatusCode::kInvalid, "the body is " + described(*body) + ", expected an object");
    return body;
}

}  // namespace patchbay::serve
