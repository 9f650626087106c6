#include "grammar/json_numbers.hpp"

#include <algorithm>
#include <charconv>

#include "base/refusals.hpp"
#include "grammar/schema_values.hpp"

namespace patchbay::grammar {
namespace {

constexpr long kMaxDigits = 40;
const std::string kAnyFraction = R"((\.[0-9]+)?)", kAnyWhole = "(0|[1-9][0-9]*)";

struct Decimal {
    bool negative = false;
    std::string whole, fraction; // whole: "0" or no leading zero; fraction: no trailing zero
    bool is_zero() const { return whole == "0" && fraction.empty(); }
};

Result<Decimal> decimal_of(const Json& number, long max_digits = kMaxDigits) {
    if (!number.is_number()) return invalid("is " + number.dump().substr(0, 40) + ", expected a number");
    const std::string text = number.dump();
    Decimal out;
    std::string digits;
    long exponent = 0;
    size_t i = 0;
    if (text[i] == '-') out.negative = true, ++i;
    bool fraction = false;
    for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
        if (text[i] == '.')
            fraction = true;
        else
            digits += text[i], exponent -= fraction;
    }
    if (i < text.size()) {
        long given = 0;
        const char* from = text.data() + i + 1;
        if (*from == '+') ++from;
        std::from_chars(from, text.data() + text.size(), given);
        exponent += given;
    }
    if (exponent > max_digits || exponent < -max_digits)
        return invalid("is " + text + ", which has more than " + std::to_string(max_digits) + " digits");
    if (exponent > 0) digits.append(static_cast<size_t>(exponent), '0');
    const auto places = static_cast<size_t>(std::max(0l, -exponent));
    if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
    out.whole = digits.substr(0, digits.size() - places);
    out.fraction = digits.substr(digits.size() - places);
    out.whole.erase(0, std::min(out.whole.find_first_not_of('0'), out.whole.size() - 1));
    out.fraction.erase(out.fraction.find_last_not_of('0') + 1);
    return out;
}

using Limit = NumberBound::Limit;

std::string between(char low, char high) { return std::string("[") + low + "-" + high + "]"; }
std::string times(size_t n) { return "[0-9]{" + std::to_string(n) + "}"; }

struct Alternatives {
    std::string text;
    void add(const std::string& one) { text += text.empty() ? one : "|" + one; }
    std::string group() const { return "(" + text + ")"; }
    bool empty() const { return text.empty(); }
};

// Decimals without a sign above d, which has none either.
std::string above(const Decimal& d, Limit limit) {
    const size_t n = d.whole.size();
    Alternatives whole;
    if (d.whole == "0")
        whole.add("[1-9][0-9]*");
    else
        whole.add("[1-9]" + times(n) + "[0-9]*");
    for (size_t i = 0; i < n && d.whole != "0"; ++i)
        if (d.whole[i] < '9')
            whole.add(d.whole.substr(0, i) + between(static_cast<char>(d.whole[i] + 1), '9') + times(n - i - 1));
    Alternatives all;
    all.add(whole.group() + kAnyFraction);
    if (d.fraction.empty()) {
        all.add(d.whole + (limit == Limit::kIncluded ? kAnyFraction : R"(\.[0-9]*[1-9][0-9]*)"));
        return all.group();
    }
    Alternatives fraction;
    for (size_t i = 0; i < d.fraction.size(); ++i)
        if (d.fraction[i] < '9')
            fraction.add(d.fraction.substr(0, i) + between(static_cast<char>(d.fraction[i] + 1), '9') + "[0-9]*");
    fraction.add(d.fraction + (limit == Limit::kIncluded ? "[0-9]*" : "[0-9]*[1-9][0-9]*"));
    all.add(d.whole + R"(\.)" + fraction.group());
    return all.group();
}

std::string below(const Decimal& d, Limit limit) { // empty: there are none
    const size_t n = d.whole.size();
    Alternatives whole, all;
    if (n >= 2) whole.add("0|[1-9][0-9]{0," + std::to_string(n - 2) + "}");
    for (size_t i = 0; i < n; ++i) {
        const char first = i == 0 && n > 1 ? '1' : '0';
        if (d.whole[i] > first)
            whole.add(d.whole.substr(0, i) + between(first, static_cast<char>(d.whole[i] - 1)) + times(n - i - 1));
    }
    if (!whole.empty()) all.add(whole.group() + kAnyFraction);
    if (d.fraction.empty()) {
        if (limit == Limit::kIncluded) all.add(d.whole + R"((\.0+)?)");
        return all.empty() ? "" : all.group();
    }
    Alternatives fraction;
    for (size_t i = 0; i < d.fraction.size(); ++i) {
        const std::string same = d.fraction.substr(0, i);
        if (d.fraction[i] > '0') fraction.add(same + between('0', static_cast<char>(d.fraction[i] - 1)) + "[0-9]*");
        if (i > 0) fraction.add(same);
    }
    if (limit == Limit::kIncluded) fraction.add(d.fraction + "0*");
    all.add(d.whole + (fraction.empty() ? "" : R"((\.)" + fraction.group() + ")?"));
    return all.group();
}

// Multiples of k / 10^places with at most so many decimals. A state for each remainder of the digits so far: of whole
// numbers, after the point, and for each number of decimals.
Dfa multiples(uint32_t k, uint32_t places) {
    Dfa out;
    enum : uint32_t { kStart, kMinus, kZero, kMinusZero, kWhole };
    const uint32_t point = kWhole + k;
    const auto decimal = [&](uint32_t n, uint32_t r) { return point + n * k + r; }; // n: from 1 on
    out.states.resize(places == 0 ? point : decimal(places + 1, 0));
    const auto add = [&](uint32_t from, char low, uint32_t to) {
        const auto c = static_cast<uint8_t>(low);
        out.states[from].edges.push_back({c, c, to});
    };
    const auto add_digits = [&](uint32_t from, uint32_t r, uint32_t first, uint32_t to) {
        for (uint32_t digit = first; digit < 10; ++digit)
            add(from, static_cast<char>('0' + digit), to + (r * 10 + digit) % k);
    };
    const auto divides = [&](uint64_t r, uint32_t decimals) {
        for (; decimals < places; ++decimals) r = r * 10 % k;
        return r % k == 0;
    };
    add(kStart, '-', kMinus);
    add(kStart, '0', kZero);
    if (places > 0) add(kMinus, '0', kMinusZero); // no -0
    for (const uint32_t from : {kStart, kMinus}) add_digits(from, 0, 1, kWhole);
    out.states[kZero].accepts = true;
    for (const uint32_t from : {kZero, kMinusZero})
        if (places > 0) add(from, '.', point);
    for (uint32_t r = 0; r < k; ++r) {
        out.states[kWhole + r].accepts = divides(r, 0);
        if (places > 0) add(kWhole + r, '.', point + r);
        add_digits(kWhole + r, r, 0, kWhole);
        for (uint32_t n = 0; n <= places && places > 0; ++n) {
            if (n > 0) out.states[decimal(n, r)].accepts = divides(r, n);
            if (n < places) add_digits(decimal(n, r), r, 0, decimal(n + 1, 0));
        }
    }
    return out;
}

}  // namespace

