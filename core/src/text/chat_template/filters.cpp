// Filters: `value | name(arguments)`.
#include <algorithm>
#include <cmath>
#include <map>

#include "text/chat_template/builtins.hpp"
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

// of.a.b.0 by "a.b.0".
Value by_path(const Value& of, const Value& path) {
    if (!path.string()) return item(of, path);
    Value at = of;
    size_t from = 0;
    while (true) {
        const size_t end = std::min(path.string()->find('.', from), path.string()->size());
        const std::string part = path.string()->substr(from, end - from);
        const bool number = !part.empty() && part.size() < 10 &&
                            std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
        at = item(at, number ? Value(static_cast<int64_t>(std::stol(part))) : Value(part));
        if (end == path.string()->size()) return at;
        from = end + 1;
    }
}

template <auto change>
Value changed(Budget& budget, const Value& v, const Read&) { return change(text_within(budget, v)); }

Value trim(Budget& budget, const Value& v, const Read& a) {
    const std::string s = text_within(budget, v);
    const Value* set = a.find(0, "chars");
    if (!set || set->is_none()) return std::string(strip(s, Sides::kBoth));
    return std::string(strip(s, a.text(0, "chars"), Sides::kBoth));
}

Value length(Budget&, const Value& v, const Read&) { return length_of(v); }
Value string(Budget& budget, const Value& v, const Read&) { return text_within(budget, v); }
Value same(Budget&, const Value& v, const Read&) { return v; }
Value list(Budget& budget, const Value& v, const Read&) { return Value::list(items_of(budget, v)); }

Value tojson(Budget& budget, const Value& v, const Read& a) {
    budget.steps(weight_of(v));
    const Value* indent = a.find(1, "indent");
    if (!indent && a.places() == 1) indent = a.find(0, "indent"); // Jinja's own first argument
    const bool spaced = indent && !indent->is_none() && !indent->as<bool>();
    const int64_t width = spaced ? std::clamp<int64_t>(whole_number(*indent, "indent"), 0, 64) : -1;
    std::string out =
        json_of(v, static_cast<int>(width), a.flag(9, "sort_keys", false), a.flag(9, "ensure_ascii", false));
    budget.bytes(out.size());
    return out;
}

