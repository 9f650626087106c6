#include "text/chat_template/formats.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/utf8.hpp"
#include "text/chat_template/strings.hpp"

namespace patchbay::text::chat {
namespace {

constexpr int64_t kMaxSpecWidth = 1 << 20; // characters
constexpr int64_t kMaxSpecPrecision = 10'000; // of numbers

struct Spec { // [[fill]align][sign][z][#][0][width][, or _][.precision][type]
    std::string fill = " ";
    char align = 0, sign = 0, grouping = 0, type = 0; // 0: not given
    bool no_negative_zero = false, alternative = false;
    int64_t width = 0, precision = -1; // −1: none
};

// align, type: where a value stands and how it is shown where its spec does not say it.
class SpecParser {
  public:
    SpecParser(const std::string& text, char align, char type) : text_(text), all_(characters_of(text)) {
        read_align(align);
        if (is_one_of("+- ")) spec_.sign = take();
        spec_.no_negative_zero = skip('z');
        spec_.alternative = skip('#');
        if (!has_fill_ && skip('0')) {
            spec_.fill = "0";
            if (!spec_.align && align == '>') spec_.align = '=';
        }
        if (!spec_.align) spec_.align = align;
        spec_.width = number();
        if (spec_.width > kMaxSpecWidth) wrong("has a width above " + std::to_string(kMaxSpecWidth));
        if (is_one_of(",_")) spec_.grouping = take();
        if (skip('.')) {
            if (peek() < '0' || peek() > '9') wrong("has no precision after '.'");
            spec_.precision = number();
        }
        if (all_.size() - at_ > 1 || (at_ < all_.size() && peek() == 0)) wrong("is not a format");
        spec_.type = at_ < all_.size() ? take() : type;
        const bool by_fours = std::string_view("boxX").find(spec_.type) != std::string_view::npos;
        const bool grouped = spec_.type == 0 || std::string_view("defgEG%F").find(spec_.type) != std::string_view::npos;
        if (spec_.grouping && !grouped && !(by_fours && spec_.grouping == '_'))
            wrong("groups digits where its type has none");
    }
    const Spec& spec() const { return spec_; }

  private:
    [[noreturn]] void wrong(const std::string& why) const {
        refuse("format: '" + text_.substr(0, byte_of(text_, 80)) + "' " + why);
    }
    char peek(size_t after = 0) const { // 0: the end, or a character of several bytes
        const size_t at = at_ + after;
        return at < all_.size() && all_[at].size() == 1 ? all_[at][0] : '\0';
    }
    char take() { return all_[at_++][0]; }
    bool is_one_of(std::string_view set) const { return peek() != 0 && set.find(peek()) != set.npos; }
    bool skip(char c) {
        if (peek() != c) return false;
        at_ += 1;
        return true;
    }
    void read_align(char otherwise) {
        const auto aligns = [](char c) { return c == '<' || c == '>' || c == '=' || c == '^'; };
        has_fill_ = aligns(peek(1));
        if (has_fill_) spec_.fill = all_[at_++];
        if (has_fill_ || aligns(peek())) spec_.align = take();
        if (spec_.align == '=' && otherwise == '<') wrong("has '=', which strings do not take");
    }
    int64_t number() {
        int64_t n = 0;
        for (; peek() >= '0' && peek() <= '9'; ++at_) n = std::min<int64_t>(n * 10 + (peek() - '0'), INT32_MAX);
        return n;
    }