Result<ExprId> bounded(Rules& rules, const NumberBound& b, Work& work) {
    const bool minimum = b.side == NumberBound::Side::kMinimum;
    const double far = b.value.is_number() ? b.value.get<double>() : 0;
    const bool loose = minimum ? far < -1e40 : far > 1e40; // beyond numbers that are written out: narrowed
    PB_TRY(Decimal d, decimal_of(loose ? Json(minimum ? -1e40 : 1e40) : b.value));
    const bool negative = d.negative && !d.is_zero();
    Alternatives all;
    if (minimum && negative) {
        all.add(kAnyWhole + kAnyFraction);
        if (const std::string some = below(d, b.limit); !some.empty()) all.add("-" + some);
    } else if (minimum) {
        all.add(above(d, b.limit));
    } else if (negative) {
        all.add("-" + above(d, b.limit));
    } else {
        const Decimal nothing{false, "0", ""};
        all.add("-" + above(nothing, d.is_zero() ? b.limit : Limit::kIncluded));
        if (const std::string some = below(d, b.limit); !some.empty()) all.add(some);
    }
    return parse_regex(rules, all.text, plain_regex(), work);
}

bool is_within(const NumberBound& b, const Json& number) {
    if (same_value(number, b.value)) return b.limit == Limit::kIncluded;
    const bool minimum = b.side == NumberBound::Side::kMinimum;
    const double x = number.get<double>(), bound = b.value.get<double>();
    if (x != bound) return minimum ? x > bound : x < bound;
    // Apart by less than doubles are: compared as whole numbers of 64 bits, or taken for outside.
    return number.type() == b.value.type() && (minimum ? b.value < number : number < b.value);
}

std::string plain_decimal(const Json& number) {
    constexpr long kMaxOfDoubles = 400; // digits on either side of the point
    const auto d = decimal_of(number, kMaxOfDoubles);
    if (!d) return {};
    return (d->negative && !d->is_zero() ? "-" : "") + d->whole + (d->fraction.empty() ? "" : "." + d->fraction);
}

Result<ExprId> equal_to(Rules& rules, const Json& number, Work& work) {
    PB_TRY(const Decimal d, decimal_of(number));
    const std::string sign = d.is_zero() ? "-?" : d.negative ? "-" : "";
    return parse_regex(rules, sign + d.whole + (d.fraction.empty() ? R"((\.0+)?)" : R"(\.)" + d.fraction + "0*"),
                       plain_regex(), work);
}

Result<ExprId> multiple_of(Rules& rules, const Json& step, Work& work) {
    constexpr uint64_t kMaxRemainders = 10'000; // of all numbers of decimals
    PB_TRY(const Decimal d, decimal_of(step));
    if (d.negative || d.is_zero()) return invalid("is " + step.dump() + ", expected a number above 0");
    const std::string digits = d.whole + d.fraction;
    uint64_t k = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), k);
    const size_t places = d.fraction.size();
    if (read.ec != std::errc() || places > 20 || k * (places > 0 ? places + 2 : 1) > kMaxRemainders)
        return invalid("is " + step.dump() + ", which takes too many remainders (expected a whole number up to " +
                       std::to_string(kMaxRemainders) + " or a few decimals, such as 0.25)");
    PB_CHECK(work.spend(40 * k * (places + 2))); // it is kept: some 100 bytes a state
    return rules.automaton(multiples(static_cast<uint32_t>(k), static_cast<uint32_t>(places)));
}

}  // namespace patchbay::grammar
