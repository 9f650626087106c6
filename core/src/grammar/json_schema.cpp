#include "grammar/json_schema.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "grammar/automaton.hpp"
#include "grammar/schema_arrays.hpp"
#include "grammar/schema_constraints.hpp"
#include "grammar/schema_instance.hpp"
#include "grammar/schema_members.hpp"
#include "grammar/schema_parse.hpp"
#include "grammar/schema_text.hpp"
#include "grammar/schema_values.hpp"

namespace patchbay::grammar {
namespace {

constexpr size_t kMaxAlternatives = 256; // of several anyOf together
constexpr int kMaxSchemaDepth = 100;           // of schemas in each other
constexpr uint32_t kMaxDifferent = 32;   // members that minProperties demands and no schema names
constexpr uint32_t kMaxMatchedLength = 400; // of strings under both a maxLength and a pattern or format

class Translator {
  public:
    Translator(Rules& rules, const Json& root, Whitespace whitespace, Work& work)
        : rules_(rules), work_(work), schema_(root), text_(rules, whitespace) {}

    Result<RuleId> translate() {
        const RuleId root = rules_.declare("root");
        PB_TRY(const ExprId body, value({schema_.root()}));
        rules_.define(root, body);
        if (!rules_.fault().empty()) return fail(rules_.fault());
        return root;
    }

  private:
    using Part = std::tuple<const Json*, const UnevaluatedScope*, bool, const DynamicAnchors*>;
    using Key = std::vector<Part>;

    // All of them hold. Objects, arrays and alternatives become rules, one for the same schemas, which may be under
    // way.
    Result<ExprId> value(const SchemaSources& sources) {
        Key key;
        for (const SchemaSource& s : sources)
            key.emplace_back(s.schema, s.scope, s.scope && s.violates, s.dynamic);
        std::sort(key.begin(), key.end());
        key.erase(std::unique(key.begin(), key.end()), key.end());
        if (const auto known = rules_of_.find(key); known != rules_of_.end()) return rules_.rule(known->second);
        PB_CHECK(work_.spend(100 + 10 * key.size()));
        if (!rules_.fault().empty()) return fail(rules_.fault());
        PB_TRY(const FlatSchema flat, schema_.flat(sources));
        PB_CHECK(work_.spend(20 * flat.cost));
        if (flat.impossible) return rules_.nothing();
        if (flat.all.empty() && flat.choices.empty()) return text_.value();
        PB_TRY(const Constraints c, Constraints::of(flat, work_));
        const bool scalar = flat.choices.empty() && (c.types & (kArray | kObject)) == 0;
        if (scalar) return single(flat.all, c);
        if (++depth_ > kMaxSchemaDepth)
            return fail(c.path + ": schemas nest deeper than " + std::to_string(kMaxSchemaDepth));
        const RuleId rule = rules_.declare(c.path);
        rules_of_[key] = rule;
        ExprId body = 0;
        if (flat.choices.empty()) {
            PB_TRY(body, single(flat.all, c));
        } else {
            PB_TRY(body, alternatives(flat, c.path));
        }
        depth_ -= 1;
        rules_.define(rule, body);
        return rules_.rule(rule);
    }

    // One branch of each choice, with all that holds besides.
    Result<std::vector<SchemaSources>> combinations(const FlatSchema& flat, const std::string& path) {
        size_t count = 1;
        for (const auto& choice : flat.choices)
            if ((count *= choice.size()) > kMaxAlternatives)
                return fail(path + ": more than " + std::to_string(kMaxAlternatives) +
                            " ways to combine the branches of anyOf, oneOf, if, not and dependencies");
        std::vector<SchemaSources> out;
        for (size_t n = 0; n < count; ++n) {
            SchemaSources together;
            size_t rest = n;
            for (const SchemaSource& s : flat.all)
                if (const Json* plain = without_applicators(*s.schema)) {
                    together.push_back(s);
                    together.back().schema = plain;
                    together.back().entered = true;
                }
            for (const auto& choice : flat.choices) {
                const SchemaSources& branch = choice[rest % choice.size()];
                together.insert(together.end(), branch.begin(), branch.end());
                rest /= choice.size();
            }
            PB_CHECK(work_.spend(10 * together.size()));
            out.push_back(std::move(together));
        }
        return out;
    }

