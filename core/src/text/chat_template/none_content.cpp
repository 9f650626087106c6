#include "text/chat_template/none_content.hpp"

#include <algorithm>

#include "text/chat_template/content_form.hpp"

namespace patchbay::text::chat {
namespace {

using ExpressionKind = Expression::Kind;

bool is_none(const Expression& e) { return e.kind == ExpressionKind::kLiteral && e.value.is_none(); }

bool tests(const Expression& e) {
    if (e.kind == ExpressionKind::kTest) return e.name == "none" && holder_of_content(*e.items[0]);
    if (e.kind != ExpressionKind::kCompare) return false;
    for (size_t i = 0; i < e.ops.size(); ++i) {
        const Expression &left = *e.items[i], &right = *e.items[i + 1];
        const bool compares = e.ops[i] == "==" || e.ops[i] == "!=";
        if (compares && ((holder_of_content(left) && is_none(right)) || (is_none(left) && holder_of_content(right))))
            return true;
    }
    return false;
}

bool tests_somewhere(const ExpressionPtr& e) {
    if (!e) return false;
    return tests(*e) || std::ranges::any_of(e->items, tests_somewhere) ||
           std::ranges::any_of(e->named, [](const auto& argument) { return tests_somewhere(argument.second); });
}

}  // namespace

bool tests_content_for_none(const Block& block) {
    return std::ranges::any_of(block, [](const auto& s) {
        return tests_somewhere(s->value) || tests_somewhere(s->condition) ||
               std::ranges::any_of(s->parameters,
                                   [](const Parameter& p) { return tests_somewhere(p.default_value); }) ||
               tests_content_for_none(s->body) || tests_content_for_none(s->otherwise);
    });
}

}  // namespace patchbay::text::chat