Value join(Budget& budget, const Value& v, const Read& a) {
    const Value* by = a.find(0, "d");
    const std::string separator = by ? text_of(*by) : "";
    const Value* attribute = a.find(1, "attribute");
    std::string out;
    bool first = true;
    for (const Value& part : items_of(budget, v)) {
        if (!std::exchange(first, false)) out += separator;
        out += text_within(budget, attribute ? by_path(part, *attribute) : part);
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
    if (const double* d = v.as<double>(); d && std::abs(*d) < 9e18) return static_cast<int64_t>(*d);
    if (v.as<int64_t>() || v.as<bool>()) return whole_number(v, "int");
    if (v.string()) {
        const std::string s(strip(*v.string(), Sides::kBoth));
        char* end = nullptr;
        errno = 0;
        const long long whole = std::strtoll(s.c_str(), &end, 10);
        if (!s.empty() && *end == 0 && errno == 0) return static_cast<int64_t>(whole);
        const double d = std::strtod(s.c_str(), &end);
        if (!s.empty() && *end == 0 && std::abs(d) < 9e18) return static_cast<int64_t>(d);
    }
    return a.integer(0, "default", 0);
}

Value to_float(Budget&, const Value& v, const Read& a) {
    if (v.is_number()) return number_of(v);
    if (v.string()) {
        const std::string s(strip(*v.string(), Sides::kBoth));
        char* end = nullptr;
        const double d = std::strtod(s.c_str(), &end);
        if (!s.empty() && *end == 0) return d;
    }
    const Value* given = a.find(0, "default");
    return given ? *given : Value(0.0);
}

Value first(Budget& budget, const Value& v, const Read&) {
    const Values items = items_of(budget, defined(v));
    return items.empty() ? Value::undefined("there is no first item of nothing") : items.front();
}
Value last(Budget& budget, const Value& v, const Read&) {
    const Values items = items_of(budget, defined(v));
    return items.empty() ? Value::undefined("there is no last item of nothing") : items.back();
}

Arguments rest_of(const Read& a, size_t from) {
    Arguments out;
    const Values& all = a.given().positional;
    if (all.size() > from) out.positional.assign(all.begin() + static_cast<long>(from), all.end());
    return out;
}

Value map(Budget& budget, const Value& v, const Read& a) {
    const Value* attribute = a.find(99, "attribute");
    const Value* missing = a.find(99, "default");
    Values out;
    if (!is_true(v)) return Value::list({}); // Jinja does not look whether it is a list
    for (const Value& part : items_of(budget, v)) {
        if (attribute) {
            Value got = by_path(part, *attribute);
            out.push_back(got.is_undefined() && missing ? *missing : std::move(got));
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
        const Value seen = by_attribute ? by_path(part, a.need(0, "attribute")) : part;
        bool holds = is_true(seen);
        if (a.places() > kTest) {
            const std::string& name = a.text(kTest, "test");
            if (!is_test(name)) refuse("no test named '" + name + "'");
            holds = apply_test(name, seen, rest_of(a, kTest + 1));
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

bool before(const Value& a, const Value& b, bool case_sensitive) {
    if (!case_sensitive && a.string() && b.string()) return lower(*a.string()) < lower(*b.string());
    return compare(a, b) < 0;
}

Value dictsort(Budget& budget, const Value& v, const Read& a) {
    if (!v.dict()) refuse("dictsort takes a dict, got " + type_name(defined(v)));
    budget.steps(weight_of(v) * 8);
    const bool case_sensitive = a.flag(0, "case_sensitive", false), reverse = a.flag(2, "reverse", false);
    const bool by_value = a.find(1, "by") && a.text(1, "by") == "value";
    auto all = v.dict()->items;
    std::stable_sort(all.begin(), all.end(), [&](const auto& x, const auto& y) {
        const Value &l = by_value ? x.second : x.first, &r = by_value ? y.second : y.first;
        return reverse ? before(r, l, case_sensitive) : before(l, r, case_sensitive);
    });
    Values out;
    for (const auto& [key, value] : all) out.push_back(Value::tuple({key, value}));
    return Value::list(std::move(out));
}

Value sort(Budget& budget, const Value& v, const Read& a) {
    budget.steps(weight_of(v) * 8);
    const bool reverse = a.flag(0, "reverse", false), case_sensitive = a.flag(1, "case_sensitive", false);
    const Value* attribute = a.find(2, "attribute");
    Values all = items_of(budget, v);
    const auto key = [&](const Value& x) { return attribute ? by_path(x, *attribute) : x; };
    std::stable_sort(all.begin(), all.end(), [&](const Value& x, const Value& y) {
        return reverse ? before(key(y), key(x), case_sensitive) : before(key(x), key(y), case_sensitive);
    });
    return Value::list(std::move(all));
}

Value unique(Budget& budget, const Value& v, const Read&) {
    Values out;
    for (Value& part : items_of(budget, v)) {
        budget.steps(out.size());
        if (std::ranges::none_of(out, [&](const Value& o) { return equal(o, part); })) out.push_back(std::move(part));
    }
    return Value::list(std::move(out));
}

Value reversed(Budget& budget, const Value& v, const Read&) {
    if (v.string()) return slice(v, {}, {}, int64_t(-1));
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
    budget.bytes(static_cast<uint64_t>(std::count(s.begin(), s.end(), '\n') + 1) * by.size());
    std::string out;
    for (size_t at = 0, line = 0; at <= s.size(); ++line) {
        const size_t end = std::min(s.find('\n', at), s.size());
        if (line > 0) out += '\n';
        if (line == 0 ? first_line : blank || end > at) out += by;
        out += s.substr(at, end - at);
        at = end + 1;
    }
    return out;
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
    return std::abs(number_of(v));
}

Value rounded(Budget&, const Value& v, const Read& a) {
    if (!v.is_number()) refuse("round takes a number, got " + type_name(defined(v)));
    const double scale =
        std::pow(10.0, static_cast<double>(std::clamp<int64_t>(a.integer(0, "precision", 0), -15, 15)));
    const std::string method = a.find(1, "method") ? a.text(1, "method") : "common";
    const double scaled = number_of(v) * scale;
    const double whole = method == "ceil"    ? std::ceil(scaled)
                         : method == "floor" ? std::floor(scaled)
                                             : std::nearbyint(scaled);
    return whole / scale;
}

Value sum(Budget& budget, const Value& v, const Read& a) {
    const Value* attribute = a.find(0, "attribute");
    int64_t whole = 0;
    double real = 0;
    bool is_whole = true;
    for (const Value& part : items_of(budget, v)) {
        const Value n = attribute ? by_path(part, *attribute) : part;
        if (!n.is_number()) refuse("sum takes numbers, got " + type_name(defined(n)));
        if (n.as<double>()) is_whole = false;
        else if (__builtin_add_overflow(whole, whole_number(n, "sum"), &whole)) refuse("sum: too large a number");
        real += number_of(n);
    }
    if (is_whole) return whole;
    return real;
}

template <bool largest>
Value extreme(Budget& budget, const Value& v, const Read&) {
    Values all = items_of(budget, v);
    if (all.empty()) return Value::undefined("there is no least or largest item of nothing");
    const auto less = [](const Value& x, const Value& y) { return compare(x, y) < 0; };
    return largest ? *std::max_element(all.begin(), all.end(), less) : *std::min_element(all.begin(), all.end(), less);
}

Value wordcount(Budget& budget, const Value& v, const Read&) {
    return static_cast<int64_t>(split_words(text_within(budget, v), -1).size());
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

Value attribute(Budget&, const Value& v, const Read& a) { return item(v, a.need(0, "name")); }

const std::map<std::string_view, Filter>& filters() {
    static const std::map<std::string_view, Filter> all = {
        {"abs", absolute}, {"attr", attribute}, {"batch", batch}, {"capitalize", changed<capitalize>},
        {"count", length}, {"d", otherwise}, {"default", otherwise}, {"dictsort", dictsort}, {"e", escape},
        {"escape", escape}, {"first", first}, {"float", to_float}, {"indent", indent}, {"int", to_int},
        {"items", items}, {"join", join}, {"last", last}, {"length", length}, {"list", list},
        {"lower", changed<lower>}, {"map", map}, {"max", extreme<true>}, {"min", extreme<false>},
        {"reject", chosen<false, false>}, {"rejectattr", chosen<false, true>}, {"replace", replaced},
        {"reverse", reversed}, {"round", rounded}, {"safe", same}, {"select", chosen<true, false>},
        {"selectattr", chosen<true, true>}, {"sort", sort}, {"string", string}, {"sum", sum},
        {"title", changed<title>}, {"tojson", tojson}, {"trim", trim}, {"unique", unique},
        {"upper", changed<upper>}, {"wordcount", wordcount},
    };
    return all;
}

}  // namespace

bool is_filter(std::string_view name) { return filters().contains(name); }

Value apply_filter(Budget& budget, const std::string& name, const Value& of, const Arguments& given) {
    budget.steps(1);
    return filters().at(name)(budget, of, ArgumentReader(name, given));
}

const Value* ArgumentReader::find(size_t place, std::string_view name) const {
    if (place < given_.positional.size()) return &given_.positional[place];
    for (const auto& [given, value] : given_.named)
        if (given == name) return &value;
    return nullptr;
}

const Value& ArgumentReader::need(size_t place, std::string_view name) const {
    if (const Value* found = find(place, name)) return *found;
    refuse(std::string(function_) + " lacks its argument '" + std::string(name) + "'");
}

const std::string& ArgumentReader::text(size_t place, std::string_view name) const {
    const Value& v = defined(need(place, name));
    if (!v.string())
        refuse(std::string(function_) + ": " + std::string(name) + " is a string, got " + type_name(v));
    return *v.string();
}

int64_t ArgumentReader::integer(size_t place, std::string_view name, int64_t otherwise) const {
    const Value* found = find(place, name);
    return found && !found->is_none() ? whole_number(*found, std::string(function_) + ": " + std::string(name))
                                      : otherwise;
}

bool ArgumentReader::flag(size_t place, std::string_view name, bool otherwise) const {
    const Value* found = find(place, name);
    return found ? is_true(*found) : otherwise;
}

}  // namespace patchbay::text::chat