    Result<ExprId> alternatives(const FlatSchema& flat, const std::string& path) {
        PB_TRY(const std::vector<SchemaSources> all, combinations(flat, path));
        std::vector<ExprId> parts;
        for (const SchemaSources& together : all) {
            PB_TRY(const ExprId part, value(together));
            parts.push_back(part);
        }
        return rules_.choice(std::move(parts));
    }

    // The schema's own keywords. Null: there are none.
    const Json* without_applicators(const Json& schema) {
        const auto [at, fresh] = plain_.try_emplace(&schema);
        if (fresh) {
            Json& own = at->second;
            own = Json::object();
            for (const auto& [name, part] : schema.items())
                if (!applies(name, part)) own[name] = part;
        }
        return at->second.empty() ? nullptr : &at->second;
    }

    Result<ExprId> single(const SchemaSources& all, const Constraints& c) {
        if (c.values) return values(all, c);
        std::vector<ExprId> ways;
        if ((c.types & kNull) && !excludes(c, Json(nullptr))) ways.push_back(rules_.bytes("null"));
        for (const bool b : {true, false})
            if ((c.types & kBoolean) && !excludes(c, Json(b))) ways.push_back(rules_.bytes(b ? "true" : "false"));
        if (c.types & kNumber) {
            PB_TRY(const ExprId e, number(c));
            ways.push_back(e);
        }
        if (c.types & kString) {
            PB_TRY(const ExprId e, string(c));
            ways.push_back(e);
        }
        if (c.types & kArray) {
            PB_TRY(const ExprId e, array(all, c));
            ways.push_back(e);
        }
        if (c.types & kObject) {
            PB_TRY(const ExprId e, object(all, c));
            ways.push_back(e);
        }
        if (ways.empty()) return rules_.nothing();
        return rules_.choice(std::move(ways));
    }

    Result<ExprId> values(const SchemaSources& all, const Constraints& c) {
        std::optional<Dfa> numbers, strings;
        std::vector<ExprId> ways;
        for (const Json* value : *c.values) {
            const Json& v = *value;
            const std::string text = v.is_structured() ? "" : JsonText::spelled(v);
            if (v.is_number()) {
                const bool whole = v.is_number_integer() || std::trunc(v.get<double>()) == v.get<double>();
                if (!(c.types & (whole ? kInteger : kFraction))) continue;
                if (c.restricts_numbers()) {
                    if (!numbers) {
                        PB_TRY(const ExprId e, number(c));
                        PB_TRY(numbers, regular(rules_, e, work_));
                    }
                    if (!numbers->matches(text)) continue;
                }
            } else if (v.is_string()) {
                if (!(c.types & kString)) continue;
                if (c.restricts_strings()) {
                    if (!strings) {
                        PB_TRY(const ExprId e, string(c));
                        PB_TRY(strings, regular(rules_, e, work_));
                    }
                    if (!strings->matches(text)) continue;
                }
            } else if (v.is_structured()) {
                if (!(c.types & (v.is_array() ? kArray : kObject))) continue;
                PB_TRY(const bool valid, valid_by(all, v));
                if (!valid) continue;
            } else if (!(c.types & (v.is_null() ? kNull : kBoolean))) {
                continue;
            }
            PB_CHECK(work_.spend(10 * c.excluded.size()));
            if (!excludes(c, v)) ways.push_back(text_.literal(v));
        }
        return rules_.choice(std::move(ways)); // none: nothing matches
    }

    static bool excludes(const Constraints& c, const Json& v) {
        return std::any_of(c.excluded.begin(), c.excluded.end(), [&](const Json* e) { return same_value(*e, v); });
    }

