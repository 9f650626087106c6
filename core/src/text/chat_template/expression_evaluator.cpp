#include "text/chat_template/expression_evaluator.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "text/chat_template/operators.hpp"

namespace patchbay::text::chat {
namespace {

using Kind = Expression::Kind;

Value loop_attribute(Budget& budget, Loop& loop, const std::string& name) {
    const auto at = static_cast<int64_t>(loop.index0), count = static_cast<int64_t>(loop.items->size());
    if (name == "index") return at + 1;
    if (name == "index0") return at;
    if (name == "revindex") return count - at;
    if (name == "revindex0") return count - at - 1;
    if (name == "first") return at == 0;
    if (name == "last") return at + 1 == count;
    if (name == "length") return count;
    if (name == "depth") return int64_t(1); // of recursive loops, which there are none of
    if (name == "depth0") return int64_t(0);
    if (name == "previtem")
        return at > 0 && at <= count ? (*loop.items)[loop.index0 - 1] : Value::undefined("there is no previous item");
    if (name == "nextitem")
        return at + 1 < count ? (*loop.items)[loop.index0 + 1] : Value::undefined("there is no next item");
    if (name == "cycle")
        return Value(Callable{name, [at](Arguments& given) -> Value {
                                  if (given.positional.empty()) refuse("cycle takes values");
                                  return given.positional[static_cast<size_t>(at) % given.positional.size()];
                              }});
    if (name == "changed")
        return Value(Callable{name, [&budget, &loop](Arguments& given) -> Value {
                                  const Value before = std::exchange(loop.looked_at, Value::tuple(given.positional));
                                  return apply_comparison(budget, "!=", before, loop.looked_at);
                              }});
    return Value::undefined("loop has no '" + name + "'");
}

}  // namespace

Value attribute_of(Budget& budget, const Value& of, const std::string& name) {
    if (Loop* const loop = defined(of).loop()) return loop_attribute(budget, *loop, name);
    if (has_method(of, name))
        return Value(
            Callable{name, [&budget, of, name](Arguments& given) { return *call_method(budget, of, name, given); }});
    if (of.dict() || of.space() || (of.list() && of.list()->group)) return item(budget, of, Value(name));
    return Value::undefined("a " + type_name(of) + " has no attribute '" + name + "'");
}

Value member_of(Budget& budget, const Value& of, const Value& key) {
    Value found = item(budget, of, key);
    return found.is_undefined() && key.string() && !of.space() ? attribute_of(budget, of, *key.string()) : found;
}

Value ExpressionEvaluator::evaluate(const Expression& e) {
    try {
        budget_.steps(1);
        const Budget::Level level(budget_);
        return evaluate_kind(e);
    } catch (TemplateError& error) {
        if (error.line == 0) error.line = e.line;
        throw;
    }
}

Value ExpressionEvaluator::evaluate_kind(const Expression& e) {
    switch (e.kind) {
        case Kind::kLiteral: return e.value;
        case Kind::kName: return scopes_.look_up(e.name);
        case Kind::kList:
        case Kind::kTuple: {
            Values items;
            for (const ExpressionPtr& item : e.items) items.push_back(evaluate(*item));
            return e.kind == Kind::kList ? Value::list(std::move(items)) : Value::tuple(std::move(items));
        }
        case Kind::kDict: {
            DictMaker out;
            for (size_t i = 0; i + 1 < e.items.size(); i += 2) {
                Value key = evaluate(*e.items[i]), value = evaluate(*e.items[i + 1]);
                out.set(std::move(key), std::move(value));
            }
            return out.made();
        }
        case Kind::kUnary: return unary(e);
        case Kind::kBinary: return binary(e);
        case Kind::kCompare: return comparison(e);
        case Kind::kConditional:
            if (is_true(evaluate(*e.items[0]))) return evaluate(*e.items[1]);
            if (e.items[2]) return evaluate(*e.items[2]);
            return Value::undefined("the condition of an 'if' without 'else' does not hold");
        case Kind::kAttribute: return attribute_of(budget_, evaluate(*e.items[0]), e.name);
        case Kind::kSubscript: {
            const Value of = evaluate(*e.items[0]), key = evaluate(*e.items[1]);
            return member_of(budget_, of, key);
        }
        case Kind::kSlice: {
            const auto part = [&](size_t i) { return e.items[i] ? evaluate(*e.items[i]) : Value(); };
            const Value of = evaluate(*e.items[0]);
            budget_.steps(weight_of(of));
            return slice(budget_, of, part(1), part(2), part(3));
        }
        case Kind::kCall: return call(e, nullptr);
        case Kind::kFilter: {
            const Value of = evaluate(*e.items[0]);
            return apply_filter(budget_, e.name, of, arguments(e, 1));
        }
        case Kind::kTest: {
            const Value of = evaluate(*e.items[0]);
            return apply_test(budget_, e.name, of, arguments(e, 1));
        }
    }
    return {};
}

Value ExpressionEvaluator::unary(const Expression& e) {
    const Value v = evaluate(*e.items[0]);
    return e.name == "not" ? Value(!is_true(v)) : apply_sign(e.name, v);
}

Value ExpressionEvaluator::binary(const Expression& e) {
    const Value left = evaluate(*e.items[0]);
    if (e.name == "and") return is_true(left) ? evaluate(*e.items[1]) : left;
    if (e.name == "or") return is_true(left) ? left : evaluate(*e.items[1]);
    const Value right = evaluate(*e.items[1]);
    return apply_binary(budget_, e.name, left, right);
}

Value ExpressionEvaluator::comparison(const Expression& e) {
    Value left = evaluate(*e.items[0]);
    for (size_t i = 0; i < e.ops.size(); ++i) {
        Value right = evaluate(*e.items[i + 1]);
        if (!apply_comparison(budget_, e.ops[i], left, right)) return false;
        left = std::move(right);
    }
    return true;
}

Arguments ExpressionEvaluator::arguments(const Expression& e, size_t first) {
    Arguments out;
    for (size_t i = first; i < e.items.size(); ++i) out.positional.push_back(evaluate(*e.items[i]));
    for (const auto& [name, value] : e.named) {
        Value v = evaluate(*value);
        if (name == "*") {
            for (Value& part : items_of(budget_, defined(v))) out.positional.push_back(std::move(part));
        } else if (name == "**") {
            if (!v.dict()) refuse("'**' takes a dict, got " + type_name(defined(v)));
            budget_.steps(v.dict()->items.size());
            for (const auto& [key, part] : v.dict()->items) out.named.emplace_back(text_of(key), part);
        } else out.named.emplace_back(name, std::move(v));
    }
    return out;
}

Value ExpressionEvaluator::call(const Expression& e, const Callable* caller) {
    const Expression& callee = *e.items[0];
    Value f;
    if (callee.kind == Kind::kAttribute) { // a method without an object for it
        const Value of = evaluate(*callee.items[0]);
        Arguments given = arguments(e, 1);
        if (!of.space() && !of.loop())
            if (auto out = call_method(budget_, defined(of), callee.name, given)) return *std::move(out);
        f = attribute_of(budget_, of, callee.name);
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

}  // namespace patchbay::text::chat
