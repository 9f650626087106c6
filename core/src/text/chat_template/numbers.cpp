#include "text/chat_template/numbers.hpp"

#include <charconv>
#include <cstdlib>
#include <string>

#include "text/chat_template/strings.hpp"

namespace patchbay::text::chat {
namespace {

// Without the '_' that stand between digits; nothing: one stands elsewhere.
std::optional<std::string> without_underscores(std::string_view s) {
    const auto is_digit = [&](size_t i) { return i < s.size() && std::isalnum(static_cast<unsigned char>(s[i])); };
    std::string out;
    for (size_t i = 0; i < s.size(); ++i) {
        if (s[i] != '_') out += s[i];
        else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) return std::nullopt;
    }
    return out;
}

std::string lowered(std::string s) { return lower(s); }

}  // namespace

std::optional<int64_t> whole_number_in(std::string_view text, int64_t base) {
    std::string_view s = strip(text, Sides::kBoth);
    const bool negative = s.starts_with('-');
    if (negative || s.starts_with('+')) s.remove_prefix(1);
    const std::string prefix = lowered(std::string(s.substr(0, 2)));
    for (const auto& [name, of] : {std::pair{"0x", 16}, {"0o", 8}, {"0b", 2}})
        if (prefix == name && (base == of || base == 0)) {
            s.remove_prefix(2);
            if (s.starts_with('_')) s.remove_prefix(1);
            base = of;
        }
    if (base == 0) base = 10;
    const auto digits = without_underscores(s);
    if (!digits || digits->empty() || base < 2 || base > 36 || !std::isalnum(static_cast<unsigned char>((*digits)[0])))
        return std::nullopt;
    const std::string all = (negative ? "-" : "") + *digits;
    int64_t out = 0;
    const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), out, static_cast<int>(base));
    if (error != std::errc{} || end != all.data() + all.size()) return std::nullopt;
    return out;
}

std::optional<double> number_in(std::string_view text) {
    const auto plain = without_underscores(strip(text, Sides::kBoth));
    if (!plain || plain->empty()) return std::nullopt;
    const std::string s = lowered(*plain);
    const std::string unsigned_part = s.substr(s[0] == '-' || s[0] == '+' ? 1 : 0);
    const bool named = unsigned_part == "inf" || unsigned_part == "infinity" || unsigned_part == "nan";
    if (!named && (unsigned_part.empty() || unsigned_part.find_first_not_of("0123456789.e+-") != std::string::npos))
        return std::nullopt;
    char* end = nullptr;
    const double out = std::strtod(s.c_str(), &end);
    if (end != s.c_str() + s.size()) return std::nullopt;
    return out;
}

}  // namespace patchbay::text::chat
