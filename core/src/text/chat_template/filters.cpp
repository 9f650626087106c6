// Filters: `value | name(arguments)`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "text/chat_template/builtins.hpp"
#include "text/chat_template/formats.hpp"
#include "text/chat_template/numbers.hpp"
#include "text/chat_template/operators.hpp"
#include "text/chat_template/ordering_filters.hpp"
#include "text/chat_template/strings.hpp"

namespace patchbay::text::chat {
namespace {

using Read = ArgumentReader;
using Filter = Value (*)(Budget&, const Value&, const Read&);

std::string text_within(Budget& budget, const Value& v) {
    budget.steps(weight_of(v));
    std::string out = text_of(v);
    budget.bytes(out.size());
    return out;
}

template <auto change>
Value changed(Budget& budget, const Value& v, const Read&) { return change(text_within(budget, v)); }

Value titled(Budget& budget, const Value& v, const Read&) {
    const std::string s = text_within(budget, v);
    budget.characters(s.size());
    return jinja_title(s);
}

Value trim(Budget& budget, const Value& v, const Read& a) {
    const std::string s = text_within(budget, v);
    const Value* set = a.find(0, "chars");
    if (!set || set->is_none()) return std::string(strip(s, Sides::kBoth));
    return std::string(strip(s, a.text(0, "chars"), Sides::kBoth));
}

Value length(Budget& budget, const Value& v, const Read&) { return length_of(budget, v); }
Value string(Budget& budget, const Value& v, const Read&) { return text_within(budget, v); }
Value list(Budget& budget, const Value& v, const Read&) { return Value::list(items_of(budget, v)); }

JsonStyle json_style(const Read& a) { // by transformers' arguments, not Jinja's
    JsonStyle out;
    out.ascii = a.flag(0, "ensure_ascii", false);
    out.sort_keys = a.flag(3, "sort_keys", false);
    if (const Value* indent = a.find(1, "indent"); indent && !indent->is_none()) {
        if (indent->string()) out.indent = *indent->string();
        else out.indent.emplace(static_cast<size_t>(std::clamp<int64_t>(whole_number(*indent, "indent"), 0, 64)), ' ');
        if (out.indent->size() > 64) refuse("tojson: an indent of more than 64 bytes");
        out.between_items = ",";
    }
    if (const Value* given = a.find(2, "separators"); given && !given->is_none()) {
        const ListData* const both = given->list();
        if (!both || both->items.size() != 2 || !both->items[0].string() || !both->items[1].string())
            refuse("tojson: separators are two strings, got " + python_repr(*given).substr(0, 80));
        out.between_items = *both->items[0].string();
        out.after_keys = *both->items[1].string();
        if (out.between_items.size() + out.after_keys.size() > 64)
            refuse("tojson: separators of more than 64 bytes");
    }
    return out;
}

Value tojson(Budget& budget, const Value& v, const Read& a) {
    budget.steps(weight_of(v));
    const JsonStyle style = json_style(a);
    // What stands before each value, at most: checked before it is made.
    const uint64_t around = (style.indent ? style.indent->size() * depth_of(v) : 0) + style.between_items.size() +
                            style.after_keys.size();
    if (around > 16) budget.bytes(weight_of(v) * around);
    std::string out = json_of(v, style);
    budget.bytes(out.size());
    return out;
}

Value join(Budget& budget, const Value& v, const Read& a) {
    const Value* by = a.find(0, "d");
    const std::string separator = by ? text_within(budget, *by) : "";
    const Value* attribute = a.find(1, "attribute");
    std::string out;
    bool first = true;
    for (const Value& part : items_of(budget, v)) {
        if (!std::exchange(first, false)) out += separator;
        out += text_within(budget, attribute ? by_path(budget, part, *attribute) : part);
        budget.bytes(separator.size());
    }
    return out;
}

Value otherwise(Budget&, const Value& v, const Read& a) {
    const bool use = v.is_undefined() || (a.flag(1, "boolean", false) && !is_true(v));
    if (!use) return v;
    const Value* given = a.find(0, "default_value");
    return given ? *given : Value("");
}

Value to_int(Budget&, const Value& v, const Read& a) {
    if (v.as<LargeInteger>()) return v;
    if (v.as<int64_t>() || v.as<bool>()) return whole_number(v, "int");
    std::optional<double> real;
    if (const double* d = v.as<double>()) real = *d;
    if (v.string()) {
        if (const auto whole = whole_number_in(*v.string(), a.integer(1, "base", 10))) return *whole;
        real = number_in(*v.string());
    }
    if (real && std::abs(*real) < 9.2e18) return static_cast<int64_t>(*real);
    const Value* given = a.find(0, "default");
    return given ? *given : Value(int64_t(0));
}

Value to_float(Budget&, const Value& v, const Read& a) {
    if (v.is_number()) return number_of(v);
    if (v.string())
        if (const auto number = number_in(*v.string())) return *number;
    const Value* given = a.find(0, "default");
    return given ? *given : Value(0.0);
}

Value first(Budget& budget, const Value& v, const Read&) {
    const Values items = items_of(budget, v);
    return items.empty() ? Value::undefined("there is no first item of nothing") : items.front();
}
Value last(Budget& budget, const Value& v, const Read&) {
    const Values items = items_of(budget, v);
    return items.empty() ? Value::undefined("there is no last item of nothing") : items.back();
}

Arguments rest_of(const Read& a, size_t from) {
    Arguments out;
    const Values& all = a.given().positional;
    if (all.size() > from) out.positional.assign(all.begin() + static_cast<long>(from), all.end());
    return out;
}

Value map(Budget& budget, const Value& v, const Read& a) {
    const Value* attribute = a.find(Read::kByName, "attribute");
    const Value* missing = a.find(Read::kByName, "default");
    if (missing && missing->is_none()) missing = nullptr;
    Values out;
    if (!is_true(v)) return Value::list({}); // Jinja does not look whether it is a list
    for (const Value& part : items_of(budget, v)) {
        if (attribute) {
            out.push_back(by_path(budget, part, *attribute, missing));
            continue;
        }
        const std::string& name = a.text(0, "filter");
        if (!is_filter(name)) refuse("no filter named '" + name + "'");
        Arguments rest = rest_of(a, 1);
        rest.named = a.given().named;
        out.push_back(apply_filter(budget, name, part, rest));
    }
    return Value::list(std::move(out));
}

// select, reject: by a test, or truth; the …attr ones of an attribute.
template <bool keep, bool by_attribute>
Value chosen(Budget& budget, const Value& v, const Read& a) {
    constexpr size_t kTest = by_attribute ? 1 : 0;
    Values out;
    if (!is_true(v)) return Value::list({});
    for (Value& part : items_of(budget, v)) {
        const Value seen = by_attribute ? by_path(budget, part, a.need(0, "attribute")) : part;
        bool holds = is_true(seen);
        if (a.places() > kTest) {
            const std::string& name = a.text(kTest, "test");
            if (!is_test(name)) refuse("no test named '" + name + "'");
            holds = apply_test(budget, name, seen, rest_of(a, kTest + 1));
        }
        if (holds == keep) out.push_back(std::move(part));
    }
    return Value::list(std::move(out));
}

Value replaced(Budget& budget, const Value& v, const Read& a) {
    Arguments rest = a.given();
    return *call_method(budget, text_within(budget, v), "replace", rest);
}

Value items(Budget& budget, const Value& v, const Read&) {
    if (v.is_undefined()) return Value::list({});
    if (!v.dict()) refuse("items takes a dict, got " + type_name(v));
    return *call_method(budget, v, "items", {});
}

Value reversed(Budget& budget, const Value& v, const Read&) {
    if (v.string()) {
        budget.bytes(v.string()->size());
        return slice(budget, v, {}, {}, int64_t(-1));
    }
    Values all = items_of(budget, v);
    std::reverse(all.begin(), all.end());
    return Value::list(std::move(all));
}

Value indent(Budget& budget, const Value& v, const Read& a) {
    const std::string s = text_within(budget, v);
    const Value* width = a.find(0, "width");
    const std::string by =
        width && width->string()
            ? *width->string()
            : std::string(static_cast<size_t>(std::clamp<int64_t>(a.integer(0, "width", 4), 0, 1000)), ' ');
    const bool first_line = a.flag(1, "first", false), blank = a.flag(2, "blank", false);
    const std::vector<std::string> lines = split_lines(s + "\n", false);
    budget.characters(s.size() / 4);
    budget.bytes(lines.size() * (by.size() + 1));
    std::string out;
    for (size_t i = 0; i < lines.size(); ++i) {
        if (i > 0) out += '\n';
        if (i == 0 ? first_line : blank || !lines[i].empty()) out += by;
        out += lines[i];
    }
    return out;
}

// leeway: characters above the length that a text may have and stays as it is.
Value truncate(Budget& budget, const Value& v, const Read& a) {
    constexpr int64_t kLeeway = 5; // Jinja's policy
    const Value* given = a.find(0, "length");
    const int64_t length = given ? whole_number(*given, "truncate: length") : 255;
    const int64_t leeway = a.integer(3, "leeway", kLeeway);
    const std::string end = a.find(2, "end") ? a.text(2, "end") : "...";
    const int64_t kept = length - static_cast<int64_t>(code_points(end));
    if (kept < 0) refuse("truncate: a length of " + std::to_string(length) + ", expected at least that of the end");
    if (leeway < 0) refuse("truncate: a leeway of " + std::to_string(leeway) + ", expected at least 0");
    if (const int64_t all = length_of(budget, v); all - leeway <= length) return v;
    if (!v.string()) refuse("truncate takes a string, got a long " + type_name(v));
    const std::string& s = *v.string();
    std::string out = s.substr(0, byte_of(s, static_cast<size_t>(kept)));
    if (const size_t space = out.rfind(' '); space != out.npos && !a.flag(1, "killwords", false)) out.resize(space);
    budget.bytes(out.size() + end.size());
    return out + end;
}

Value escape(Budget& budget, const Value& v, const Read&) {
    std::string out;
    for (const char c : text_within(budget, v)) {
        if (c == '&') out += "&amp;";
        else if (c == '<') out += "&lt;";
        else if (c == '>') out += "&gt;";
        else if (c == '"') out += "&#34;";
        else if (c == '\'') out += "&#39;";
        else out += c;
    }
    budget.bytes(out.size());
    return out;
}

Value absolute(Budget&, const Value& v, const Read&) {
    if (const int64_t* i = v.as<int64_t>(); i && *i != INT64_MIN) return *i < 0 ? -*i : *i;
    if (!v.is_number()) refuse("abs takes a number, got " + type_name(defined(v)));
    if (v.as<bool>()) return whole_number(v, "abs");
    if (v.as<LargeInteger>()) return v;
    return std::abs(number_of(v));
}

Value rounded(Budget&, const Value& v, const Read& a) {
    if (!v.is_number()) refuse("round takes a number, got " + type_name(defined(v)));
    const int64_t precision = std::clamp<int64_t>(a.integer(0, "precision", 0), -20, 20);
    const std::string method = a.find(1, "method") ? a.text(1, "method") : "common";
    const double scale = std::pow(10.0, static_cast<double>(precision));
    if (method == "ceil") return std::ceil(number_of(v) * scale) / scale;
    if (method == "floor") return std::floor(number_of(v) * scale) / scale;
    if (method != "common") refuse("round: the method is common, ceil or floor");
    if (!v.as<double>()) { // as round() of Python has it, a whole number remains one
        if (precision >= 0 && v.as<LargeInteger>()) return v;
        const int64_t whole = whole_number(v, "round");
        if (precision >= 0) return whole;
        return static_cast<int64_t>(std::nearbyint(number_of(v) * scale) / scale);
    }
    if (precision < 0) return std::nearbyint(number_of(v) * scale) / scale;
    if (!std::isfinite(number_of(v))) return v;
    char text[400]; // the decimal digits decide, not those of a product
    std::snprintf(text, sizeof text, "%.*f", static_cast<int>(precision), number_of(v));
    return std::strtod(text, nullptr);
}

Value sum(Budget& budget, const Value& v, const Read& a) {
    const Value* attribute = a.find(0, "attribute");
    const Value* start = a.find(1, "start");
    if (start && !start->is_number()) refuse("sum takes numbers, got " + type_name(defined(*start)));
    bool is_whole = !start || !start->as<double>();
    int64_t whole = start && is_whole ? whole_number(*start, "sum") : 0;
    double real = start ? number_of(*start) : 0;
    for (const Value& part : items_of(budget, v)) {
        const Value n = attribute ? by_path(budget, part, *attribute) : part;
        if (!n.is_number()) refuse("sum takes numbers, got " + type_name(defined(n)));
        if (n.as<double>()) is_whole = false;
        else if (__builtin_add_overflow(whole, whole_number(n, "sum"), &whole)) refuse("sum: too large a number");
        real += number_of(n);
    }
    if (is_whole) return whole;
    return real;
}

Value wordcount(Budget& budget, const Value& v, const Read&) {
    const std::string s = text_within(budget, v);
    budget.characters(s.size());
    return static_cast<int64_t>(words_in(s));
}

Value format(Budget& budget, const Value& v, const Read& a) {
    if (a.given().named.empty())
        return percent_format(budget, text_within(budget, v), Value::tuple(a.given().positional));
    if (a.places() > 0) refuse("format takes values by place or by name, not both");
    DictMaker named;
    for (const auto& [name, value] : a.given().named) named.set(name, value);
    return percent_format(budget, text_within(budget, v), named.made());
}

Value batch(Budget& budget, const Value& v, const Read& a) {
    const int64_t size = whole_number(a.need(0, "linecount"), "batch");
    if (size < 1) refuse("batch takes a size of at least 1");
    Values out, row;
    for (Value& part : items_of(budget, v)) {
        row.push_back(std::move(part));
        if (static_cast<int64_t>(row.size()) == size) out.push_back(Value::list(std::exchange(row, {})));
    }
    if (const Value* fill = a.find(1, "fill_with"); fill && !row.empty()) {
        budget.steps(static_cast<uint64_t>(size));
        row.resize(static_cast<size_t>(size), *fill);
    }
    if (!row.empty()) out.push_back(Value::list(std::move(row)));
    return Value::list(std::move(out));
}

Value attribute(Budget& budget, const Value& v, const Read& a) { return item(budget, v, a.need(0, "name")); }

struct NamedFilter {
    Filter apply;
    std::string_view arguments; // their names, in the order of their places; kAny: it looks at them itself
};
constexpr std::string_view kAny = "*";

const std::map<std::string_view, NamedFilter>& filters() {
    static const std::map<std::string_view, NamedFilter> all = {
        {"abs", {absolute, ""}},
        {"attr", {attribute, "name"}},
        {"batch", {batch, "linecount fill_with"}},
        {"capitalize", {changed<capitalize>, ""}},
        {"count", {length, ""}},
        {"d", {otherwise, "default_value boolean"}},
        {"default", {otherwise, "default_value boolean"}},
        {"dictsort", {sorted_members, "case_sensitive by reverse"}},
        {"e", {escape, ""}},
        {"escape", {escape, ""}},
        {"first", {first, ""}},
        {"float", {to_float, "default"}},
        {"format", {format, kAny}},
        {"groupby", {grouped, "attribute default case_sensitive"}},
        {"indent", {indent, "width first blank"}},
        {"int", {to_int, "default base"}},
        {"items", {items, ""}},
        {"join", {join, "d attribute"}},
        {"last", {last, ""}},
        {"length", {length, ""}},
        {"list", {list, ""}},
        {"lower", {changed<lower>, ""}},
        {"map", {map, kAny}},
        {"max", {greatest, "case_sensitive attribute"}},
        {"min", {least, "case_sensitive attribute"}},
        {"reject", {chosen<false, false>, kAny}},
        {"rejectattr", {chosen<false, true>, kAny}},
        {"replace", {replaced, "old new count"}},
        {"reverse", {reversed, ""}},
        {"round", {rounded, "precision method"}},
        {"safe", {string, ""}},
        {"select", {chosen<true, false>, kAny}},
        {"selectattr", {chosen<true, true>, kAny}},
        {"sort", {sorted, "reverse case_sensitive attribute"}},
        {"string", {string, ""}},
        {"sum", {sum, "attribute start"}},
        {"title", {titled, ""}},
        {"tojson", {tojson, "ensure_ascii indent separators sort_keys"}},
        {"trim", {trim, "chars"}},
        {"truncate", {truncate, "length killwords end leeway"}},
        {"unique", {without_repeats, "case_sensitive attribute"}},
        {"upper", {changed<upper>, ""}},
        {"wordcount", {wordcount, ""}},
    };
    return all;
}

// Refuses arguments that the filter would not read.
void check_arguments(const std::string& filter, std::string_view names, const Arguments& given) {
    if (names == kAny) return;
    const std::vector<std::string> known = split_words(names, -1);
    if (given.positional.size() > known.size())
        refuse(filter + " takes at most " + std::to_string(known.size()) + " arguments, got " +
               std::to_string(given.positional.size()));
    for (const auto& [name, value] : given.named) {
        const auto at = std::ranges::find(known, name);
        if (at == known.end())
            refuse(filter + " has no argument '" + name + "'" +
                   (known.empty() ? "" : ", expected " + std::string(names)));
        if (static_cast<size_t>(at - known.begin()) < given.positional.size())
            refuse(filter + " got '" + name + "' twice");
    }
}

}  // namespace

bool is_filter(std::string_view name) { return filters().contains(name); }

Value apply_filter(Budget& budget, const std::string& name, const Value& of, const Arguments& given) {
    const Budget::Level level(budget);
    budget.steps(1 + given.named.size());
    const NamedFilter& filter = filters().at(name);
    if (!given.positional.empty() || !given.named.empty()) check_arguments(name, filter.arguments, given);
    return filter.apply(budget, of, ArgumentReader(name, given));
}

}  // namespace patchbay::text::chat
