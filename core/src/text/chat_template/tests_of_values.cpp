// Tests: `value is name`.
#include <algorithm>
#include <map>

#include "text/chat_template/builtins.hpp"
#include "text/chat_template/strings.hpp"

namespace patchbay::text::chat {
namespace {

using Read = ArgumentReader;
using Test = bool (*)(const Value&, const Read&);

template <class T>
bool is_a(const Value& v, const Read&) { return v.as<T>() != nullptr; }

template <bool wanted>
bool is_bool(const Value& v, const Read&) { return v.as<bool>() && *v.as<bool>() == wanted; }

template <int remainder>
bool parity(const Value& v, const Read&) { return std::abs(whole_number(v, "odd and even") % 2) == remainder; }

bool divisible(const Value& v, const Read& a) {
    const int64_t by = whole_number(a.need(0, "num"), "divisibleby");
    if (by == 0) refuse("divisibleby takes a number other than 0");
    return by == -1 || whole_number(v, "divisibleby") % by == 0;
}

template <class Compare>
bool compared(const Value& v, const Read& a) { return Compare()(compare(v, a.need(0, "other")), 0); }

bool same(const Value& v, const Read& a) { return equal(v, a.need(0, "other")); }
bool different(const Value& v, const Read& a) { return !equal(v, a.need(0, "other")); }
bool same_object(const Value& v, const Read& a) {
    const Value& other = a.need(0, "other");
    return type_name(v) == type_name(other) && equal(v, other);
}

bool is_sequence(const Value& v, const Read&) { return v.string() || v.list() || v.dict(); }
bool is_iterable(const Value& v, const Read&) { return v.string() || v.list() || v.dict() || v.is_undefined(); }

const std::map<std::string_view, Test>& tests() {
    static const std::map<std::string_view, Test> all = {
        {"defined", [](const Value& v, const Read&) { return !v.is_undefined(); }},
        {"undefined", [](const Value& v, const Read&) { return v.is_undefined(); }},
        {"none", [](const Value& v, const Read&) { return v.is_none(); }},
        {"string", [](const Value& v, const Read&) { return v.string() != nullptr; }},
        {"mapping", [](const Value& v, const Read&) { return v.dict() != nullptr; }},
        {"sequence", is_sequence},
        {"iterable", is_iterable},
        {"callable", [](const Value& v, const Read&) { return v.callable() != nullptr; }},
        {"number", [](const Value& v, const Read&) { return v.is_number(); }},
        {"integer", is_a<int64_t>},
        {"float", is_a<double>},
        {"boolean", is_a<bool>},
        {"true", is_bool<true>},
        {"false", is_bool<false>},
        {"odd", parity<1>},
        {"even", parity<0>},
        {"divisibleby", divisible},
        {"eq", same},
        {"equalto", same},
        {"ne", different},
        {"sameas", same_object},
        {"lt", compared<std::less<>>},
        {"lessthan", compared<std::less<>>},
        {"le", compared<std::less_equal<>>},
        {"gt", compared<std::greater<>>},
        {"greaterthan", compared<std::greater<>>},
        {"ge", compared<std::greater_equal<>>},
        {"in", [](const Value& v, const Read& a) { return contains(a.need(0, "seq"), v); }},
        {"lower", [](const Value& v, const Read&) { return lower(text_of(v)) == text_of(v); }},
        {"upper", [](const Value& v, const Read&) { return upper(text_of(v)) == text_of(v); }},
    };
    return all;
}

}  // namespace

bool is_test(std::string_view name) { return tests().contains(name); }

bool apply_test(const std::string& name, const Value& of, const Arguments& given) {
    return tests().at(name)(of, ArgumentReader(name, given));
}

}  // namespace patchbay::text::chat
