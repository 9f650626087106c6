#include "config/show.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/numbers.hpp"
#include "base/printable.hpp"

namespace patchbay::config {
namespace {

using Json = nlohmann::ordered_json;

bool is_number(std::string_view text) { return parse_number<double>(text).has_value(); }

bool is_word_of_yaml(const std::string& text) { // read as something else than a text, by YAML 1.1 readers too
    static constexpr const char* kWords[] = {"", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    std::string lower = text;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return std::any_of(std::begin(kWords), std::end(kWords), [&](const char* word) { return lower == word; });
}

bool plain_is_safe(std::string_view text) {
    if (text.empty()) return false;
    const auto word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/' ||
               c == '.';
    };
    return (word(text.front()) || (text.front() == '-' && is_number(text))) && word(text.back()) &&
           std::all_of(text.begin(), text.end(), [&](char c) { return word(c) || c == '-' || c == '+' || c == ' '; });
}

uint32_t hex(std::string_view digits) {
    uint32_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return value;
}

// JSON's strings are YAML's, but for characters that JSON escapes as two surrogates and YAML as one \U.
std::string quoted(const std::string& text) {
    const std::string json = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
    std::string out;
    for (size_t i = 0; i < json.size();) {
        const size_t length = json[i] != '\\' ? 1 : json[i + 1] != 'u' ? 2 : 6;
        const uint32_t unit = length == 6 ? hex(std::string_view(json).substr(i + 2, 4)) : 0;
        if (unit < 0xd800 || unit > 0xdbff) {
            out.append(json, i, length);
            i += length;
            continue;
        }
        const uint32_t low = hex(std::string_view(json).substr(i + 8, 4));
        char escape[16];
        std::snprintf(escape, sizeof escape, "\\U%08x", 0x10000 + (((unit - 0xd800) << 10) | (low - 0xdc00)));
        out += escape;
        i += 12; // both
    }
    return out;
}

std::string scalar_text(const Node& node) {
    if (node.kind == NodeKind::kNull) return "~";
    const bool must_quote = node.quoted && (is_word_of_yaml(node.text) || is_number(node.text));
    return !must_quote && plain_is_safe(node.text) ? node.text : quoted(node.text);
}

std::string key_text(const std::string& key) { return scalar_text(Node::string(key)); }

void show(const Node& node, const std::string& indent, std::string& out);

void show_value(const std::string& head, const Node& value, const std::string& indent, std::string& out) {
    const bool empty = value.items.empty() && value.entries.empty();
    if ((value.kind == NodeKind::kMap || value.kind == NodeKind::kList) && !empty) {
        out += head + "\n";
        show(value, indent + "  ", out);
        return;
    }
    const std::string text = value.kind == NodeKind::kMap    ? "{}"
                             : value.kind == NodeKind::kList ? "[]"
                                                             : scalar_text(value);
    std::string line = head + " " + text;
    constexpr size_t kColumn = 48; // where the origins line up
    line.append(line.size() < kColumn ? kColumn - line.size() : 1, ' ');
    out += line + " # " + printable_message(value.origin.text()) + "\n";
}

void show(const Node& node, const std::string& indent, std::string& out) {
    for (const Entry& entry : node.entries) show_value(indent + key_text(entry.key) + ":", entry.value, indent, out);
    for (const Node& item : node.items) show_value(indent + "-", item, indent, out);
}

Json values(const Node& node) {
    switch (node.kind) {
        case NodeKind::kNull: return nullptr;
        case NodeKind::kList: {
            Json out = Json::array();
            for (const Node& item : node.items) out.push_back(values(item));
            return out;
        }
        case NodeKind::kMap: {
            Json out = Json::object();
            for (const Entry& entry : node.entries) out[entry.key] = values(entry.value);
            return out;
        }
        case NodeKind::kScalar: break;
    }
    if (node.quoted) return node.text;
    Json value = Json::parse(node.text, nullptr, false); // a number or true or false; else a text
    return value.is_discarded() ? Json(node.text) : value;
}

void origins(const Node& node, const std::string& path, Json& out) {
    const auto under = [&](const std::string& child) { return path.empty() ? child : path + "." + child; };
    for (const Entry& entry : node.entries) origins(entry.value, under(entry.key), out);
    for (size_t i = 0; i < node.items.size(); ++i) origins(node.items[i], under(std::to_string(i)), out);
    if (node.entries.empty() && node.items.empty()) out[path] = node.origin.text();
}

}  // namespace

std::string show_yaml(const Node& effective) {
    std::string out;
    show(effective, "", out);
    return out;
}

std::string show_json(const Node& effective) {
    Json places = Json::object();
    origins(effective, "", places);
    return Json{{"values", values(effective)}, {"origins", std::move(places)}}.dump(2, ' ', false,
                                                                                    Json::error_handler_t::replace);
}

}  // namespace patchbay::config
