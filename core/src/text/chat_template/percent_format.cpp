#include "text/chat_template/formats.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/utf8.hpp"
#include "text/chat_template/strings.hpp"

namespace patchbay::text::chat {
namespace {

constexpr int64_t kMaxWidth = 10'000; // of a place, and its precision

struct Place { // %(name)05.2f
    bool left = false, zeros = false, sign = false, blank = false, alternative = false;
    int64_t width = 0, precision = -1; // −1: none
    char type = 0;
};

std::string prefix_of(const Place& p, bool negative) { return negative ? "-" : p.sign ? "+" : p.blank ? " " : ""; }

// Up to the width: between sign and digits with zeros, else beside them with spaces.
std::string filled(const Place& p, const std::string& prefix, const std::string& body, bool number) {
    const auto length = static_cast<int64_t>(code_points(prefix) + code_points(body));
    const std::string fill(static_cast<size_t>(std::max<int64_t>(p.width - length, 0)),
                           p.zeros && number && !p.left ? '0' : ' ');
    if (p.left) return prefix + body + fill;
    return p.zeros && number ? prefix + fill + body : fill + prefix + body;
}

std::string of_whole(const Place& p, const Value& v) {
    const bool decimal = p.type == 'd' || p.type == 'i' || p.type == 'u';
    if (!v.is_number() || (v.as<double>() && !decimal))
        refuse(std::string("'%") + p.type + "' takes a number, got " + type_name(v));
    if (v.as<double>() && !(std::abs(*v.as<double>()) < 9.2e18)) refuse("'%d' of too large a number");
    const int64_t n = v.as<double>() ? static_cast<int64_t>(*v.as<double>()) : whole_number(v, "%d");
    const uint64_t absolute = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
    char text[80];
    const char* const format = decimal ? "%llu" : p.type == 'x' ? "%llx" : p.type == 'X' ? "%llX" : "%llo";
    std::snprintf(text, sizeof text, format, static_cast<unsigned long long>(absolute));
    std::string digits = text;
    if (p.precision > static_cast<int64_t>(digits.size()))
        digits.insert(0, static_cast<size_t>(p.precision) - digits.size(), '0');
    std::string prefix = prefix_of(p, n < 0);
    if (p.alternative && !decimal) prefix += std::string("0") + p.type;
    return filled(p, prefix, digits, true);
}

std::string of_real(const Place& p, const Value& v) {
    if (!v.is_number()) refuse(std::string("'%") + p.type + "' takes a number, got " + type_name(v));
    const double d = number_of(v);
    const std::string format = std::string(p.alternative ? "%#.*" : "%.*") + p.type;
    std::string digits(static_cast<size_t>(400 + std::max<int64_t>(p.precision, 0)), '\0');
    const int precision = p.precision < 0 ? 6 : static_cast<int>(p.precision);
    const int length = std::snprintf(digits.data(), digits.size(), format.c_str(), precision, std::abs(d));
    digits.resize(static_cast<size_t>(std::max(length, 0)));
    return filled(p, prefix_of(p, std::signbit(d) && !std::isnan(d)), digits, true);
}

std::string of_text(const Place& p, std::string text) {
    if (p.precision >= 0) text.resize(byte_of(text, static_cast<size_t>(p.precision)));
    return filled(p, "", text, false);
}

std::string one_character(const Value& v) {
    if (v.string() && code_points(*v.string()) == 1) return *v.string();
    const int64_t code = v.as<int64_t>() || v.as<bool>() ? whole_number(v, "%c") : -1;
    if (!is_character(code)) refuse("'%c' takes a character");
    return character_of(static_cast<uint32_t>(code));
}

class Formatter {
  public:
    Formatter(Budget& budget, const std::string& format, const Value& values)
        : budget_(budget), format_(format), values_(values), is_tuple_(values.list() && values.list()->tuple) {}

