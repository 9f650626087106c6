#include "text/chat_template/evaluator.hpp"

#include <algorithm>

namespace patchbay::text::chat {

class Evaluator::Inside {
  public:
    Inside(Evaluator& of, Scope* parent) : of_(of), before_(of.scope_), mine_(of.open_scope(parent)) {
        of.scope_ = mine_;
    }
    ~Inside() {
        of_.scope_ = before_;
        of_.close_scope(mine_);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

  private:
    Evaluator& of_;
    Scope *before_, *mine_;
};

Evaluator::Evaluator(Budget& budget, std::function<std::string(const std::string&)> date, size_t max_output)
    : budget_(budget), max_output_(max_output) {
    scope_ = open_scope(nullptr);
    scope_->captured = true;
    add_globals(std::move(date));
}

std::string Evaluator::run(const Block& block, const Value& variables) {
    scope_ = open_scope(scope_);
    scope_->captured = true;
    for (const auto& [name, value] : variables.dict()->items) scope_->names[*name.string()] = value;
    std::string out;
    out_ = &out;
    run_block(block);
    return out;
}

Scope* Evaluator::open_scope(Scope* parent) {
    if (free_.empty()) free_.push_back(&scopes_.emplace_back());
    Scope* const scope = free_.back();
    free_.pop_back();
    scope->parent = parent;
    return scope;
}

void Evaluator::close_scope(Scope* scope) {
    if (scope->captured) return;
    scope->names.clear();
    free_.push_back(scope);
}

void Evaluator::add_globals(std::function<std::string(const std::string&)> date) {
    const auto add = [&](const char* name, std::function<Value(Arguments&)> f) {
        scope_->names[name] = Value(Callable{name, std::move(f)});
    };
    add("raise_exception", [](Arguments& given) -> Value {
        refuse(given.positional.empty() ? "raise_exception" : text_of(given.positional.front()));
    });
    add("strftime_now", [date = std::move(date)](Arguments& given) -> Value {
        return date(ArgumentReader("strftime_now", given).text(0, "format"));
    });
    add("range", [this](Arguments& given) -> Value {
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
        budget_.steps(out.size());
        return Value::list(std::move(out));
    });
    const auto fields = [this](Arguments& given) {
        std::vector<std::pair<Value, Value>> out;
        for (const Value& from : given.positional) {
            if (!from.dict()) refuse("dict and namespace take a dict, got " + type_name(defined(from)));
            out.insert(out.end(), from.dict()->items.begin(), from.dict()->items.end());
        }
        for (auto& [name, value] : given.named) out.emplace_back(name, std::move(value));
        budget_.steps(out.size());
        return out;
    };
    add("dict", [fields](Arguments& given) -> Value { return Value::dict(fields(given)); });
    add("namespace", [this, fields](Arguments& given) -> Value {
        Namespace& made = namespaces_.emplace_back();
        for (auto& [name, value] : fields(given)) made.fields.emplace_back(text_of(name), std::move(value));
        return &made;
    });
}

Evaluator::Flow Evaluator::run_block(const Block& block) {
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
            *out_ += s.text;
            budget_.bytes(s.text.size());
            break;
        case Kind::kPrint:
            print(evaluate(*s.value));
            break;
        case Kind::kIf:
            return run_block(is_true(evaluate(*s.value)) ? s.body : s.otherwise);
        case Kind::kFor:
            return run_for(s);
        case Kind::kSet:
            assign(s.target, evaluate(*s.value));
            break;
        case Kind::kCapture:
        case Kind::kFilter: {
            Value text;
            {
                const Inside inside(*this, scope_);
                text = captured(s.body);
                scope_->names[Statement::kCaptured] = text;
                if (s.value) text = evaluate(*s.value);
            }
            if (s.kind == Kind::kFilter) print(text);
            else assign(s.target, text);
            break;
        }
        case Kind::kMacro:
            scope_->names[s.text] = Value(closure(s, s.text));
            break;
        case Kind::kCall:
            run_call(s);
            break;
        case Kind::kWith: {
            std::vector<std::pair<std::string, Value>> made; // all before any of them is there
            for (const Parameter& p : s.parameters) made.emplace_back(p.name, evaluate(*p.default_value));
            const Inside inside(*this, scope_);
            for (auto& [name, value] : made) scope_->names[name] = std::move(value);
            return run_block(s.body);
        }
        case Kind::kGroup:
            return run_block(s.body);
        case Kind::kBreak:
            return Flow::kBreak;
        case Kind::kContinue:
            return Flow::kContinue;
    }
    return Flow::kOn;
}

void Evaluator::print(const Value& v) {
    budget_.steps(weight_of(v));
    std::string made;
    const std::string* text = v.string();
    if (!text) made = text_of(v), text = &made;
    budget_.bytes(text->size());
    *out_ += *text;
    if (out_->size() > max_output_)
        refuse("the text is longer than " + std::to_string(max_output_) + " bytes");
}

void Evaluator::assign(const Target& target, const Value& value) {
    if (!target.field.empty()) {
        Namespace* const space = look_up(target.names.front()).space();
        if (!space) refuse("'" + target.names.front() + "' is no namespace, so '" + target.field + "' cannot be set");
        for (auto& [name, old] : space->fields)
            if (name == target.field) return void(old = value);
        space->fields.emplace_back(target.field, value);
        return;
    }
    if (!target.unpacks) {
        scope_->names[target.names.front()] = value;
        return;
    }
    const Values parts = items_of(budget_, defined(value));
    if (parts.size() != target.names.size())
        refuse("got " + std::to_string(parts.size()) + " values for " + std::to_string(target.names.size()) + " names");
    for (size_t i = 0; i < parts.size(); ++i) scope_->names[target.names[i]] = parts[i];
}

std::string Evaluator::captured(const Block& block) {
    std::string text;
    std::string* const before = std::exchange(out_, &text);
    try {
        run_block(block);
    } catch (...) {
        out_ = before;
        throw;
    }
    out_ = before;
    return text;
}

Evaluator::Flow Evaluator::run_for(const Statement& s) {
    Values all = items_of(budget_, evaluate(*s.value));
    if (s.condition) {
        Values kept;
        for (Value& v : all) {
            const Inside inside(*this, scope_);
            assign(s.target, v);
            if (is_true(evaluate(*s.condition))) kept.push_back(std::move(v));
        }
        all = std::move(kept);
    }
    budget_.steps(16);
    Loop& loop = loops_.emplace_back();
    const Values& items = loop_items_.emplace_back(std::move(all));
    loop.items = &items;
    loop.depth0 = loop_depth_++;
    bool completed = false; // a pass came to the end of the body: what Jinja's `else` goes by
    for (size_t i = 0; i < items.size(); ++i) {
        budget_.steps(1);
        const Inside inside(*this, scope_);
        loop.index0 = i;
        scope_->names["loop"] = Value(&loop);
        assign(s.target, items[i]);
        const Flow flow = run_block(s.body);
        completed = completed || flow == Flow::kOn;
        if (flow == Flow::kBreak) break;
    }
    loop_depth_ -= 1;
    static const Values kNothing;
    loop.items = &kNothing; // a template may have kept the loop
    loop_items_.pop_back();
    return completed ? Flow::kOn : run_block(s.otherwise);
}

Callable Evaluator::closure(const Statement& s, std::string name) {
    for (Scope* outer = scope_; outer && !outer->captured; outer = outer->parent) outer->captured = true;
    return {name, [this, &s, name, outer = scope_](Arguments& given) { return call_macro(s, name, outer, given); }};
}

Value Evaluator::call_macro(const Statement& s, const std::string& name, Scope* outer, Arguments& given) {
    const Inside inside(*this, outer);
    Values more;
    std::vector<std::pair<Value, Value>> more_named;
    for (size_t i = s.parameters.size(); i < given.positional.size(); ++i) more.push_back(given.positional[i]);
    for (auto& [key, value] : given.named) {
        if (key == "caller") {
            scope_->names["caller"] = value;
            continue;
        }
        const auto at = std::ranges::find(s.parameters, key, &Parameter::name);
        if (at == s.parameters.end()) more_named.emplace_back(key, value);
        else if (static_cast<size_t>(at - s.parameters.begin()) < given.positional.size())
            refuse(name + " got '" + key + "' twice");
        else scope_->names[key] = value;
    }
    for (size_t i = 0; i < s.parameters.size(); ++i) {
        const Parameter& p = s.parameters[i];
        if (i < given.positional.size()) scope_->names[p.name] = given.positional[i];
        else if (scope_->names.contains(p.name)) continue;
        else if (p.default_value) scope_->names[p.name] = evaluate(*p.default_value);
        else scope_->names[p.name] = Value::undefined("parameter '" + p.name + "' was not given");
    }
    scope_->names["varargs"] = Value::tuple(std::move(more));
    scope_->names["kwargs"] = Value::dict(std::move(more_named));
    return captured(s.body);
}

void Evaluator::run_call(const Statement& s) {
    const Callable caller = closure(s, "caller");
    print(call(*s.value, &caller));
}

}  // namespace patchbay::text::chat