    Result<bool> valid_by(const SchemaSources& all, const Json& v) {
        const InstanceCheck check{[&](const Json& with_ref) -> const Json* {
                                      const auto target = schema_.resolve({&with_ref, "#"});
                                      return target ? target->schema : nullptr;
                                  },
                                  [&](const std::string& pattern, const std::string& text) -> std::optional<bool> {
                                      const auto names = matching(pattern, "#");
                                      const std::string spelled = JsonText::spelled(Json(text));
                                      if (!names) return std::nullopt;
                                      return names->matches(spelled.substr(1, spelled.size() - 2));
                                  }};
        bool out = true;
        for (const SchemaSource& s : all) {
            const auto valid = check.valid(*s.schema, v);
            if (valid == false) out = false;
            if (!valid) return fail(s.path + ": " + unevaluated_keyword(*s.schema));
            PB_CHECK(work_.spend(100));
        }
        return out;
    }

    static std::string unevaluated_keyword(const Json& schema) {
        for (const char* keyword : {"unevaluatedProperties", "unevaluatedItems", "pattern", "format"})
            if (schema.contains(keyword))
                return "keyword '" + std::string(keyword) +
                       "' beside an enum or const of arrays or objects is not supported";
        return "an enum or const of arrays or objects beside these keywords is not supported";
    }

    // The texts in which a pattern matches, as they stand in a string.
    Result<Dfa> matching(const std::string& pattern, const std::string& path) {
        const auto [at, fresh] = patterns_.try_emplace(pattern);
        if (fresh) {
            const auto e = parse_regex(rules_, pattern, text_.pattern_dialect());
            if (!e) {
                patterns_.erase(at);
                return fail(path + ": " + e.error());
            }
            PB_TRY(at->second, regular(rules_, *e, work_));
        }
        PB_CHECK(work_.spend(at->second.states.size()));
        return at->second;
    }

    Result<ExprId> number(const Constraints& c) {
        const bool whole = !(c.types & kFraction);
        const bool broken = !(c.types & kInteger); // no whole numbers
        std::vector<ExprId> unequal;
        for (const Json* v : c.excluded) {
            if (!v->is_number()) continue;
            PB_TRY(const ExprId e, equal_to(rules_, *v));
            unequal.push_back(e);
        }
        if (!c.restricts_numbers() && !broken && unequal.empty()) return whole ? text_.integer() : text_.number();
        std::vector<ExprId> parts;
        if (whole) parts.push_back(text_.integer());
        // Few digits: a reader that rounds must not make another number of them.
        if (broken) parts.push_back(text_.regex(R"(-?(0|[1-9][0-9]{0,7})\.[0-9]{0,6}[1-9])"));
        if (!unequal.empty() && !whole) parts.push_back(text_.regex(R"(-?(0|[1-9][0-9]{0,7})(\.[0-9]{1,7})?)"));
        for (const NumberBound& b : c.bounds) {
            const auto e = bounded(rules_, b);
            if (!e) return fail(c.path + ": a bound " + e.error());
            parts.push_back(*e);
        }
        for (const Json& m : c.multiples) {
            const auto [known, fresh] = steps_.try_emplace(m.dump());
            if (fresh) {
                const auto e = multiple_of(rules_, m, work_);
                if (!e) return fail(c.path + "/multipleOf: " + e.error());
                known->second = *e;
            }
            parts.push_back(known->second);
        }
        for (const Json& m : c.not_multiples) { // of whole numbers
            const auto e = multiple_of(rules_, m, work_);
            if (!e) return fail(c.path + "/not/multipleOf: " + e.error());
            unequal.push_back(*e);
        }
        PB_TRY(const ExprId all, all_of(parts));
        return but_for(all, std::move(unequal));
    }

    Result<ExprId> but_for(ExprId e, std::vector<ExprId> excluded) {
        if (excluded.empty()) return e;
        PB_TRY(const Dfa all, regular(rules_, e, work_));
        PB_TRY(const Dfa none, regular(rules_, rules_.choice(std::move(excluded)), work_));
        PB_TRY(Dfa rest, without(all, none, work_));
        return rules_.automaton(std::move(rest));
    }

