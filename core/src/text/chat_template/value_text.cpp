// Values as text: Python's str() and repr(), and json.dumps().
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "text/chat_template/strings.hpp"
#include "text/chat_template/value.hpp"

namespace patchbay::text::chat {
namespace {

void append_quoted(std::string& out, std::string_view text) {
    const bool has_single = text.find('\'') != text.npos, has_double = text.find('"') != text.npos;
    const char quote = has_single && !has_double ? '"' : '\'';
    out += quote;
    for (const std::string_view c : characters_of(text)) {
        if (c[0] == quote || c[0] == '\\') (out += '\\') += c;
        else if (c[0] == '\n') out += "\\n";
        else if (c[0] == '\r') out += "\\r";
        else if (c[0] == '\t') out += "\\t";
        else if (is_printable(c)) out += c;
        else {
            const uint32_t code = code_point_of(c);
            char escape[16];
            const char* const form = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
            std::snprintf(escape, sizeof escape, form, code);
            out += escape;
        }
    }
    out += quote;
}

void append_repr(std::string& out, const Value& v);

void append_list(std::string& out, const ListData& list) {
    out += list.tuple ? '(' : '[';
    for (size_t i = 0; i < list.items.size(); ++i) {
        if (i > 0) out += ", ";
        append_repr(out, list.items[i]);
    }
    if (list.tuple && list.items.size() == 1) out += ',';
    out += list.tuple ? ')' : ']';
}

void append_dict(std::string& out, const DictData& dict) {
    out += '{';
    for (size_t i = 0; i < dict.items.size(); ++i) {
        if (i > 0) out += ", ";
        append_repr(out, dict.items[i].first);
        out += ": ";
        append_repr(out, dict.items[i].second);
    }
    out += '}';
}

void append_repr(std::string& out, const Value& v) {
    if (v.is_none()) out += "None";
    else if (v.is_undefined()) out += "Undefined";
    else if (const bool* b = v.as<bool>()) out += *b ? "True" : "False";
    else if (const int64_t* i = v.as<int64_t>()) out += std::to_string(*i);
    else if (const auto* large = v.as<LargeInteger>()) out += std::to_string(large->value);
    else if (const double* d = v.as<double>()) out += python_float(*d);
    else if (v.string()) append_quoted(out, *v.string());
    else if (v.list()) append_list(out, *v.list());
    else if (v.dict()) append_dict(out, *v.dict());
    else if (v.callable()) out += "<function " + v.callable()->name + ">";
    else out += "<" + type_name(v) + ">";
}

struct JsonText {
    const JsonStyle& style;
    std::string out{};

    void new_line(int level) {
        if (!style.indent) return;
        out += '\n';
        for (int i = 0; i < level; ++i) out += *style.indent;
    }

    void add_string(const std::string& s) {
        out += nlohmann::json(s).dump(-1, ' ', style.ascii, nlohmann::json::error_handler_t::replace);
    }

    void add_key(const Value& key) {
        if (key.string()) return add_string(*key.string());
        if (!key.is_number() && !key.is_none()) refuse("keys of JSON are strings, got " + type_name(key));
        out += '"';
        add(key, 0);
        out += '"';
    }

    void add_dict(const DictData& dict, int level) {
        if (dict.items.empty()) return void(out += "{}");
        std::vector<const std::pair<Value, Value>*> items;
        for (const auto& item : dict.items) items.push_back(&item);
        if (style.sort_keys)
            std::stable_sort(items.begin(), items.end(),
                             [](const auto* a, const auto* b) { return compare(a->first, b->first) < 0; });
        out += '{';
        for (size_t i = 0; i < items.size(); ++i) {
            if (i > 0) out += style.between_items;
            new_line(level + 1);
            add_key(items[i]->first);
            out += style.after_keys;
            add(items[i]->second, level + 1);
        }
        new_line(level);
        out += '}';
    }

    void add(const Value& v, int level) {
        if (v.is_none()) out += "null";
        else if (const bool* b = v.as<bool>()) out += *b ? "true" : "false";
        else if (const int64_t* i = v.as<int64_t>()) out += std::to_string(*i);
        else if (const auto* large = v.as<LargeInteger>()) out += std::to_string(large->value);
        else if (const double* d = v.as<double>())
            out += std::isnan(*d) ? "NaN" : std::isinf(*d) ? (*d > 0 ? "Infinity" : "-Infinity") : python_float(*d);
        else if (v.string()) add_string(*v.string());
        else if (v.dict()) add_dict(*v.dict(), level);
        else if (const ListData* list = v.list()) {
            if (list->items.empty()) return void(out += "[]");
            out += '[';
            for (size_t n = 0; n < list->items.size(); ++n) {
                if (n > 0) out += style.between_items;
                new_line(level + 1);
                add(list->items[n], level + 1);
            }
            new_line(level);
            out += ']';
        } else refuse(type_name(defined(v)) + " is nothing that JSON can hold");
    }
};

}  // namespace

std::string python_float(double d) {
    if (std::isnan(d)) return "nan";
    if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
    char text[64];
    const auto [end, error] = std::to_chars(text, text + sizeof text, d, std::chars_format::scientific);
    const std::string_view shortest(text, static_cast<size_t>(end - text));
    const size_t e = shortest.find('e');
    const int exponent = std::atoi(std::string(shortest.substr(e + 1)).c_str());
    const bool negative = shortest.front() == '-';
    std::string digits;
    for (const char c : shortest.substr(0, e))
        if (c >= '0' && c <= '9') digits += c;
    std::string out = negative ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
        out += digits[0];
        if (digits.size() > 1) (out += '.') += digits.substr(1);
        char tail[16];
        std::snprintf(tail, sizeof tail, "e%c%02d", exponent < 0 ? '-' : '+', std::abs(exponent));
        return out + tail;
    }
    if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
    const auto whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
    return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string python_repr(const Value& v) {
    std::string out;
    append_repr(out, v);
    return out;
}

std::string text_of(const Value& v) {
    if (v.string()) return *v.string();
    if (v.is_undefined()) return "";
    return python_repr(v);
}

std::string json_of(const Value& v, const JsonStyle& style) {
    JsonText text{style};
    text.add(v, 0);
    return std::move(text.out);
}

}  // namespace patchbay::text::chat
