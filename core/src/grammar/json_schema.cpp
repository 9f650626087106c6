#include "grammar/json_schema.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "grammar/automaton.hpp"
#include "grammar/schema_constraints.hpp"

namespace patchbay::grammar {
namespace {

constexpr size_t kMaxAlternatives = 256; // of several anyOf together
constexpr int kMaxDepth = 100;           // of schemas in each other

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
    using Key = std::vector<const Json*>;

    // All of them hold. Objects, arrays and alternatives become rules, one for the same schemas, which may be under
    // way.
    Result<ExprId> value(const SchemaSources& sources) {
        Key key;
        for (const SchemaSource& s : sources) key.push_back(s.schema);
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
        if (++depth_ > kMaxDepth) return fail(c.path + ": schemas nest deeper than " + std::to_string(kMaxDepth));
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
    Result<ExprId> alternatives(const FlatSchema& flat, const std::string& path) {
        size_t count = 1;
        for (const SchemaSources& choice : flat.choices)
            if ((count *= choice.size()) > kMaxAlternatives)
                return fail(path + ": more than " + std::to_string(kMaxAlternatives) +
                            " ways to combine the branches of anyOf and oneOf");
        std::vector<ExprId> parts;
        for (size_t n = 0; n < count; ++n) {
            SchemaSources together;
            size_t rest = n;
            for (const SchemaSources& choice : flat.choices) {
                together.push_back(choice[rest % choice.size()]);
                rest /= choice.size();
            }
            for (const SchemaSource& s : flat.all)
                if (const Json* plain = without_applicators(*s.schema))
                    together.push_back({plain, s.path, SchemaSource::Holds::kAround});
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
                if (name != "$ref" && name != "allOf" && name != "anyOf" && name != "oneOf" && name != "$defs" &&
                    name != "definitions")
                    own[name] = part;
        }
        return at->second.empty() ? nullptr : &at->second;
    }

    Result<ExprId> single(const SchemaSources& all, const Constraints& c) {
        if (c.values) return values(all, c);
        std::vector<ExprId> ways;
        if (c.types & kNull) ways.push_back(rules_.bytes("null"));
        if (c.types & kBoolean) ways.push_back(text_.boolean());
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
                if (!(c.types & kFraction) && !(whole && c.types & kInteger)) continue;
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
                for (const SchemaSource& s : all)
                    for (const char* keyword : {"items", "prefixItems", "minItems", "maxItems", "properties",
                                                "required", "additionalProperties", "unevaluatedProperties",
                                                "minProperties", "maxProperties"})
                        if (s.schema->contains(keyword))
                            return fail(c.path + ": keyword '" + keyword +
                                        "' beside an enum or const of arrays or objects is not supported");
            } else if (!(c.types & (v.is_null() ? kNull : kBoolean))) {
                continue;
            }
            ways.push_back(text_.literal(v));
        }
        return rules_.choice(std::move(ways)); // none: nothing matches
    }

    Result<ExprId> number(const Constraints& c) {
        const bool whole = !(c.types & kFraction);
        if (!c.restricts_numbers()) return whole ? text_.integer() : text_.number();
        std::vector<ExprId> parts;
        if (whole) parts.push_back(text_.integer());
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
        return all_of(parts);
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
        const bool counted = c.length.min > 0 || c.length.max != kUnbounded;
        if (c.length.min > c.length.max) return rules_.nothing();
        if (c.texts.empty()) return text_.string(c.length.min, c.length.max);
        std::vector<ExprId> parts;
        for (const Constraints::Text& t : c.texts) {
            const bool whole = t.match == RegexDialect::Match::kWhole;
            const auto e = parse_regex(rules_, t.regex, whole ? text_.format_dialect() : text_.pattern_dialect());
            if (!e) return fail(t.path + ": " + e.error());
            parts.push_back(*e);
        }
        if (counted) parts.push_back(text_.content(c.length.min, c.length.max));
        PB_TRY(const ExprId content, all_of(parts));
        return text_.quoted(content);
    }