    Result<ExprId> all_of(const std::vector<ExprId>& parts) {
        if (parts.size() == 1) return parts[0];
        PB_TRY(Dfa both, regular(rules_, parts[0], work_));
        for (size_t i = 1; i < parts.size(); ++i) {
            PB_TRY(const Dfa next, regular(rules_, parts[i], work_));
            PB_TRY(both, common(both, next, work_));
        }
        return rules_.automaton(std::move(both));
    }

    Result<ExprId> string(const Constraints& c) {
        if (c.length.min > c.length.max) return rules_.nothing();
        const bool excludes_text =
            std::any_of(c.excluded.begin(), c.excluded.end(), [](const Json* v) { return v->is_string(); });
        if (c.texts.empty() && !excludes_text) return text_.string(c.length.min, c.length.max);
        PB_TRY(const ExprId content, string_content(c));
        return text_.quoted(content);
    }

    // One spelling for each text.
    Result<ExprId> string_content(const Constraints& c) {
        std::vector<ExprId> parts, excluded;
        for (const Constraints::Text& t : c.texts) {
            const bool whole = t.match == RegexDialect::Match::kWhole;
            const auto e = parse_regex(rules_, t.regex, whole ? text_.format_dialect() : text_.pattern_dialect());
            if (!e) return fail(t.path + ": " + e.error());
            (t.negated ? excluded : parts).push_back(*e);
        }
        for (const Json* v : c.excluded) {
            if (!v->is_string()) continue;
            const std::string spelled = JsonText::spelled(*v);
            excluded.push_back(rules_.bytes(spelled.substr(1, spelled.size() - 2)));
        }
        const bool counted = c.length.min > 0 || c.length.max != kUnbounded;
        const uint32_t most = std::max(c.length.min, kMaxMatchedLength); // longer ones would take too many states
        if (counted || parts.empty())
            parts.push_back(text_.content(c.length.min, c.length.max == kUnbounded ? kUnbounded
                                                                                   : std::min(c.length.max, most)));
        PB_TRY(const ExprId all, all_of(parts));
        return but_for(all, std::move(excluded));
    }

    // The content of strings that are valid by the schemas.
    Result<Dfa> valid_names(const SchemaSources& sources) {
        PB_TRY(const FlatSchema flat, schema_.flat(sources));
        if (flat.impossible) return Dfa{};
        if (!flat.choices.empty()) {
            if (++depth_ > kMaxSchemaDepth)
                return fail(sources.front().path + ": schemas nest deeper than " + std::to_string(kMaxSchemaDepth));
            std::vector<ExprId> ways;
            PB_TRY(const std::vector<SchemaSources> all, combinations(flat, sources.front().path));
            for (const SchemaSources& together : all) {
                PB_TRY(Dfa way, valid_names(together));
                if (!way.empty()) ways.push_back(rules_.automaton(std::move(way)));
            }
            depth_ -= 1;
            return regular(rules_, rules_.choice(std::move(ways)), work_);
        }
        PB_TRY(const Constraints c, Constraints::of(flat, work_));
        const bool texts = flat.all.empty() || (c.types & kString);
        if (!texts) return Dfa{};
        PB_TRY(const ExprId content, string_content(c));
        PB_TRY(Dfa out, regular(rules_, content, work_));
        if (!c.values) return out;
        std::vector<ExprId> values;
        for (const Json* v : *c.values) {
            const std::string spelled = v->is_string() ? JsonText::spelled(*v) : "\"\\\"";
            values.push_back(rules_.bytes(spelled.substr(1, spelled.size() - 2)));
        }
        PB_TRY(const Dfa listed, regular(rules_, rules_.choice(std::move(values)), work_));
        return common(out, listed, work_);
    }

