#include "text/chat_template/operators.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace patchbay::text::chat {
namespace {

// Text % values, as Python has it: %s, %r, %d, %i, %f with a precision, %%.
std::string percent_format(Budget& budget, const std::string& format, const Value& values) {
    const Values all = values.list() && values.list()->tuple ? values.list()->items : Values{values};
    std::string out;
    size_t next = 0;
    for (size_t i = 0; i < format.size(); ++i) {
        if (format[i] != '%') {
            out += format[i];
            continue;
        }
        if (++i < format.size() && format[i] == '%') {
            out += '%';
            continue;
        }
        int precision = 6;
        if (i < format.size() && format[i] == '.') {
            precision = 0;
            for (++i; i < format.size() && format[i] >= '0' && format[i] <= '9' && precision < 10; ++i)
                precision = precision * 10 + (format[i] - '0');
        }
        if (i == format.size()) refuse("a format ends after '%'");
        if (next == all.size()) refuse("not enough values for the format");
        const Value& v = defined(all[next++]);
        if (format[i] == 's') out += text_of(v);
        else if (format[i] == 'r') out += python_repr(v);
        else if ((format[i] == 'd' || format[i] == 'i') && v.is_number())
            out += std::to_string(v.as<double>() ? static_cast<int64_t>(std::clamp(*v.as<double>(), -9e18, 9e18))
                                                 : whole_number(v, "%d"));
        else if (format[i] == 'f' && v.is_number()) {
            char text[400];
            std::snprintf(text, sizeof text, "%.*f", std::min(precision, 30), number_of(v));
            out += text;
        } else refuse(std::string("'%") + format[i] + "' of a " + type_name(v) + " is not supported");
    }
    if (next < all.size()) refuse("more values than the format has places");
    budget.bytes(out.size());
    return out;
}

Value repeated(Budget& budget, const Value& of, int64_t times) {
    const auto n = static_cast<uint64_t>(std::max<int64_t>(times, 0));
    if (const std::string* s = of.string()) {
        if (n > 0 && s->size() > (1u << 30) / n) refuse("a text would be too long");
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
    if (op == "%" && left.string()) return percent_format(budget, *left.string(), right);
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
    if (op == "//") return std::floor(a / b);
    if (op == "%") return a - std::floor(a / b) * b;
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
    return arithmetic(budget, op, defined(left), defined(right));
}

bool apply_comparison(Budget& budget, const std::string& op, const Value& left, const Value& right) {
    budget.steps(std::min(weight_of(left), weight_of(right)));
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
