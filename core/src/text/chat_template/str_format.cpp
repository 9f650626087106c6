#include "text/chat_template/formats.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "text/chat_template/strings.hpp"

namespace patchbay::text::chat {
namespace {

bool all_digits(std::string_view s) {
    return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

size_t place_in(std::string_view digits) {
    if (digits.size() > 9) refuse("format: a place has at most 9 digits");
    return static_cast<size_t>(std::stoul(std::string(digits)));
}

struct FormatField { // {name!conversion:spec}
    std::string_view name, spec;
    char conversion = 0;
};

// What is after a field's '{', from `at` on, which it moves past the field's '}'.
FormatField read_field(std::string_view text, size_t& at) {
    FormatField out;
    const size_t begin = at;
    for (; at < text.size() && text[at] != '}' && text[at] != ':' && text[at] != '!'; ++at) {
        if (text[at] == '{') refuse("format: '{' in the name of a field");
        if (text[at] == '[') at = std::min(text.find(']', at), text.size() - 1);
    }
    if (at >= text.size()) refuse("format: a field has no end, expected '}'");
    out.name = text.substr(begin, at - begin);
    if (text[at] == '!') {
        if (text.size() - at < 3) refuse("format: a field has no end, expected '}'");
        out.conversion = text[at + 1];
        at += 2;
        if (text[at] != '}' && text[at] != ':') refuse("format: expected ':' or '}' after a field's conversion");
    }
    if (text[at++] == '}') return out;
    const size_t spec = at;
    for (size_t open = 1; at < text.size(); ++at) {
        open += text[at] == '{';
        open -= text[at] == '}';
        if (open > 0) continue;
        out.spec = text.substr(spec, at - spec);
        at += 1;
        return out;
    }
    refuse("format: a field has no end, expected '}'");
}

std::string ascii_repr(const Value& v) {
    const std::string text = python_repr(v);
    std::string out;
    for (const std::string_view c : characters_of(text)) {
        if (c.size() == 1) {
            out += c;
            continue;
        }
        const uint32_t code = code_point_of(c);
        char escape[16];
        std::snprintf(escape, sizeof escape, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
        out += escape;
    }
    return out;
}

class FieldFormatter {
  public:
    FieldFormatter(Budget& budget, const Arguments& given) : budget_(budget), given_(given) {}

    // depth: how many formats may stand in one another's specs.
    std::string run(std::string_view text, uint32_t depth) {
        if (depth == 0) refuse("format: fields are nested too deep in specs");
        std::string out;
        for (size_t at = 0; at < text.size();) {
            const size_t brace = std::min(text.find_first_of("{}", at), text.size());
            out += text.substr(at, brace - at);
            budget_.steps(1 + (brace - at) / 16);
            at = brace + 1;
            if (brace == text.size()) break;
            if (at < text.size() && text[at] == text[brace]) {
                out += text[at++];
                continue;
            }
            if (text[brace] == '}' || at == text.size())
                refuse(std::string("format: a single '") + text[brace] + "', expected two or a field");
            const FormatField field = read_field(text, at);
            const Value value = converted(value_of(field.name), field.conversion);
            out += formatted(budget_, value, run(field.spec, depth - 1));
        }
        budget_.bytes(out.size());
        return out;
    }

  private:
    enum class Places { kUnknown, kCounted, kGiven };

    const Value& by_place(size_t place) const {
        if (place >= given_.positional.size())
            refuse("format: no value for place " + std::to_string(place) + ", got " +
                   std::to_string(given_.positional.size()));
        return given_.positional[place];
    }
    const Value& argument(std::string_view name) {
        if (name.empty()) return by_place(next_++);
        if (all_digits(name)) return by_place(place_in(name));
        budget_.steps(given_.named.size() / 8);
        for (const auto& [key, value] : given_.named)
            if (key == name) return value;
        refuse("format: no value for '" + std::string(name) + "'");
    }
    // Places are counted or given, and not both; {0.key}, with a path, may be beside counted ones, as in Python 3.11.
    void note(bool counted) {
        const Places places = counted ? Places::kCounted : Places::kGiven;
        if (places_ != Places::kUnknown && places_ != places)
            refuse("format: fields with and without numbers in one text");
        places_ = places;
    }
    Value value_of(std::string_view path) { // name.key[0]
        if (path.empty() || all_digits(path)) note(path.empty());
        const auto until = [&](std::string_view set, size_t from) {
            return std::min(path.find_first_of(set, from), path.size());
        };
        size_t at = until(".[", 0);
        Value out = argument(path.substr(0, at));
        while (at < path.size()) {
            const bool bracket = path[at] == '[';
            if (!bracket && path[at] != '.') refuse("format: expected '.' or '[' after ']' in a field's name");
            const size_t end = bracket ? path.find(']', at) : until(".[", at + 1);
            if (end == path.npos) refuse("format: a field's name lacks ']'");
            const std::string_view part = path.substr(at + 1, end - at - 1);
            if (part.empty()) refuse("format: a part of a field's name is empty");
            at = end + bracket;
            if (!bracket) out = attribute_of(budget_, out, std::string(part));
            else if (all_digits(part)) out = member_of(budget_, out, static_cast<int64_t>(place_in(part)));
            else out = member_of(budget_, out, Value(std::string(part)));
        }
        return out;
    }
    Value converted(Value v, char conversion) const {
        if (conversion == 0) return v;
        budget_.steps(weight_of(v));
        std::string out;
        if (conversion == 's') out = text_of(v);
        else if (conversion == 'r') out = python_repr(v);
        else if (conversion == 'a') out = ascii_repr(v);
        else refuse(std::string("format: conversion '!") + conversion + "', expected !s, !r or !a");
        budget_.bytes(out.size());
        return out;
    }

    Budget& budget_;
    const Arguments& given_;
    Places places_ = Places::kUnknown;
    size_t next_ = 0;
};

constexpr uint32_t kMaxFormatDepth = 3; // as Python's

}  // namespace

Value str_format(Budget& budget, const std::string& format, const Arguments& given) {
    return FieldFormatter(budget, given).run(format, kMaxFormatDepth);
}

Value str_format_map(Budget& budget, const std::string& format, const Arguments& given) {
    if (given.positional.size() != 1 || !given.named.empty() || !defined(given.positional[0]).dict())
        refuse("format_map takes one dict");
    const DictData& dict = *given.positional[0].dict();
    budget.steps(dict.items.size());
    Arguments named;
    for (const auto& [key, value] : dict.items)
        if (key.string()) named.named.emplace_back(*key.string(), value);
    return str_format(budget, format, named);
}

}  // namespace patchbay::text::chat
