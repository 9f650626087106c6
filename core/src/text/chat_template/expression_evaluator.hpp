// Evaluates the expressions of a template. Lives for one render, on one thread.
#pragma once

#include "text/chat_template/builtins.hpp"
#include "text/chat_template/scopes.hpp"
#include "text/chat_template/tree.hpp"

namespace patchbay::text::chat {

class ExpressionEvaluator {
  public:
    ExpressionEvaluator(Budget& budget, const Scopes& scopes) : budget_(budget), scopes_(scopes) {}
    Value evaluate(const Expression&);
    // caller: what `caller` is in the macro that is called; null: nothing.
    Value call(const Expression&, const Callable* caller);

  private:
    Value evaluate_kind(const Expression&);
    Value unary(const Expression&);
    Value binary(const Expression&);
    Value comparison(const Expression&);
    Arguments arguments(const Expression&, size_t first);

    Budget& budget_;
    const Scopes& scopes_;
};

}  // namespace patchbay::text::chat
