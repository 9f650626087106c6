#include "text/chat_template/operators.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "text/chat_template/formats.hpp"

namespace patchbay::text::chat {
namespace {

Value repeated(Budget& budget, const Value& of, int64_t times) {
    const auto n = static_cast<uint64_t>(std::max<int64_t>(times, 0));
    if (const std::string* s = of.string()) {
        if (n > 0 && s->size() > (1u << 30) / n) refuse("a string would be too long");
        budget.bytes(s->size() * n);
        std::string out;
        for (uint64_t i = 0; i < n; ++i) out += *s;
        return out;
    }
    if (n > 0 && weight_of(of) > kMaxValueWeight / n) refuse("a list would be too long");
    budget.steps(of.list()->items.size() * n);
    Values out;
    for (uint64_t i = 0; i < n; ++i) out.insert(out.end(), of.list()->items.begin(), of.list()->items.end());
    return of.list()->tuple ? Value::tuple(std::move(out)) : Value::list(std::move(out));
}

Value whole_arithmetic(const std::string& op, int64_t a, int64_t b) {
    int64_t out = 0;
    bool over = false;
    if (op == "+") over = __builtin_add_overflow(a, b, &out);
    else if (op == "-") over = __builtin_sub_overflow(a, b, &out);
    else if (op == "*") over = __builtin_mul_overflow(a, b, &out);
    else if (op == "**") {
        if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
        out = 1;
        for (int64_t i = 0; i < b && !over && (a < -1 || a > 1 || i < 2); ++i)
            over = __builtin_mul_overflow(out, a, &out);
        if (a == -1) out = b % 2 ? -1 : 1;
    } else { // // and %, which round down
        if (b == 0) refuse("division by zero");
        if (b == -1) return op == "%" ? Value(int64_t(0)) : whole_arithmetic("-", 0, a);
        out = op == "//" ? a / b : a % b;
        if (a % b != 0 && (a < 0) != (b < 0)) out += op == "//" ? -1 : b;
    }
    if (over) refuse("'" + op + "' gives too large a number");
    return out;
}

Value arithmetic(Budget& budget, const std::string& op, const Value& left, const Value& right) {
    if (op == "+" && left.string() && right.string()) {
        budget.bytes(left.string()->size() + right.string()->size());
        return *left.string() + *right.string();
    }
    if (op == "+" && left.list() && right.list() && left.list()->tuple == right.list()->tuple) {
        budget.steps(left.list()->items.size() + right.list()->items.size());
        Values out = left.list()->items;
        out.insert(out.end(), right.list()->items.begin(), right.list()->items.end());
        return left.list()->tuple ? Value::tuple(std::move(out)) : Value::list(std::move(out));
    }
    const auto counts = [](const Value& v) { return v.as<int64_t>() || v.as<bool>(); };
    if (op == "*" && (left.string() || left.list()) && counts(right))
        return repeated(budget, left, whole_number(right, op));
    if (op == "*" && (right.string() || right.list()) && counts(left))
        return repeated(budget, right, whole_number(left, op));
    if (!left.is_number() || !right.is_number())
        refuse("'" + op + "' of a " + type_name(left) + " and a " + type_name(right));
    if (op == "/") {
        if (number_of(right) == 0) refuse("division by zero");
        return number_of(left) / number_of(right);
    }
    if (!left.as<double>() && !right.as<double>())
        return whole_arithmetic(op, whole_number(left, op), whole_number(right, op));
    const double a = number_of(left), b = number_of(right);
    if ((op == "//" || op == "%") && b == 0) refuse("division by zero");
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (op == "//" || op == "%") { // as Python has them: the remainder is exact, and has the divisor's sign
        double rest = std::fmod(a, b);
        if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
        if (rest == 0) rest = std::copysign(0.0, b);
        if (op == "%") return rest;
        const double whole = std::round((a - rest) / b);
        return whole != 0 ? whole : std::copysign(0.0, a / b);
    }
    return std::pow(a, b);
}

}  // namespace

Value apply_sign(const std::string& op, const Value& v) {
    if (!v.is_number()) refuse("'" + op + "' of a " + type_name(defined(v)));
    if (v.as<double>()) return op == "-" ? -number_of(v) : number_of(v);
    return whole_arithmetic(op, 0, whole_number(v, op));
}

Value apply_binary(Budget& budget, const std::string& op, const Value& left, const Value& right) {
    if (op == "~") {
        budget.steps(weight_of(left) + weight_of(right));
        std::string out = text_of(left) + text_of(right);
        budget.bytes(out.size());
        return out;
    }
    if (op == "%" && left.string()) return percent_format(budget, *left.string(), right);
    return arithmetic(budget, op, defined(left), defined(right));
}

bool apply_comparison(Budget& budget, const std::string& op, const Value& left, const Value& right) {
    budget.steps(2 * std::min(weight_of(left), weight_of(right)));
    if (op == "==") return equal(left, right);
    if (op == "!=") return !equal(left, right);
    if (op == "in" || op == "not in") {
        budget.steps(weight_of(right));
        return contains(right, left) == (op == "in");
    }
    const int order = compare(left, right);
    return op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
}

}  // namespace patchbay::text::chat