    const std::string& text_;
    const std::vector<std::string_view> all_;
    size_t at_ = 0;
    bool has_fill_ = false;
    Spec spec_;
};

[[noreturn]] void refuse_type(const Spec& s, const Value& v) {
    refuse(std::string("format: '") + s.type + "' is not a type for a " + type_name(v));
}

std::string repeated_fill(const std::string& fill, int64_t times) {
    std::string out;
    for (int64_t i = 0; i < times; ++i) out += fill;
    return out;
}

// before: a number's sign, after which '=' has the fill.
std::string padded(const Spec& s, const std::string& before, const std::string& body) {
    const auto length = static_cast<int64_t>(code_points(before) + code_points(body));
    const int64_t more = std::max<int64_t>(s.width - length, 0);
    const int64_t left = s.align == '>' ? more : s.align == '^' ? more / 2 : 0, inside = s.align == '=' ? more : 0;
    return repeated_fill(s.fill, left) + before + repeated_fill(s.fill, inside) + body +
           repeated_fill(s.fill, more - left - inside);
}

// Digits in groups, with zeros in front up to so many characters, separators among them.
std::string grouped_digits(const std::string& digits, char separator, size_t group, int64_t least) {
    std::string reversed;
    auto remaining = static_cast<int64_t>(digits.size());
    while (true) {
        const int64_t wanted = std::max<int64_t>({remaining, least, 1});
        const int64_t length = separator ? std::min<int64_t>(static_cast<int64_t>(group), wanted) : wanted;
        for (int64_t i = 0; i < length; ++i)
            reversed += i < remaining ? digits[static_cast<size_t>(remaining - 1 - i)] : '0';
        remaining -= std::min(remaining, length);
        least -= length;
        if (remaining <= 0 && least <= 0) break;
        reversed += separator;
        least -= 1;
    }
    std::reverse(reversed.begin(), reversed.end());
    return reversed;
}

struct Number {
    bool negative = false;
    std::string prefix, digits, rest; // "0x"; before the point; the rest of it, all of "inf"
};

std::string number_text(const Spec& s, const Number& n) {
    const std::string sign = n.negative ? "-" : s.sign == '+' || s.sign == ' ' ? std::string(1, s.sign) : "";
    const std::string before = sign + n.prefix;
    const bool zeros = s.fill == "0" && s.align == '=';
    const int64_t least = zeros ? s.width - static_cast<int64_t>(before.size() + code_points(n.rest)) : 0;
    const bool by_fours = s.type == 'b' || s.type == 'o' || s.type == 'x' || s.type == 'X';
    const std::string digits = n.digits.empty() ? "" : grouped_digits(n.digits, s.grouping, by_fours ? 4 : 3, least);
    return padded(s, before, digits + n.rest);
}

std::string whole_text(const Spec& s, const Value& v) {
    if (s.precision >= 0) refuse("format: whole numbers have no precision");
    if (s.no_negative_zero) refuse("format: 'z' is for numbers with a point");
    const int64_t n = whole_number(v, "format");
    Number out;
    out.negative = n < 0;
    if (s.type == 'c') {
        if (s.sign || s.alternative) refuse("format: 'c' takes neither a sign nor '#'");
        if (!is_character(n)) refuse("format: 'c' takes a character");
        out.rest = character_of(static_cast<uint32_t>(n));
        return number_text(s, out);
    }
    uint64_t left = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
    const unsigned base = s.type == 'b' ? 2 : s.type == 'o' ? 8 : s.type == 'x' || s.type == 'X' ? 16 : 10;
    const std::string_view digits = s.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    do {
        out.digits += digits[left % base];
        left /= base;
    } while (left > 0);
    std::reverse(out.digits.begin(), out.digits.end());
    if (s.alternative && base != 10) out.prefix = {'0', s.type};
    return number_text(s, out);
}

std::string by_printf(char type, bool alternative, int64_t precision, double d) {
    const std::string format = std::string(alternative ? "%#.*" : "%.*") + type;
    std::string out(static_cast<size_t>(400 + precision), '\0');
    const int length = std::snprintf(out.data(), out.size(), format.c_str(), static_cast<int>(precision), d);
    out.resize(static_cast<size_t>(std::max(length, 0)));
    return out;
}

// Without a type, but with a precision: as 'g', with a digit after the point or an exponent.
std::string rounded_text(int64_t precision, bool alternative, double d) {
    const int64_t kept = std::max<int64_t>(precision, 1);
    const std::string exact = by_printf('e', false, kept - 1, d);
    const size_t e = exact.find('e');
    const int exponent = std::atoi(exact.c_str() + e + 1);
    std::string digits = exact.substr(0, e);
    std::erase(digits, '.');
    if (!alternative) digits.resize(std::max<size_t>(digits.find_last_not_of('0') + 1, 1));
    if (exponent < -4 || exponent + 1 > kept - 1) {
        const std::string point = digits.size() > 1 || alternative ? "." : "";
        return digits.substr(0, 1) + point + digits.substr(1) + exact.substr(e);
    }
    if (exponent < 0) return "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
    const auto whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() <= whole) return digits + std::string(whole - digits.size(), '0') + ".0";
    return digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string finite_text(const Spec& s, double d) { // d: not negative
    if (s.type != 0) {
        const char type = s.type == '%' ? 'f' : s.type == 'n' ? 'g' : s.type;
        return by_printf(type, s.alternative, s.precision < 0 ? 6 : s.precision, s.type == '%' ? d * 100 : d);
    }
    if (s.precision >= 0) return rounded_text(s.precision, s.alternative, d);
    std::string out = python_float(d);
    if (const size_t e = out.find('e'); s.alternative && e != out.npos && out.find('.') == out.npos) out.insert(e, ".");
    return out;
}

std::string real_text(const Spec& s, double d) {
    Number out;
    out.negative = std::signbit(d) && !std::isnan(d);
    const bool is_large = s.type == 'E' || s.type == 'F' || s.type == 'G';
    if (std::isnan(d)) out.rest = is_large ? "NAN" : "nan";
    else if (std::isinf(s.type == '%' ? d * 100 : d)) out.rest = is_large ? "INF" : "inf";
    else {
        const std::string text = finite_text(s, std::abs(d));
        const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
        out.digits = text.substr(0, digits);
        out.rest = text.substr(digits);
        const bool is_zero = text.substr(0, text.find_first_of("eE")).find_first_of("123456789") == text.npos;
        if (s.no_negative_zero && is_zero) out.negative = false;
    }
    if (s.type == '%') out.rest += '%';
    return number_text(s, out);
}

std::string text_text(const Spec& s, const Value& v) {
    if (s.type != 's') refuse_type(s, v);
    if (s.sign || s.no_negative_zero || s.alternative) refuse("format: a string takes no sign, 'z' or '#'");
    std::string text = *v.string();
    if (s.precision >= 0) text.resize(byte_of(text, static_cast<size_t>(s.precision)));
    return padded(s, "", text);
}

}  // namespace

std::string formatted(Budget& budget, const Value& v, const std::string& spec) {
    budget.steps(weight_of(v) + spec.size());
    if (spec.empty()) {
        std::string out = text_of(v);
        budget.bytes(out.size());
        return out;
    }
    if (!v.string() && !v.is_number()) refuse("format: a " + type_name(v) + " takes no format, got '" + spec + "'");
    const bool whole = v.is_number() && !v.as<double>();
    const Spec s = SpecParser(spec, v.string() ? '<' : '>', v.string() ? 's' : whole ? 'd' : '\0').spec();
    budget.bytes(static_cast<uint64_t>(s.width) * s.fill.size() + weight_of(v) * 16);
    if (v.string()) return text_text(s, v);
    if (s.precision > kMaxSpecPrecision)
        refuse("format: a precision of " + std::to_string(s.precision) + ", expected at most " +
               std::to_string(kMaxSpecPrecision));
    budget.bytes(static_cast<uint64_t>(std::max<int64_t>(s.precision, 0)));
    if (whole && std::string_view("bcdoxXn").find(s.type) != std::string_view::npos) return whole_text(s, v);
    if (s.type != 0 && std::string_view("eEfFgGn%").find(s.type) == std::string_view::npos) refuse_type(s, v);
    return real_text(s, number_of(v));
}

}  // namespace patchbay::text::chat
