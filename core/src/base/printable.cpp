#include "base/printable.hpp"

#include <algorithm>
#include <cstdint>

#include "base/utf8.hpp"

namespace patchbay {
namespace {

constexpr size_t kMaxLine = 4000;   // bytes of a message
constexpr size_t kMaxLines = 1000;

struct Character {
    uint32_t code = 0;
    size_t bytes = 0; // 0: what begins here is no UTF-8
};

Character first_character(std::string_view text) {
    const Utf8Step step = utf8_step(text);
    if (step.what != Utf8::kCharacter) return {};
    return {code_point(text.substr(0, step.bytes)), step.bytes};
}

bool is_obeyed(uint32_t code) { // by terminals, by logs, by eyes
    const auto within = [&](uint32_t first, uint32_t last) { return code >= first && code <= last; };
    return code < 0x20 || within(0x7f, 0x9f) || code == 0x61c || within(0x200e, 0x200f) || within(0x2028, 0x202e) ||
           within(0x2066, 0x2069) || code == 0xfeff;
}

std::string hex(uint32_t value, size_t digits) {
    std::string out;
    for (; value > 0 || out.size() < digits; value >>= 4) out.insert(out.begin(), "0123456789abcdef"[value & 15]);
    return out;
}

std::string escaped(uint32_t code) {
    if (code == '\n') return "\\n";
    if (code == '\t') return "\\t";
    if (code == '\r') return "\\r";
    return code < 0x80 ? "\\x" + hex(code, 2) : "\\u{" + hex(code, 4) + "}";
}

// Of the first max_bytes of the text; how many of its bytes these are goes to `taken`.
std::string escape(std::string_view text, size_t max_bytes, size_t& taken) {
    std::string out;
    taken = 0;
    while (taken < text.size()) {
        const std::string_view rest = text.substr(taken);
        const Character c = first_character(rest);
        const size_t bytes = std::max<size_t>(c.bytes, 1);
        if (taken + bytes > max_bytes) break;
        if (c.bytes == 0) out += "\\x" + hex(static_cast<unsigned char>(rest[0]), 2);
        else if (is_obeyed(c.code)) out += escaped(c.code);
        else out += rest.substr(0, c.bytes);
        taken += bytes;
    }
    return out;
}

}  // namespace

std::string printable(std::string_view text, size_t max_bytes) {
    size_t taken = 0;
    std::string out = escape(text, max_bytes, taken);
    return taken < text.size() ? out + "…" : out;
}

std::string printable_message(std::string_view message) {
    size_t taken = 0;
    if (message.size() <= kMaxLine) return escape(message, kMaxLine, taken);
    std::string_view end = message.substr(message.size() - kMaxLine / 4);
    while (!end.empty() && continues_character(end.front())) end.remove_prefix(1);
    return escape(message, kMaxLine * 3 / 4, taken) + " … " + escape(end, end.size(), taken);
}

std::string printable_lines(std::string_view messages) {
    std::string out;
    for (size_t line = 0; line < kMaxLines; ++line) {
        const size_t end = messages.find('\n');
        out += (line == 0 ? "" : "\n") + printable_message(messages.substr(0, end));
        if (end == messages.npos) return out;
        messages.remove_prefix(end + 1);
    }
    return out + "\n…";
}

}  // namespace patchbay
