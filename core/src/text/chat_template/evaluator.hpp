// Walks a template's tree with a request's variables. Used by ChatTemplate; lives for one render, on one thread.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/chat_template/builtins.hpp"
#include "text/chat_template/tree.hpp"

namespace patchbay::text::chat {

struct Scope {
    Scope* parent = nullptr;
    std::unordered_map<std::string, Value> names{};
    bool captured = false; // by a macro, which may look here later
};

class Evaluator {
  public:
    // date: now, by strftime's format.
    Evaluator(Budget& budget, std::function<std::string(const std::string&)> date, size_t max_output);
    std::string run(const Block&, const Value& variables); // throws TemplateError

  private:
    enum class Flow { kOn, kBreak, kContinue };

    // ---- statements (evaluator.cpp) ----
    Flow run_block(const Block&);
    Flow run_statement(const Statement&);
    Flow run_for(const Statement&);
    void run_call(const Statement&);
    void print(const Value&);
    void assign(const Target&, const Value&);
    std::string captured(const Block&); // what it prints
    Callable closure(const Statement&, std::string name); // a macro
    Value call_macro(const Statement&, const std::string& name, Scope* outer, Arguments&);
    void add_globals(std::function<std::string(const std::string&)> date);

    // ---- expressions (evaluate_expression.cpp) ----
    Value evaluate(const Expression&);
    Value evaluate_kind(const Expression&);
    Value unary(const Expression&);
    Value binary(const Expression&);
    Value arithmetic(const Expression&, const Value& left, const Value& right);
    Value whole_arithmetic(const std::string& op, int64_t left, int64_t right);
    Value comparison(const Expression&);
    Value call(const Expression&, const Callable* caller);
    Arguments arguments(const Expression&, size_t first);
    Value attribute(const Value& of, const std::string& name);
    Value loop_attribute(Loop&, const std::string& name);
    Value look_up(const std::string& name);

    // ---- scopes ----
    class Inside; // a scope for as long as it lives
    Scope* open_scope(Scope* parent);
    void close_scope(Scope*);

    Budget& budget_;
    const size_t max_output_;
    std::deque<Scope> scopes_; // all that were made; those in free_ serve again
    std::vector<Scope*> free_;
    std::deque<Namespace> namespaces_;
    std::deque<Loop> loops_;
    std::deque<Values> loop_items_;
    Scope* scope_ = nullptr;
    std::string* out_ = nullptr;
    uint32_t depth_ = 0, loop_depth_ = 0;
};

}  // namespace patchbay::text::chat