    std::string run() {
        std::string out;
        while (at_ < format_.size()) {
            const size_t next = std::min(format_.find('%', at_), format_.size());
            out.append(format_, at_, next - at_);
            at_ = next;
            if (at_ == format_.size()) break;
            at_ += 1;
            out += place();
        }
        // A list or dict need not be used: it may have been one for its members.
        const bool must = is_tuple_ || !(values_.list() || values_.dict() || values_.is_undefined());
        if (must && used_ < count()) refuse("more values than the format has places");
        return out;
    }

  private:
    size_t count() const { return is_tuple_ ? values_.list()->items.size() : 1; }
    const Value& next() {
        if (used_ >= count()) refuse("not enough values for the format");
        used_ += 1;
        return is_tuple_ ? values_.list()->items[used_ - 1] : values_;
    }
    char peek() const {
        if (at_ == format_.size()) refuse("a format ends after '%'");
        return format_[at_];
    }
    int64_t number() { // digits, or a '*' for the next value
        if (peek() == '*') {
            at_ += 1;
            return std::clamp(whole_number(next(), "the width of a format"), -kMaxWidth, kMaxWidth);
        }
        int64_t n = 0;
        for (; peek() >= '0' && peek() <= '9'; ++at_) n = std::min(n * 10 + (peek() - '0'), kMaxWidth);
        return n;
    }
    const Value* named() { // %(name)
        if (peek() != '(') return nullptr;
        const size_t end = format_.find(')', at_);
        if (end == format_.npos) refuse("a name in a format has no end, expected ')'");
        if (!values_.dict()) refuse("a format with names takes a dict, got " + type_name(values_));
        budget_.steps(values_.dict()->items.size() / 8);
        const std::string name = format_.substr(at_ + 1, end - at_ - 1);
        const Value* const found = find(*values_.dict(), name);
        if (!found) refuse("the values of a format lack '" + name + "'");
        at_ = end + 1;
        used_ = 1;
        return found;
    }
    std::string place() {
        const Value* given = named();
        Place p;
        for (bool flag = true; flag; at_ += flag) {
            const char c = peek();
            flag = c == '-' || c == '0' || c == '+' || c == ' ' || c == '#';
            p.left |= c == '-';
            p.zeros |= c == '0';
            p.sign |= c == '+';
            p.blank |= c == ' ';
            p.alternative |= c == '#';
        }
        p.width = number();
        if (p.width < 0) p.left = true, p.width = -p.width;
        if (peek() == '.') {
            at_ += 1;
            p.precision = std::max<int64_t>(number(), 0);
        }
        while (peek() == 'h' || peek() == 'l' || peek() == 'L') at_ += 1;
        p.type = peek();
        at_ += 1;
        if (p.type == '%') return "%";
        const Value& v = given ? *given : next();
        budget_.steps(weight_of(v));
        budget_.bytes(static_cast<uint64_t>(p.width + std::max<int64_t>(p.precision, 0)));
        return made(p, v);
    }
    static std::string made(const Place& p, const Value& v) {
        switch (p.type) {
            case 's': return of_text(p, text_of(v));
            case 'r': return of_text(p, python_repr(v));
            case 'c': return filled(p, "", one_character(defined(v)), false);
            case 'd': case 'i': case 'u': case 'x': case 'X': case 'o': return of_whole(p, defined(v));
            case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': return of_real(p, defined(v));
            default: refuse(std::string("'%") + p.type + "' of a " + type_name(v) + " is not supported");
        }
    }

    Budget& budget_;
    const std::string& format_;
    const Value& values_;
    const bool is_tuple_;
    size_t at_ = 0, used_ = 0;
};

}  // namespace

Value percent_format(Budget& budget, const std::string& format, const Value& values) {
    budget.steps(format.size() / 16);
    std::string out = Formatter(budget, format, values).run();
    budget.bytes(out.size());
    return out;
}

}  // namespace patchbay::text::chat
