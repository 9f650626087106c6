#include "grammar/schema_values.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace patchbay::grammar {
namespace {

bool whole_as(int64_t n, double d) {
    return d >= -0x1p63 && d < 0x1p63 && std::trunc(d) == d && static_cast<int64_t>(d) == n;
}

bool whole_as(uint64_t n, double d) {
    return d >= 0 && d < 0x1p64 && std::trunc(d) == d && static_cast<uint64_t>(d) == n;
}

}  // namespace

std::span<const Json> values_of(const Json& s) {
    if (s.contains("const")) return {&s["const"], 1};
    if (s.contains("enum") && s["enum"].is_array()) return s["enum"].get_ref<const Json::array_t&>();
    return {};
}

bool same_value(const Json& a, const Json& b) {
    if (a.is_number_integer() && b.is_number_float()) // as doubles, large ones would be the same
        return a.is_number_unsigned() ? whole_as(a.get<uint64_t>(), b.get<double>())
                                      : whole_as(a.get<int64_t>(), b.get<double>());
    if (a.is_number_float() && b.is_number_integer()) return same_value(b, a);
    if (!a.is_structured() || a.is_array() != b.is_array() || a.is_object() != b.is_object()) return a == b;
    if (a.size() != b.size()) return false;
    if (a.is_array()) return std::equal(a.begin(), a.end(), b.begin(), same_value);
    const auto& members = a.get_ref<const Json::object_t&>();
    return std::all_of(members.begin(), members.end(), [&](const auto& member) {
        const auto at = b.find(member.first);
        return at != b.end() && same_value(member.second, *at);
    });
}

uint64_t cost_of(const Json& v) {
    uint64_t out = 1 + (v.is_object() ? v.size() * v.size() : 0);
    if (v.is_string()) out += v.get_ref<const std::string&>().size() / 32;
    if (v.is_structured())
        for (const Json& part : v) out += cost_of(part);
    return out;
}

uint64_t cost_of(std::span<const Json> a, std::span<const Json> b) {
    uint64_t of_a = 0, of_b = 0;
    for (const Json& v : a) of_a += cost_of(v);
    for (const Json& v : b) of_b += cost_of(v);
    return of_a + of_b + std::min(of_a * b.size(), of_b * a.size());
}

}  // namespace patchbay::grammar
