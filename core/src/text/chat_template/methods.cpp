// Methods of strings, lists and dicts, and how their items are reached.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "text/chat_template/builtins.hpp"
#include "text/chat_template/formats.hpp"
#include "text/chat_template/strings.hpp"

namespace patchbay::text::chat {
namespace {

using Read = ArgumentReader;
using StringMethod = Value (*)(Budget&, const std::string&, const Read&);

Value list_of(std::vector<std::string> parts) {
    Values out;
    for (std::string& part : parts) out.emplace_back(std::move(part));
    return Value::list(std::move(out));
}

template <Sides sides>
Value strip_method(Budget&, const std::string& s, const Read& a) {
    const Value* set = a.find(0, "chars");
    if (!set || set->is_none()) return std::string(strip(s, sides));
    return std::string(strip(s, a.text(0, "chars"), sides));
}

Value split_method(Budget& budget, const std::string& s, const Read& a) {
    budget.characters(s.size() / 4);
    const int64_t max_splits = a.integer(1, "maxsplit", -1);
    const Value* separator = a.find(0, "sep");
    if (!separator || separator->is_none()) return list_of(split_words(s, max_splits));
    const std::string& by = a.text(0, "sep");
    if (by.empty()) refuse("split: empty separator");
    std::vector<std::string> out;
    size_t at = 0;
    while (max_splits < 0 || static_cast<int64_t>(out.size()) < max_splits) {
        const size_t found = find_text(s, by, at);
        if (found == s.npos) break;
        out.push_back(s.substr(at, found - at));
        at = found + by.size();
    }
    out.push_back(s.substr(at));
    return list_of(std::move(out));
}

Value rsplit_method(Budget& budget, const std::string& s, const Read& a) {
    const int64_t max_splits = a.integer(1, "maxsplit", -1);
    const Value* separator = a.find(0, "sep");
    if (max_splits < 0) return split_method(budget, s, a);
    if (!separator || separator->is_none()) {
        budget.characters(s.size() / 4);
        return list_of(split_last_words(s, max_splits));
    }
    const std::string& by = a.text(0, "sep");
    if (by.empty()) refuse("rsplit: empty separator");
    budget.steps(s.size() / 64 * (1 + by.size() / 16));
    std::vector<std::string> out;
    size_t end = s.size();
    while (static_cast<int64_t>(out.size()) < max_splits && end >= by.size()) {
        budget.steps(1);
        const size_t found = s.rfind(by, end - by.size());
        if (found == s.npos) break;
        out.push_back(s.substr(found + by.size(), end - found - by.size()));
        end = found;
    }
    out.push_back(s.substr(0, end));
    std::reverse(out.begin(), out.end());
    return list_of(std::move(out));
}

Value splitlines_method(Budget& budget, const std::string& s, const Read& a) {
    budget.characters(s.size());
    return list_of(split_lines(s, a.flag(0, "keepends", false)));
}

template <bool from_end>
Value partition_method(Budget& budget, const std::string& s, const Read& a) {
    const std::string& by = a.text(0, "sep");
    if (by.empty()) refuse("partition: empty separator");
    if (from_end) budget.steps(s.size() / 64 * (1 + by.size() / 16));
    const size_t at = from_end ? s.rfind(by) : find_text(s, by);
    if (at == s.npos) return from_end ? Value::tuple({"", "", s}) : Value::tuple({s, "", ""});
    return Value::tuple({s.substr(0, at), by, s.substr(at + by.size())});
}

// What start and end leave of a text, by characters as slices count them; nothing: start is after its end.
struct Part {
    std::string_view text;
    size_t begin = 0; // in characters
};
std::optional<Part> part_of(const std::string& s, const Read& a) {
    if (a.places() < 2) return Part{s};
    const auto length = static_cast<int64_t>(code_points(s));
    const auto place = [&](size_t argument, const char* name, int64_t otherwise) {
        const int64_t at = a.integer(argument, name, otherwise);
        return at < 0 ? std::max<int64_t>(at + length, 0) : at;
    };
    const int64_t begin = place(1, "start", 0), end = std::min(place(2, "end", length), length);
    if (begin > end) return std::nullopt;
    const size_t first = byte_of(s, static_cast<size_t>(begin)), last = byte_of(s, static_cast<size_t>(end));
    return Part{std::string_view(s).substr(first, last - first), static_cast<size_t>(begin)};
}

template <bool at_end>
Value begins_method(Budget&, const std::string& s, const Read& a) {
    const Value& what = a.need(0, "prefix");
    const auto part = part_of(s, a);
    const auto has = [&](const Value& v) {
        if (!v.string()) refuse("startswith and endswith take strings, got " + type_name(defined(v)));
        return part && (at_end ? part->text.ends_with(*v.string()) : part->text.starts_with(*v.string()));
    };
    if (!what.list()) return has(what);
    return std::any_of(what.list()->items.begin(), what.list()->items.end(), has);
}

template <bool from_end, bool must>
Value find_method(Budget& budget, const std::string& s, const Read& a) {
    const std::string& what = a.text(0, "sub");
    if (from_end) budget.steps(s.size() / 64 * (1 + what.size() / 16));
    const auto part = part_of(s, a);
    const size_t at = !part ? s.npos : from_end ? part->text.rfind(what) : find_text(part->text, what);
    if (at == s.npos && must) refuse("index: substring not found");
    return at == s.npos ? int64_t(-1) : static_cast<int64_t>(part->begin + code_points(part->text.substr(0, at)));
}

Value count_method(Budget&, const std::string& s, const Read& a) {
    const std::string& what = a.text(0, "sub");
    const auto part = part_of(s, a);
    if (!part) return int64_t(0);
    if (what.empty()) return static_cast<int64_t>(code_points(part->text) + 1);
    int64_t n = 0;
    for (size_t at = 0; (at = find_text(part->text, what, at)) != s.npos; at += what.size()) n += 1;
    return n;
}

// Beside a text, up to a width in characters.
template <bool left, bool right>
Value fill_method(Budget& budget, const std::string& s, const Read& a) {
    const Value* given = a.find(1, "fillchar");
    const std::string by = given ? a.text(1, "fillchar") : " ";
    if (code_points(by) != 1) refuse("the fill character must be one character");
    const auto length = static_cast<int64_t>(code_points(s));
    const int64_t width = whole_number(a.need(0, "width"), "a width"), more = std::max<int64_t>(width - length, 0);
    if (more > 1 << 20) refuse("a string would be too long");
    budget.bytes(static_cast<uint64_t>(more) * by.size());
    const int64_t before = left && right ? more / 2 + (more & width & 1) : left ? more : 0; // as Python divides it
    std::string out;
    for (int64_t i = 0; i < before; ++i) out += by;
    out += s;
    for (int64_t i = before; i < more; ++i) out += by;
    return out;
}

Value zfill_method(Budget& budget, const std::string& s, const Read& a) {
    const int64_t width = whole_number(a.need(0, "width"), "a width");
    const int64_t more = std::max<int64_t>(width - static_cast<int64_t>(code_points(s)), 0);
    if (more > 1 << 20) refuse("a string would be too long");
    budget.bytes(static_cast<uint64_t>(more));
    const size_t sign = s.starts_with('-') || s.starts_with('+');
    return s.substr(0, sign) + std::string(static_cast<size_t>(more), '0') + s.substr(sign);
}

Value replace_method(Budget& budget, const std::string& s, const Read& a) {
    const std::string &from = a.text(0, "old"), &to = a.text(1, "new");
    const size_t max_count = from.empty() ? s.size() + 1 : s.size() / from.size();
    if (from.empty()) budget.characters(s.size());
    if (to.size() > from.size()) budget.bytes(max_count * (to.size() - from.size()));
    return replace(s, from, to, a.integer(2, "count", -1));
}

Value join_method(Budget& budget, const std::string& s, const Read& a) {
    std::string out;
    bool first = true;
    for (const Value& v : items_of(budget, a.need(0, "iterable"))) {
        if (!v.string()) refuse("join: got " + type_name(defined(v)) + ", expected strings");
        if (!std::exchange(first, false)) out += s;
        out += *v.string();
        budget.bytes(v.string()->size() + s.size());
    }
    return out;
}

template <auto make>
Value format_method(Budget& budget, const std::string& s, const Read& a) { return make(budget, s, a.given()); }

template <auto change>
Value change_method(Budget&, const std::string& s, const Read&) { return change(s); }

template <bool (*is)(std::string_view)>
Value is_method(Budget& budget, const std::string& s, const Read&) {
    budget.characters(s.size());
    return is(s);
}

Value title_method(Budget& budget, const std::string& s, const Read&) {
    budget.characters(s.size());
    return title(s);
}

Value is_spaces(Budget&, const std::string& s, const Read&) {
    return !s.empty() && strip(s, Sides::kBoth).empty();
}

Value remove_prefix(Budget&, const std::string& s, const Read& a) {
    return s.starts_with(a.text(0, "prefix")) ? s.substr(a.text(0, "prefix").size()) : s;
}
Value remove_suffix(Budget&, const std::string& s, const Read& a) {
    return s.ends_with(a.text(0, "suffix")) ? s.substr(0, s.size() - a.text(0, "suffix").size()) : s;
}

struct NamedMethod {
    std::string_view name;
    StringMethod method;
};
constexpr NamedMethod kStringMethods[] = {
    {"strip", strip_method<Sides::kBoth>},
    {"lstrip", strip_method<Sides::kLeft>},
    {"rstrip", strip_method<Sides::kRight>},
    {"split", split_method},
    {"rsplit", rsplit_method},
    {"splitlines", splitlines_method},
    {"startswith", begins_method<false>},
    {"endswith", begins_method<true>},
    {"find", find_method<false, false>},
    {"rfind", find_method<true, false>},
    {"index", find_method<false, true>},
    {"rindex", find_method<true, true>},
    {"partition", partition_method<false>},
    {"rpartition", partition_method<true>},
    {"count", count_method},
    {"replace", replace_method},
    {"join", join_method},
    {"center", fill_method<true, true>},
    {"ljust", fill_method<false, true>},
    {"rjust", fill_method<true, false>},
    {"zfill", zfill_method},
    {"upper", change_method<upper>},
    {"lower", change_method<lower>},
    {"title", title_method},
    {"capitalize", change_method<capitalize>},
    {"isdigit", is_method<is_digit>},
    {"isnumeric", is_method<is_numeric>},
    {"isdecimal", is_method<is_decimal>},
    {"isalpha", is_method<is_alphabetic>},
    {"isalnum", is_method<is_alphanumeric>},
    {"isspace", is_spaces},
    {"isascii", is_method<is_ascii_text>},
    {"casefold", change_method<case_folded>},
    {"isupper", is_method<is_upper>},
    {"islower", is_method<is_lower>},
    {"format", format_method<str_format>},
    {"format_map", format_method<str_format_map>},
    {"removeprefix", remove_prefix},
    {"removesuffix", remove_suffix},
};

constexpr std::array<std::string_view, 5> kDictMethods = {"items", "keys", "values", "get", "copy"};
constexpr std::array<std::string_view, 3> kListMethods = {"index", "count", "copy"};
// Of Python, which a template may not use: its data is the request's.
constexpr std::array<std::string_view, 12> kChanging = {"append", "extend", "insert",  "pop",     "remove",     "clear",
                                                        "sort",   "reverse", "update", "popitem", "setdefault", "add"};

template <class Names>
bool has(const Names& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

Value dict_method(const DictData& d, const std::string& name, const Value& self, const Read& a) {
    if (name == "get") {
        const Value* found = find(d, a.need(0, "key"));
        const Value* otherwise = a.find(1, "default");
        return found ? *found : otherwise ? *otherwise : Value();
    }
    if (name == "copy") return self;
    Values out;
    for (const auto& [key, value] : d.items)
        out.push_back(name == "items" ? Value::tuple({key, value}) : name == "keys" ? key : value);
    return Value::list(std::move(out));
}

Value list_method(const ListData& l, const std::string& name, const Value& self, const Read& a) {
    if (name == "copy") return self;
    const Value& what = a.need(0, "value");
    int64_t n = 0;
    for (size_t i = 0; i < l.items.size(); ++i) {
        if (!equal(l.items[i], what)) continue;
        if (name == "index") return static_cast<int64_t>(i);
        n += 1;
    }
    if (name == "index") refuse(python_repr(what) + " is not in the list");
    return n;
}

}  // namespace

bool has_method(const Value& self, std::string_view name) {
    if (self.string())
        return std::ranges::any_of(kStringMethods, [&](const NamedMethod& m) { return m.name == name; });
    if (self.dict()) return has(kDictMethods, name);
    return self.list() && has(kListMethods, name);
}

std::optional<Value> call_method(Budget& budget, const Value& self, const std::string& name, const Arguments& given) {
    const Read a(name, given);
    if (const std::string* s = self.string()) {
        for (const NamedMethod& m : kStringMethods) {
            if (m.name != name) continue;
            budget.steps(s->size() / 64);
            budget.bytes(s->size());
            return m.method(budget, *s, a);
        }
    }
    if (self.dict() && has(kDictMethods, name)) {
        budget.steps(self.dict()->items.size());
        return dict_method(*self.dict(), name, self, a);
    }
    if (self.list() && has(kListMethods, name)) {
        budget.steps(weight_of(self));
        return list_method(*self.list(), name, self, a);
    }
    if ((self.list() || self.dict()) && has(kChanging, name))
        refuse("." + name + "() changes a " + type_name(self) + ", which templates may not");
    return std::nullopt;
}

Values items_of(Budget& budget, const Value& of) {
    if (of.is_undefined()) return {};
    Values out;
    if (const ListData* l = of.list()) out = l->items;
    else if (const DictData* d = of.dict())
        for (const auto& [key, value] : d->items) out.push_back(key);
    else if (const std::string* s = of.string())
        for (const std::string_view c : characters_of(*s)) out.emplace_back(std::string(c));
    else refuse("'" + type_name(of) + "' is not iterable");
    budget.steps(out.size());
    return out;
}

Value item(Budget& budget, const Value& of, const Value& key) {
    defined(of);
    if (const DictData* d = of.dict()) {
        budget.steps(1 + d->items.size() / 8);
        if (const Value* found = find(*d, key)) return *found;
    } else if (const Namespace* n = of.space(); n && key.string()) {
        budget.steps(1 + n->fields.size() / 8);
        for (const auto& [name, value] : n->fields)
            if (name == *key.string()) return value;
    } else if (const ListData* l = of.list(); l && l->group && key.string()) {
        if (*key.string() == "grouper" || *key.string() == "list") return l->items[*key.string() == "list"];
    } else if ((of.list() || of.string()) && (key.as<int64_t>() || key.as<bool>())) {
        int64_t at = key.as<bool>() ? *key.as<bool>() : *key.as<int64_t>();
        const int64_t length = length_of(budget, of);
        if (at < 0) at += length;
        if (at >= 0 && at < length)
            return of.list() ? of.list()->items[static_cast<size_t>(at)]
                             : Value(std::string(character_at(*of.string(), static_cast<size_t>(at))));
        return Value::undefined("there is no item " + text_of(key) + " in a " + type_name(of) + " of " +
                                std::to_string(length));
    }
    budget.steps(weight_of(key));
    return Value::undefined("a " + type_name(of) + " has no '" + text_of(defined(key)) + "'");
}

Value slice(Budget& budget, const Value& of, const Value& start, const Value& stop, const Value& step) {
    if (!defined(of).list() && !of.string()) refuse("a " + type_name(of) + " cannot be sliced");
    const int64_t by = step.is_none() ? 1 : whole_number(step, "the step of a slice");
    if (by == 0) refuse("the step of a slice is 0");
    const auto length = static_cast<int64_t>(of.string() ? code_points(*of.string()) : of.list()->items.size());
    const auto place = [&](const Value& v, int64_t otherwise) {
        if (v.is_none()) return otherwise;
        int64_t at = whole_number(v, "a slice's end");
        if (at < 0) at = std::max<int64_t>(at + length, by < 0 ? -1 : 0);
        return std::min(at, by < 0 ? length - 1 : length);
    };
    const int64_t from = place(start, by < 0 ? length - 1 : 0), to = place(stop, by < 0 ? -1 : length);
    if (of.string() && by == 1) {
        const size_t first = byte_of(*of.string(), static_cast<size_t>(from));
        const auto rest = std::string_view(*of.string()).substr(first);
        return std::string(rest.substr(0, byte_of(rest, static_cast<size_t>(std::max<int64_t>(to - from, 0)))));
    }
    if (of.string()) budget.characters(of.string()->size());
    std::vector<size_t> places;
    for (int64_t at = from; by < 0 ? at > to : at < to; at += std::clamp<int64_t>(by, -length - 1, length + 1))
        places.push_back(static_cast<size_t>(at));
    if (of.string()) {
        const auto characters = characters_of(*of.string());
        std::string out;
        for (const size_t at : places) out += characters[at];
        return out;
    }
    Values out;
    for (const size_t at : places) out.push_back(of.list()->items[at]);
    return of.list()->tuple ? Value::tuple(std::move(out)) : Value::list(std::move(out));
}

bool contains(const Value& in, const Value& what) {
    if (in.is_undefined()) return false;
    if (in.string()) {
        if (!defined(what).string()) refuse("'in' a string takes a string, got " + type_name(what));
        return find_text(*in.string(), *what.string()) != std::string::npos;
    }
    if (in.dict()) return find(*in.dict(), what) != nullptr;
    if (in.list())
        return std::ranges::any_of(in.list()->items, [&](const Value& v) { return equal(v, what); });
    refuse("'" + type_name(in) + "' is not iterable");
}

int64_t length_of(Budget& budget, const Value& v) {
    if (v.is_undefined()) return 0;
    if (v.string()) budget.steps(v.string()->size() / 64);
    if (v.string()) return static_cast<int64_t>(code_points(*v.string()));
    if (v.list()) return static_cast<int64_t>(v.list()->items.size());
    if (v.dict()) return static_cast<int64_t>(v.dict()->items.size());
    refuse("'" + type_name(v) + "' has no length");
}

int64_t whole_number(const Value& v, std::string_view what) {
    if (const int64_t* i = v.as<int64_t>()) return *i;
    if (const bool* b = v.as<bool>()) return *b;
    if (v.as<LargeInteger>()) refuse(std::string(what) + ": " + text_of(v) + " is too large a number");
    refuse(std::string(what) + " is a whole number, got " + type_name(defined(v)));
}

}  // namespace patchbay::text::chat