    Result<ExprId> array(const SchemaSources& all, const Constraints& c) {
        const ArrayTranslation to{rules_,
                                  text_,
                                  work_,
                                  schema_,
                                  [&](const SchemaSources& s) { return value(s); },
                                  [&](const SchemaSources& s) { return listed_values(s); },
                                  [&](const std::vector<JoinedPart>& parts, CountRange count) {
                                      return joined(parts, count, c.path);
                                  }};
        return array_of(to, all, c);
    }

    // The different values that these schemas allow; none: they are not listed.
    Result<std::vector<ExprId>> listed_values(const SchemaSources& sources) {
        PB_TRY(const FlatSchema flat, schema_.flat(sources));
        std::vector<ExprId> out;
        if (flat.all.empty() || !flat.choices.empty()) return out;
        PB_TRY(Constraints c, Constraints::of(flat, work_));
        if (!c.values) return out;
        const std::vector<const Json*> all = *c.values;
        PB_CHECK(work_.spend(all.size() * all.size()));
        for (size_t i = 0; i < all.size(); ++i) {
            if (std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
                            [&](const Json* known) { return same_value(*known, *all[i]); }))
                continue;
            c.values = {all[i]};
            PB_TRY(const ExprId one, values(flat.all, c));
            out.push_back(one);
        }
        return out;
    }

