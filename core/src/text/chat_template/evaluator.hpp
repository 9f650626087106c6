// Runs a template's statements with a request's variables. Used by ChatTemplate; lives for one render, on one thread.
#pragma once
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "text/chat_template/builtins.hpp"
#include "text/chat_template/expression_evaluator.hpp"
#include "text/chat_template/scopes.hpp"
#include "text/chat_template/tree.hpp"

namespace patchbay::text::chat {

class Evaluator {
  public:
    // date: now, by strftime's format.
    Evaluator(Budget& budget, std::function<std::string(const std::string&)> date, size_t max_output);
    std::string run(const Block&, const Value& variables); // throws TemplateError

  private:
    enum class Flow { kOn, kBreak, kContinue };

    Flow run_block(const Block&);
    Flow run_statement(const Statement&);
    Flow run_for(const Statement&);
    void run_call(const Statement&);
    void print(const Value&);
    void append(std::string_view); // to what is printed
    void assign(const Target&, const Value&);
    struct Captured { // what a block prints, and how it ends
        std::string text{};
        Flow flow = Flow::kOn;
    };
    Captured captured(const Block&);
    Callable closure(const Statement&, std::string name); // a macro
    Value call_macro(const Statement&, const std::string& name, Scope* outer, Arguments&);

    Budget& budget_;
    const size_t max_output_;
    Scopes scopes_;
    ExpressionEvaluator expressions_{budget_, scopes_};
    std::deque<Namespace> namespaces_;
    std::deque<Loop> loops_;
    std::deque<Values> loop_items_;
    std::string* out_ = nullptr;
};

}  // namespace patchbay::text::chat