    Result<ExprId> array(const SchemaSources& all, const Constraints& c) {
        PB_TRY(const ArrayItems items, ArrayItems::of(all));
        const auto first = static_cast<uint32_t>(items.first.size());
        const uint32_t min = c.items.min, max = items.has_rest ? c.items.max : std::min(c.items.max, first);
        if (min > max) return rules_.nothing();
        const ExprId none = rules_.bytes("[]");
        if (max == 0) return none;
        const auto separated = [&](ExprId e) { return rules_.sequence({text_.separator(), e}); };
        ExprId tail = rules_.empty(); // after the items so far
        if (max > first) {
            PB_TRY(const ExprId rest, value(items.rest));
            const uint32_t before = std::max(first, 1u), more = max == kUnbounded ? max : max - before;
            tail = rules_.repeat(separated(rest), min > before ? min - before : 0, more);
            if (first == 0) tail = rules_.sequence({rest, tail});
        }
        for (uint32_t i = std::min(first, max); i-- > 0;) {
            PB_TRY(const ExprId item, value(items.first[i]));
            tail = rules_.sequence({i > 0 ? separated(item) : item, tail});
            if (i > 0 && i >= min) tail = rules_.optional(tail);
        }
        const ExprId some = text_.array_of(tail);
        return min == 0 ? rules_.choice({none, some}) : some;
    }

    Result<ExprId> object(const SchemaSources& all, const Constraints& c) {
        PB_TRY(const ObjectMembers members, ObjectMembers::of(all, work_));
        if (members.impossible) return rules_.nothing();
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
        if (required > c.members.max) return rules_.nothing();
        if (c.members.max != kUnbounded && c.members.max < named)
            return fail(c.path + ": keyword 'maxProperties' below the number of properties is not supported");
        const uint32_t others = c.members.max == kUnbounded ? kUnbounded : c.members.max - named;
        const bool open = members.others && others > 0;
        const uint32_t missing = c.members.min > required ? c.members.min - required : 0;
        // One more than those that are required: for several it would take to tell names apart.
        if (missing > 1 || (missing == 1 && required > 0 && (!open || named > required)))
            return fail(c.path + ": keyword 'minProperties' of more than the required members is not supported");
        if (open) {
            PB_TRY(const ExprId one, other_member(members));
            const ExprId more =
                rules_.repeat(rules_.sequence({text_.separator(), one}), 0, others == kUnbounded ? others : others - 1);
            parts.push_back({rules_.sequence({one, more}),
                             missing > 0 && required > 0 ? JoinedPart::Needed::kAlways : JoinedPart::Needed::kMaybe});
        }
        const ExprId none = rules_.bytes("{}");
        const bool may_be_empty = required == 0 && missing == 0;
        if (parts.empty()) return may_be_empty ? none : rules_.nothing();
        const ExprId some = text_.object_of(rules_.joined(text_.separator(), parts));
        return may_be_empty ? rules_.choice({none, some}) : some;
    }

    Result<ExprId> other_member(const ObjectMembers& members) {
        PB_TRY(const ExprId v, value(*members.others));
        ExprId name = text_.content(0, kUnbounded);
        std::vector<ExprId> names;
        const auto take = [&](const std::string& n) {
            const std::string spelled = JsonText::spelled(Json(n));
            names.push_back(rules_.bytes(spelled.substr(1, spelled.size() - 2)));
        };
        for (const auto& m : members.named) take(m.name);
        for (const std::string& n : members.forbidden) take(n);
        if (!names.empty()) {
            PB_TRY(const Dfa any, regular(rules_, name, work_));
            PB_TRY(const Dfa taken, regular(rules_, rules_.choice(std::move(names)), work_));
            PB_TRY(Dfa free, without(any, taken, work_));
            name = rules_.automaton(std::move(free));
        }
        return text_.member(text_.quoted(name), v);
    }

    Rules& rules_;
    Work& work_;
    SchemaText schema_;
    JsonText text_;
    std::map<Key, RuleId> rules_of_;
    std::map<std::string, ExprId> steps_; // of multipleOf
    std::map<const Json*, Json> plain_; // schemas without what is followed elsewhere
    int depth_ = 0;
};

}  // namespace

Result<RuleId> parse_json_schema(Rules& rules, std::string_view schema, Whitespace whitespace, Work& work) {
    PB_TRY(const Json root, SchemaText::parse(schema));
    auto out = Translator(rules, root, whitespace, work).translate();
    if (!out) return fail("json: " + out.error());
    return out;
}

}  // namespace patchbay::grammar
