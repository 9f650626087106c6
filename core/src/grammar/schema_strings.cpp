#include "grammar/schema_strings.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/utf8.hpp"
#include "grammar/automaton.hpp"
#include "grammar/regex.hpp"
#include "grammar/regular_sets.hpp"

namespace patchbay::grammar {

constexpr uint32_t kMaxMatchedLength = 400; // of strings under both a maxLength and a pattern or format

Result<ExprId> SchemaStrings::under(const Constraints& c) {
    if (c.length.min > c.length.max) return rules_.nothing();
    const bool excludes_text =
        std::any_of(c.excluded.begin(), c.excluded.end(), [](const Json* v) { return v->is_string(); });
    if (c.texts.empty() && !excludes_text) return text_.string(c.length.min, c.length.max);
    PB_TRY(const ExprId inner, content(c));
    return text_.quoted(inner);
}

Result<ExprId> SchemaStrings::parsed(const std::string& pattern, RegexDialect::Match match, const std::string& path) {
    const auto known = expressions_.find({pattern, match});
    if (known != expressions_.end()) return known->second;
    const bool whole = match == RegexDialect::Match::kWhole;
    const auto e = parse_regex(rules_, pattern, whole ? text_.format_dialect() : text_.pattern_dialect(), work_);
    if (!e) return prefixed(path, e.failure());
    expressions_[{pattern, match}] = *e;
    return *e;
}

Result<ExprId> SchemaStrings::content(const Constraints& c) {
    std::vector<ExprId> parts, excluded;
    for (const Constraints::Text& t : c.texts) {
        PB_TRY(const ExprId e, parsed(t.regex, t.match, t.path));
        (t.negated ? excluded : parts).push_back(e);
    }
    for (const Json* v : c.excluded) {
        if (!v->is_string()) continue;
        const std::string spelled = JsonText::spelled(*v);
        excluded.push_back(rules_.bytes(spelled.substr(1, spelled.size() - 2)));
    }
    const bool counted = c.length.min > 0 || c.length.max != kUnbounded;
    const uint32_t max_length = std::max(c.length.min, kMaxMatchedLength); // longer ones would take too many states
    if (counted || parts.empty())
        parts.push_back(text_.content(c.length.min, c.length.max == kUnbounded ? kUnbounded
                                                                               : std::min(c.length.max, max_length)));
    PB_TRY(const ExprId all, common_to(rules_, parts, work_));
    return without_any(rules_, all, std::move(excluded), work_);
}

Result<bool> SchemaStrings::allows(const Constraints& c, const Json& listed) {
    const auto& text = listed.get_ref<const std::string&>();
    const size_t length = count_characters(text);
    if (length < c.length.min || length > c.length.max) return false;
    const std::string spelled = JsonText::spelled(listed);
    for (const Constraints::Text& t : c.texts) {
        if (t.match == RegexDialect::Match::kWhole) continue; // a format's
        PB_TRY(const Dfa* const pattern, automaton(t.regex, t.path));
        PB_CHECK(work_.spend(spelled.size()));
        if (pattern->matches(spelled.substr(1, spelled.size() - 2)) == t.negated) return false;
    }
    return true;
}

Result<const Dfa*> SchemaStrings::automaton(const std::string& pattern, const std::string& path) {
    const auto [at, fresh] = patterns_.try_emplace(pattern);
    if (fresh) {
        const auto e = parsed(pattern, RegexDialect::Match::kAnywhere, path);
        if (!e) {
            patterns_.erase(at);
            return e.failure();
        }
        PB_TRY(at->second, regular(rules_, *e, work_));
    }
    return &at->second;
}

Result<Dfa> SchemaStrings::matching(const std::string& pattern, const std::string& path) {
    PB_TRY(const Dfa* const out, automaton(pattern, path));
    PB_CHECK(work_.spend(out->states.size()));
    return *out;
}

}  // namespace patchbay::grammar
