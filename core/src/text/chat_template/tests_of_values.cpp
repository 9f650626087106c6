// Tests: `value is name`.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "text/chat_template/builtins.hpp"
#include "text/chat_template/operators.hpp"
#include "text/chat_template/strings.hpp"

namespace patchbay::text::chat {
namespace {

using Read = ArgumentReader;
using Test = bool (*)(Budget&, const Value&, const Read&);

template <class T>
bool is_a(Budget&, const Value& v, const Read&) { return v.as<T>() != nullptr; }

template <bool wanted>
bool is_bool(Budget&, const Value& v, const Read&) { return v.as<bool>() && *v.as<bool>() == wanted; }

template <int remainder>
bool parity(Budget&, const Value& v, const Read&) {
    if (const double* d = v.as<double>()) return std::abs(std::fmod(*d, 2)) == remainder;
    return std::abs(whole_number(v, "odd and even") % 2) == remainder;
}

bool divisible(Budget&, const Value& v, const Read& a) {
    const int64_t by = whole_number(a.need(0, "num"), "divisibleby");
    if (by == 0) refuse("divisibleby takes a number other than 0");
    if (const double* d = v.as<double>()) return std::fmod(*d, static_cast<double>(by)) == 0;
    return by == -1 || whole_number(v, "divisibleby") % by == 0;
}

// Tests that compare, by the operators that they stand for; null: another test.
const char* comparison_of(std::string_view test) {
    constexpr std::pair<std::string_view, const char*> kComparisons[] = {
        {"==", "=="}, {"eq", "=="}, {"equalto", "=="}, {"!=", "!="}, {"ne", "!="},         {"<", "<"},
        {"lt", "<"},  {"le", "<="}, {"lessthan", "<"}, {"<=", "<="}, {"greaterthan", ">"}, {">", ">"},
        {"gt", ">"},  {"ge", ">="}, {">=", ">="},      {"in", "in"}};
    const auto at = std::ranges::find(kComparisons, test, &std::pair<std::string_view, const char*>::first);
    return at == std::end(kComparisons) ? nullptr : at->second;
}

bool same_object(Budget& budget, const Value& v, const Read& a) {
    const Value& other = a.need(0, "other");
    return type_name(v) == type_name(other) && apply_comparison(budget, "==", v, other);
}

template <auto change>
bool is_changed_by(Budget& budget, const Value& v, const Read&) {
    budget.steps(weight_of(v));
    const std::string text = text_of(v);
    budget.characters(text.size());
    return change(text);
}

bool is_iterable(Budget&, const Value& v, const Read&) {
    return v.string() || v.list() || v.dict() || v.is_undefined();
}
template <bool (*exists)(std::string_view)>
bool names(Budget&, const Value& v, const Read&) { return v.string() && exists(*v.string()); }

const std::map<std::string_view, Test>& tests() {
    static const std::map<std::string_view, Test> all = {
        {"defined", [](Budget&, const Value& v, const Read&) { return !v.is_undefined(); }},
        {"undefined", [](Budget&, const Value& v, const Read&) { return v.is_undefined(); }},
        {"none", [](Budget&, const Value& v, const Read&) { return v.is_none(); }},
        {"string", [](Budget&, const Value& v, const Read&) { return v.string() != nullptr; }},
        {"mapping", [](Budget&, const Value& v, const Read&) { return v.dict() != nullptr; }},
        {"sequence", is_iterable},
        {"iterable", is_iterable},
        {"callable", [](Budget&, const Value& v, const Read&) { return v.callable() || v.is_undefined(); }},
        {"number", [](Budget&, const Value& v, const Read&) { return v.is_number(); }},
        {"integer",
         [](Budget&, const Value& v, const Read&) { return v.as<int64_t>() || v.as<LargeInteger>(); }},
        {"float", is_a<double>},
        {"boolean", is_a<bool>},
        {"true", is_bool<true>},
        {"false", is_bool<false>},
        {"odd", parity<1>},
        {"even", parity<0>},
        {"divisibleby", divisible},
        {"sameas", same_object},
        {"lower", is_changed_by<is_lower>},
        {"upper", is_changed_by<is_upper>},
        {"filter", names<is_filter>},
        {"test", names<is_test>},
    };
    return all;
}

}  // namespace

bool is_test(std::string_view name) { return comparison_of(name) || tests().contains(name); }

bool apply_test(Budget& budget, const std::string& name, const Value& of, const Arguments& given) {
    const ArgumentReader a(name, given);
    if (const char* op = comparison_of(name)) return apply_comparison(budget, op, of, a.need(0, "other"));
    return tests().at(name)(budget, of, a);
}

}  // namespace patchbay::text::chat