    // Parts in order, with separators; their number is limited. Each but the last counts as one.
    Result<ExprId> joined(const std::vector<JoinedPart>& parts, CountRange count, const std::string& path) {
        const auto n = static_cast<uint32_t>(parts.size());
        if (count.min <= 1 && count.max >= n) return rules_.joined(text_.separator(), parts);
        const uint32_t cap = count.max < n ? count.max : std::min(count.min, n);
        if (count.min > n) return rules_.nothing();
        if (uint64_t{n} * cap > 10'000)
            return fail(path + ": too many members or values to count them (" + std::to_string(n) + ")");
        std::vector<ExprId> after(cap + 2, rules_.nothing()); // by how many there were
        for (uint32_t k = std::min(count.min, cap); k <= cap; ++k) after[k] = rules_.empty();
        for (uint32_t i = n; i-- > 0;) {
            std::vector<ExprId> here(cap + 2, rules_.nothing());
            for (uint32_t k = 0; k <= std::min(cap, i); ++k) {
                std::vector<ExprId> ways;
                const bool more = k < cap || count.max >= n; // a full count stays where there is no upper limit
                if (more) {
                    const ExprId one =
                        k > 0 ? rules_.sequence({text_.separator(), parts[i].expr}) : parts[i].expr;
                    ways.push_back(rules_.sequence({one, after[std::min(k + 1, cap)]}));
                }
                if (parts[i].needed == JoinedPart::Needed::kMaybe) ways.push_back(after[k]);
                const RuleId rule = rules_.declare("rest");
                rules_.define(rule, rules_.choice(std::move(ways)));
                here[k] = rules_.rule(rule);
            }
            after = std::move(here);
        }
        return after[0];
    }

    Result<ExprId> object(const SchemaSources& all, const Constraints& c) {
        const NameAutomata names{[&]() -> Result<Dfa> { return matching("", "#"); },
                                 [&](const std::string& p, const std::string& path) { return matching(p, path); },
                                 [&](const SchemaSources& s) { return valid_names(s); }};
        PB_TRY(const ObjectMembers members, ObjectMembers::of(all, names, work_));
        if (members.impossible) return rules_.nothing();
        CountRange count = c.members;
        for (const Json* v : c.excluded)
            if (v->is_object()) {
                if (!v->empty()) return fail(c.path + ": a 'not' of an object that is not empty is not supported");
                count.min = std::max(count.min, 1u);
            }
        std::vector<JoinedPart> parts;
        uint32_t required = 0;
        for (const auto& m : members.named) {
            PB_TRY(const ExprId v, value(m.value));
            const ExprId name = rules_.bytes(JsonText::spelled(Json(m.name)));
            parts.push_back(
                {text_.member(name, v), m.required ? JoinedPart::Needed::kAlways : JoinedPart::Needed::kMaybe});
            required += m.required;
        }
        const auto named = static_cast<uint32_t>(members.named.size());
        if (required > count.max || count.min > count.max) return rules_.nothing();
        // Other members may have the same name: together they count as one at least.
        const bool open = !members.others.empty() && count.max > required;
        if (count.min > named + open) {
            if (!open) return rules_.nothing();
            PB_CHECK(add_different(members, count.min - required, parts, c.path));
            count.min = 1; // those that are always there are enough
        }
        if (open && (c.members.min <= named + open || count.max == kUnbounded)) {
            PB_TRY(const ExprId one, other_member(members));
            const bool limited = count.max != kUnbounded && named > 0;
            const uint32_t more = count.max == kUnbounded ? kUnbounded : limited ? 0 : count.max - 1;
            const ExprId rest = rules_.repeat(rules_.sequence({text_.separator(), one}), 0, more);
            parts.push_back({rules_.sequence({one, rest}), JoinedPart::Needed::kMaybe});
        }
        const ExprId none = rules_.bytes("{}");
        const bool may_be_empty = required == 0 && count.min == 0;
        if (parts.empty() || count.max == 0) return may_be_empty ? none : rules_.nothing();
        PB_TRY(const ExprId inner, joined(parts, {std::max(count.min, 1u), count.max}, c.path));
        const ExprId some = text_.object_of(inner);
        return may_be_empty ? rules_.choice({none, some}) : some;
    }

    Result<ExprId> other_member(const ObjectMembers& members) {
        std::vector<ExprId> ways;
        for (const auto& others : members.others) {
            PB_TRY(const ExprId v, value(others.value));
            ways.push_back(text_.member(text_.quoted(rules_.automaton(others.names)), v));
        }
        return rules_.choice(std::move(ways));
    }

    // So many members that the schemas do not name. The lengths of their names, divided by `count`, leave different
    // remainders, so that no two names are the same.
    Result<> add_different(const ObjectMembers& members, uint32_t count, std::vector<JoinedPart>& parts,
                           const std::string& path) {
        if (count > kMaxDifferent)
            return fail(path + ": keyword 'minProperties' of more than " + std::to_string(kMaxDifferent) +
                        " members without a name is not supported");
        for (uint32_t remainder = 1; remainder <= count; ++remainder) {
            Dfa lengths;
            lengths.states.resize(count);
            for (uint32_t s = 0; s < count; ++s) lengths.states[s].edges = {{0, 255, (s + 1) % count}};
            lengths.states[remainder % count].accepts = true;
            std::vector<ExprId> ways;
            for (const auto& others : members.others) {
                PB_TRY(Dfa names, common(others.names, lengths, work_));
                if (names.empty()) continue;
                PB_TRY(const ExprId v, value(others.value));
                ways.push_back(text_.member(text_.quoted(rules_.automaton(std::move(names))), v));
            }
            if (ways.empty())
                return fail(path + ": keyword 'minProperties' is not supported for names of so few lengths");
            parts.push_back({rules_.choice(std::move(ways)), JoinedPart::Needed::kAlways});
        }
        return {};
    }

    Rules& rules_;
    Work& work_;
    SchemaText schema_;
    JsonText text_;
    std::map<Key, RuleId> rules_of_;
    std::map<std::string, ExprId> steps_; // of multipleOf
    std::map<std::string, Dfa> patterns_;
    std::map<const Json*, Json> plain_; // schemas without what is followed elsewhere
    int depth_ = 0;
};

}  // namespace

Result<RuleId> parse_json_schema(Rules& rules, std::string_view schema, Whitespace whitespace, Work& work) {
    PB_TRY(const Json root, parse_schema(schema));
    auto out = Translator(rules, root, whitespace, work).translate();
    if (!out) return fail("json: " + out.error());
    return out;
}

}  // namespace patchbay::grammar
