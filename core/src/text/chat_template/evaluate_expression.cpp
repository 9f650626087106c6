// Expressions of a template.
#include <algorithm>
#include <cmath>

#include "text/chat_template/evaluator.hpp"

namespace patchbay::text::chat {
namespace {

using Kind = Expression::Kind;

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

}  // namespace

Value Evaluator::evaluate(const Expression& e) {
    constexpr uint32_t kMaxDepth = 600; // of calls of this function, macros among them
    struct Deeper {
        uint32_t& depth;
        ~Deeper() { depth -= 1; }
    };
    try {
        budget_.steps(1);
        if (depth_ == kMaxDepth) refuse("macros or expressions are nested too deep");
        depth_ += 1;
        const Deeper deeper{depth_};
        return evaluate_kind(e);
    } catch (TemplateError& error) {
        if (error.line == 0) error.line = e.line;
        throw;
    }
}

Value Evaluator::evaluate_kind(const Expression& e) {
    switch (e.kind) {
        case Kind::kLiteral:
            return e.value;
        case Kind::kName:
            return look_up(e.name);
        case Kind::kList:
        case Kind::kTuple: {
            Values items;
            for (const ExpressionPtr& item : e.items) items.push_back(evaluate(*item));
            return e.kind == Kind::kList ? Value::list(std::move(items)) : Value::tuple(std::move(items));
        }
        case Kind::kDict: {
            std::vector<std::pair<Value, Value>> items;
            for (size_t i = 0; i + 1 < e.items.size(); i += 2) {
                Value key = evaluate(*e.items[i]), value = evaluate(*e.items[i + 1]);
                const auto same = std::ranges::find_if(items, [&](const auto& item) { return equal(item.first, key); });
                if (same != items.end()) same->second = std::move(value);
                else items.emplace_back(std::move(key), std::move(value));
            }
            return Value::dict(std::move(items));
        }
        case Kind::kUnary:
            return unary(e);
        case Kind::kBinary:
            return binary(e);
        case Kind::kCompare:
            return comparison(e);
        case Kind::kConditional:
            if (is_true(evaluate(*e.items[0]))) return evaluate(*e.items[1]);
            if (e.items[2]) return evaluate(*e.items[2]);
            return Value::undefined("the condition of an 'if' without 'else' does not hold");
        case Kind::kAttribute:
            return attribute(evaluate(*e.items[0]), e.name);
        case Kind::kSubscript: {
            const Value of = evaluate(*e.items[0]), key = evaluate(*e.items[1]);
            Value found = item(of, key);
            if (found.is_undefined() && key.string() && !of.space()) return attribute(of, *key.string());
            return found;
        }
        case Kind::kSlice: {
            const auto part = [&](size_t i) { return e.items[i] ? evaluate(*e.items[i]) : Value(); };
            const Value of = evaluate(*e.items[0]);
            budget_.steps(weight_of(of));
            return slice(of, part(1), part(2), part(3));
        }
        case Kind::kCall:
            return call(e, nullptr);
        case Kind::kFilter: {
            const Value of = evaluate(*e.items[0]);
            return apply_filter(budget_, e.name, of, arguments(e, 1));
        }
        case Kind::kTest: {
            const Value of = evaluate(*e.items[0]);
            return apply_test(e.name, of, arguments(e, 1));
        }
    }
    return {};
}

Value Evaluator::look_up(const std::string& name) {
    for (const Scope* scope = scope_; scope; scope = scope->parent)
        if (const auto at = scope->names.find(name); at != scope->names.end()) return at->second;
    return Value::undefined("'" + name + "' is undefined");
}

Value Evaluator::unary(const Expression& e) {
    const Value v = evaluate(*e.items[0]);
    if (e.name == "not") return !is_true(v);
    if (!v.is_number()) refuse("'" + e.name + "' of a " + type_name(defined(v)));
    if (v.as<double>()) return e.name == "-" ? -number_of(v) : number_of(v);
    const int64_t whole = whole_number(v, e.name);
    return whole_arithmetic(e.name, 0, whole);
}

Value Evaluator::binary(const Expression& e) {
    const Value left = evaluate(*e.items[0]);
    if (e.name == "and") return is_true(left) ? evaluate(*e.items[1]) : left;
    if (e.name == "or") return is_true(left) ? left : evaluate(*e.items[1]);
    const Value right = evaluate(*e.items[1]);
    if (e.name == "~") {
        budget_.steps(weight_of(left) + weight_of(right));
        std::string out = text_of(left) + text_of(right);
        budget_.bytes(out.size());
        return out;
    }
    return arithmetic(e, defined(left), defined(right));
}

Value Evaluator::arithmetic(const Expression& e, const Value& left, const Value& right) {
    const std::string& op = e.name;
    if (op == "+" && left.string() && right.string()) {
        budget_.bytes(left.string()->size() + right.string()->size());
        return *left.string() + *right.string();
    }
    if (op == "+" && left.list() && right.list() && left.list()->tuple == right.list()->tuple) {
        budget_.steps(left.list()->items.size() + right.list()->items.size());
        Values out = left.list()->items;
        out.insert(out.end(), right.list()->items.begin(), right.list()->items.end());
        return left.list()->tuple ? Value::tuple(std::move(out)) : Value::list(std::move(out));
    }
    const auto counts = [](const Value& v) { return v.as<int64_t>() || v.as<bool>(); };
    if (op == "*" && (left.string() || left.list()) && counts(right))
        return repeated(budget_, left, whole_number(right, op));
    if (op == "*" && (right.string() || right.list()) && counts(left))
        return repeated(budget_, right, whole_number(left, op));
    if (op == "%" && left.string()) return percent_format(budget_, *left.string(), right);
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

Value Evaluator::whole_arithmetic(const std::string& op, int64_t a, int64_t b) {
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

Value Evaluator::comparison(const Expression& e) {
    Value left = evaluate(*e.items[0]);
    for (size_t i = 0; i < e.ops.size(); ++i) {
        Value right = evaluate(*e.items[i + 1]);
        budget_.steps(std::min(weight_of(left), weight_of(right)));
        const std::string& op = e.ops[i];
        bool holds = false;
        if (op == "==") holds = equal(left, right);
        else if (op == "!=") holds = !equal(left, right);
        else if (op == "in" || op == "not in") {
            budget_.steps(weight_of(right));
            holds = contains(right, left) == (op == "in");
        } else {
            const int order = compare(left, right);
            holds = op == "<" ? order < 0 : op == "<=" ? order <= 0 : op == ">" ? order > 0 : order >= 0;
        }
        if (!holds) return false;
        left = std::move(right);
    }
    return true;
}

Arguments Evaluator::arguments(const Expression& e, size_t first) {
    Arguments out;
    for (size_t i = first; i < e.items.size(); ++i) out.positional.push_back(evaluate(*e.items[i]));
    for (const auto& [name, value] : e.named) {
        Value v = evaluate(*value);
        if (name == "*") {
            for (Value& part : items_of(budget_, defined(v))) out.positional.push_back(std::move(part));
        } else if (name == "**") {
            if (!v.dict()) refuse("'**' takes a dict, got " + type_name(defined(v)));
            for (const auto& [key, part] : v.dict()->items) out.named.emplace_back(text_of(key), part);
        } else out.named.emplace_back(name, std::move(v));
    }
    return out;
}

Value Evaluator::call(const Expression& e, const Callable* caller) {
    const Expression& callee = *e.items[0];
    Value f;
    if (callee.kind == Kind::kAttribute) { // a method without an object for it
        const Value of = evaluate(*callee.items[0]);
        Arguments given = arguments(e, 1);
        if (!of.space() && !of.loop())
            if (auto out = call_method(budget_, defined(of), callee.name, given)) return *std::move(out);
        f = attribute(of, callee.name);
        if (f.is_undefined()) refuse("a " + type_name(of) + " has no method '" + callee.name + "'");
        if (!f.callable()) refuse("'" + callee.name + "' is a " + type_name(f) + ", which cannot be called");
        if (caller) given.named.emplace_back("caller", Value(*caller));
        return f.callable()->call(given);
    }
    f = evaluate(callee);
    if (!defined(f).callable()) refuse("a " + type_name(f) + " cannot be called");
    Arguments given = arguments(e, 1);
    if (caller) given.named.emplace_back("caller", Value(*caller));
    return f.callable()->call(given);
}

Value Evaluator::attribute(const Value& of, const std::string& name) {
    if (Loop* const loop = defined(of).loop()) return loop_attribute(*loop, name);
    if (has_method(of, name))
        return Value(
            Callable{name, [this, of, name](Arguments& given) { return *call_method(budget_, of, name, given); }});
    if (of.dict()) budget_.steps(1 + of.dict()->items.size() / 8);
    return of.dict() || of.space() ? item(of, Value(name))
                                   : Value::undefined("a " + type_name(of) + " has no attribute '" + name + "'");
}

Value Evaluator::loop_attribute(Loop& loop, const std::string& name) {
    const auto at = static_cast<int64_t>(loop.index0), count = static_cast<int64_t>(loop.items->size());
    if (name == "index") return at + 1;
    if (name == "index0") return at;
    if (name == "revindex") return count - at;
    if (name == "revindex0") return count - at - 1;
    if (name == "first") return at == 0;
    if (name == "last") return at + 1 == count;
    if (name == "length") return count;
    if (name == "depth") return static_cast<int64_t>(loop.depth0) + 1;
    if (name == "depth0") return static_cast<int64_t>(loop.depth0);
    if (name == "previtem")
        return at > 0 && at <= count ? (*loop.items)[loop.index0 - 1] : Value::undefined("there is no previous item");
    if (name == "nextitem")
        return at + 1 < count ? (*loop.items)[loop.index0 + 1] : Value::undefined("there is no next item");
    if (name == "cycle")
        return Value(Callable{name, [at](Arguments& given) -> Value {
                                  if (given.positional.empty()) refuse("cycle takes values");
                                  return given.positional[static_cast<size_t>(at) % given.positional.size()];
                              }});
    return Value::undefined("loop has no '" + name + "'");
}

}  // namespace patchbay::text::chat
