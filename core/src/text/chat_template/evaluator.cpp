#include "text/chat_template/evaluator.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "text/chat_template/builtins.hpp"

namespace patchbay::text::chat {
namespace {

Value range(Budget& budget, const Arguments& given) {
    constexpr int64_t kMaxRange = 100'000; // as Jinja's sandbox has it
    const ArgumentReader a("range", given);
    const bool from = a.places() > 1;
    const int64_t start = from ? a.integer(0, "start", 0) : 0, stop = a.integer(from ? 1 : 0, "stop", 0);
    const int64_t step = a.integer(2, "step", 1);
    if (step == 0) refuse("range: the step is 0");
    Values out;
    for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
        if (static_cast<int64_t>(out.size()) == kMaxRange) refuse("range: more than 100000 numbers");
        out.emplace_back(i);
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    budget.steps(out.size());
    return Value::list(std::move(out));
}

std::vector<std::pair<Value, Value>> fields_of(Budget& budget, Arguments& given) {
    DictMaker out;
    if (given.positional.size() > 1) refuse("dict and namespace take one dict or list of pairs");
    for (const Value& from : given.positional) {
        if (from.dict())
            for (const auto& [key, value] : from.dict()->items) out.set(key, value);
        else
            for (const Value& part : items_of(budget, defined(from))) {
                const Values pair = items_of(budget, part);
                if (pair.size() != 2) refuse("dict and namespace take a dict or a list of pairs");
                budget.steps(pair.front().string() ? 1 : out.size());
                out.set(pair.front(), pair.back());
            }
    }
    for (auto& [name, value] : given.named) out.set(name, std::move(value));
    budget.steps(8 * out.size());
    return out.items();
}

// Functions that every template can call. They use the budget and the namespaces, where they put those that they make,
// as long as they are called.
std::vector<Callable> global_functions(Budget& budget, std::deque<Namespace>& namespaces,
                                       std::function<std::string(const std::string&)> date) {
    return {
        {"raise_exception",
         [](Arguments& given) -> Value {
             refuse(given.positional.empty() ? "raise_exception" : text_of(given.positional.front()));
         }},
        {"strftime_now",
         [date = std::move(date)](Arguments& given) -> Value {
             return date(ArgumentReader("strftime_now", given).text(0, "format"));
         }},
        {"range", [&budget](Arguments& given) { return range(budget, given); }},
        {"dict", [&budget](Arguments& given) { return Value::dict(fields_of(budget, given)); }},
        {"namespace",
         [&budget, &namespaces](Arguments& given) -> Value {
             Namespace& made = namespaces.emplace_back();
             for (auto& [name, value] : fields_of(budget, given))
                 made.fields.emplace_back(text_of(name), std::move(value));
             return &made;
         }},
    };
}

}  // namespace

Evaluator::Evaluator(Budget& budget, std::function<std::string(const std::string&)> date, size_t max_output)
    : budget_(budget), max_output_(max_output) {
    for (Callable& f : global_functions(budget, namespaces_, std::move(date))) {
        const std::string name = f.name;
        scopes_.set(name, Value(std::move(f)));
    }
}

std::string Evaluator::run(const Block& block, const Value& variables) {
    const OpenScope inside(scopes_, scopes_.current());
    scopes_.capture();
    for (const auto& [name, value] : variables.dict()->items) scopes_.set(*name.string(), value);
    std::string out;
    out_ = &out;
    run_block(block);
    return out;
}

Evaluator::Flow Evaluator::run_block(const Block& block) {
    const Budget::Level level(budget_);
    for (const auto& statement : block) {
        Flow flow = Flow::kOn;
        try {
            budget_.steps(1);
            flow = run_statement(*statement);
        } catch (TemplateError& error) {
            if (error.line == 0) error.line = statement->line;
            throw;
        }
        if (flow != Flow::kOn) return flow;
    }
    return Flow::kOn;
}

Evaluator::Flow Evaluator::run_statement(const Statement& s) {
    using Kind = Statement::Kind;
    switch (s.kind) {
        case Kind::kText:
            append(s.text);
            break;
        case Kind::kPrint:
            print(expressions_.evaluate(*s.value));
            break;
        case Kind::kIf: return run_block(is_true(expressions_.evaluate(*s.value)) ? s.body : s.otherwise);
        case Kind::kFor: return run_for(s);
        case Kind::kSet:
            assign(s.target, expressions_.evaluate(*s.value));
            break;
        case Kind::kCapture:
        case Kind::kFilter: {
            Value text;
            {
                const OpenScope inside(scopes_, scopes_.current());
                Captured made = captured(s.body);
                if (made.flow != Flow::kOn) return made.flow; // what it has printed is lost, as in Jinja
                text = std::move(made.text);
                scopes_.set(Statement::kCaptured, text);
                if (s.value) text = expressions_.evaluate(*s.value);
            }
            if (s.kind == Kind::kFilter) print(text);
            else assign(s.target, text);
            break;
        }
        case Kind::kMacro:
            scopes_.set(s.text, Value(closure(s, s.text)));
            break;
        case Kind::kCall:
            run_call(s);
            break;
        case Kind::kWith: {
            std::vector<std::pair<std::string, Value>> made; // all before any of them is there
            for (const Parameter& p : s.parameters) made.emplace_back(p.name, expressions_.evaluate(*p.default_value));
            const OpenScope inside(scopes_, scopes_.current());
            for (auto& [name, value] : made) scopes_.set(name, std::move(value));
            return run_block(s.body);
        }
        case Kind::kGroup: {
            const OpenScope inside(scopes_, scopes_.current());
            return run_block(s.body);
        }
        case Kind::kBreak: return Flow::kBreak;
        case Kind::kContinue: return Flow::kContinue;
    }
    return Flow::kOn;
}

void Evaluator::print(const Value& v) {
    budget_.steps(weight_of(v));
    std::string made;
    const std::string* text = v.string();
    if (!text) made = text_of(v), text = &made;
    append(*text);
}

void Evaluator::append(std::string_view text) {
    budget_.bytes(text.size());
    if (text.size() > max_output_ - out_->size()) // which is never the larger one
        refuse("the text is longer than " + std::to_string(max_output_) + " bytes");
    *out_ += text;
}

void Evaluator::assign(const Target& target, const Value& value) {
    if (!target.field.empty()) {
        Namespace* const space = scopes_.look_up(target.names.front()).space();
        if (!space)
            refuse("'" + target.names.front() + "' is not a namespace, so '" + target.field + "' cannot be set");
        budget_.steps(space->fields.size() / 8);
        for (auto& [name, old] : space->fields)
            if (name == target.field) return void(old = value);
        space->fields.emplace_back(target.field, value);
        return;
    }
    if (!target.unpacks) {
        scopes_.set(target.names.front(), value);
        return;
    }
    const Values parts = items_of(budget_, defined(value));
    if (parts.size() != target.names.size())
        refuse("got " + std::to_string(parts.size()) + " values for " + std::to_string(target.names.size()) + " names");
    for (size_t i = 0; i < parts.size(); ++i) scopes_.set(target.names[i], parts[i]);
}

Evaluator::Captured Evaluator::captured(const Block& block) {
    Captured out;
    std::string* const before = std::exchange(out_, &out.text);
    try {
        out.flow = run_block(block);
    } catch (...) {
        out_ = before;
        throw;
    }
    out_ = before;
    return out;
}

Evaluator::Flow Evaluator::run_for(const Statement& s) {
    const Budget::Level level(budget_);
    Values all = items_of(budget_, expressions_.evaluate(*s.value));
    if (s.condition) {
        Values kept;
        for (Value& v : all) {
            const OpenScope inside(scopes_, scopes_.current());
            assign(s.target, v);
            if (is_true(expressions_.evaluate(*s.condition))) kept.push_back(std::move(v));
        }
        all = std::move(kept);
    }
    budget_.steps(16);
    Loop& loop = loops_.emplace_back();
    const Values& items = loop_items_.emplace_back(std::move(all));
    loop.items = &items;
    bool completed = false; // a pass came to the end of the body: what Jinja's `else` goes by
    for (size_t i = 0; i < items.size(); ++i) {
        budget_.steps(1);
        const OpenScope inside(scopes_, scopes_.current());
        loop.index0 = i;
        scopes_.set("loop", Value(&loop));
        assign(s.target, items[i]);
        const Flow flow = run_block(s.body);
        completed = completed || flow == Flow::kOn;
        if (flow == Flow::kBreak) break;
    }
    static const Values kNothing;
    loop.items = &kNothing; // a template may have kept the loop
    loop_items_.pop_back();
    if (completed) return Flow::kOn;
    const OpenScope inside(scopes_, scopes_.current());
    return run_block(s.otherwise);
}

Callable Evaluator::closure(const Statement& s, std::string name) {
    Scope* const outer = scopes_.capture();
    return {name, [this, &s, name, outer](Arguments& given) { return call_macro(s, name, outer, given); }};
}

Value Evaluator::call_macro(const Statement& s, const std::string& name, Scope* outer, Arguments& given) {
    constexpr uint32_t kLevels = 4; // by the stack that it takes, beside a block's
    const Budget::Level level(budget_, kLevels);
    const OpenScope inside(scopes_, outer);
    Values more;
    std::vector<std::pair<Value, Value>> more_named;
    for (size_t i = s.parameters.size(); i < given.positional.size(); ++i) more.push_back(given.positional[i]);
    for (auto& [key, value] : given.named) {
        if (key == "caller") {
            scopes_.set("caller", value);
            continue;
        }
        const auto at = std::ranges::find(s.parameters, key, &Parameter::name);
        if (at == s.parameters.end()) more_named.emplace_back(key, value);
        else if (static_cast<size_t>(at - s.parameters.begin()) < given.positional.size())
            refuse(name + " got '" + key + "' twice");
        else scopes_.set(key, value);
    }
    for (size_t i = 0; i < s.parameters.size(); ++i) {
        const Parameter& p = s.parameters[i];
        if (i < given.positional.size()) scopes_.set(p.name, given.positional[i]);
        else if (scopes_.has_here(p.name)) continue;
        else if (p.default_value) scopes_.set(p.name, expressions_.evaluate(*p.default_value));
        else scopes_.set(p.name, Value::undefined("parameter '" + p.name + "' was not given"));
    }
    scopes_.set("varargs", Value::tuple(std::move(more)));
    scopes_.set("kwargs", Value::dict(std::move(more_named)));
    return captured(s.body).text;
}

void Evaluator::run_call(const Statement& s) {
    const Callable caller = closure(s, "caller");
    print(expressions_.call(*s.value, &caller));
}

}  // namespace patchbay::text::chat
