#include "grammar/json_schema.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/refusals.hpp"
#include "grammar/automaton.hpp"
#include "grammar/dfa.hpp"
#include "grammar/schema_arrays.hpp"
#include "grammar/schema_constraints.hpp"
#include "grammar/schema_keywords.hpp"
#include "grammar/schema_listed_values.hpp"
#include "grammar/schema_numbers.hpp"
#include "grammar/schema_objects.hpp"
#include "grammar/schema_parse.hpp"
#include "grammar/schema_strings.hpp"
#include "grammar/schema_text.hpp"
#include "grammar/schema_values.hpp"

namespace patchbay::grammar {
namespace {

constexpr int kMaxSchemaDepth = 100; // of schemas in each other that are translated at the same time

constexpr size_t kMaxAlternatives = 256; // of several anyOf together

// The ways to satisfy a schema with alternatives.
class Combinations {
  public:
    // One branch of each choice, with all that holds besides. They refer to this.
    Result<std::vector<SchemaSources>> of(const FlatSchema&, const std::string& path, Work&);

  private:
    const Json* without_applicators(const Json& schema); // its own keywords; null: there are none

    std::map<const Json*, Json> plain_; // schemas without what is followed elsewhere
};

Result<std::vector<SchemaSources>> Combinations::of(const FlatSchema& flat, const std::string& path, Work& work) {
    size_t count = 1;
    for (const auto& choice : flat.choices)
        if ((count *= choice.size()) > kMaxAlternatives)
            return invalid(path + ": more than " + std::to_string(kMaxAlternatives) +
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
        PB_CHECK(work.spend(10 * together.size()));
        out.push_back(std::move(together));
    }
    return out;
}

const Json* Combinations::without_applicators(const Json& schema) {
    const auto [at, fresh] = plain_.try_emplace(&schema);
    if (fresh) {
        Json& own = at->second;
        own = Json::object();
        for (const auto& [name, part] : schema.items())
            if (!applies(name, part)) own[name] = part;
    }
    return at->second.empty() ? nullptr : &at->second;
}

class Translator {
  public:
    Translator(Rules& rules, const Json& root, Whitespace whitespace, Work& work)
        : rules_(rules), work_(work), schema_(root), text_(rules, whitespace) {}

    Result<RuleId> translate() {
        const RuleId root = rules_.declare("root");
        PB_TRY(const ExprId body, value({schema_.root()}));
        rules_.define(root, body);
        while (!later_.empty()) {
            const auto [rule, sources] = std::move(later_.back());
            later_.pop_back();
            PB_TRY(const FlatSchema flat, schema_.flat(sources));
            PB_TRY(const Constraints c, Constraints::of(flat, work_));
            PB_CHECK(define(rule, flat, c));
        }
        if (!rules_.fault().empty()) return invalid(rules_.fault());
        return root;
    }

  private:
    using Part = std::tuple<const Json*, const UnevaluatedScope*, bool, const DynamicAnchors*>;
    using Key = std::vector<Part>;

    // All of them hold. Objects, arrays and alternatives become rules, one for the same schemas, which may be under
    // way; of the others each is translated once.
    Result<ExprId> value(const SchemaSources& sources) {
        Key key;
        for (const SchemaSource& s : sources)
            key.emplace_back(s.schema, s.scope, s.scope && s.violates, s.dynamic);
        std::sort(key.begin(), key.end());
        key.erase(std::unique(key.begin(), key.end()), key.end());
        if (const auto known = rules_of_.find(key); known != rules_of_.end()) return rules_.rule(known->second);
        if (const auto known = scalars_.find(key); known != scalars_.end()) return known->second;
        PB_CHECK(work_.spend(100 + 10 * key.size()));
        if (!rules_.fault().empty()) return invalid(rules_.fault());
        PB_TRY(const FlatSchema flat, schema_.flat(sources));
        PB_CHECK(work_.spend(20 * flat.cost));
        if (flat.impossible) return rules_.nothing();
        if (flat.all.empty() && flat.choices.empty()) return text_.value();
        PB_TRY(const Constraints c, Constraints::of(flat, work_));
        const bool scalar = flat.choices.empty() && (c.types & (kArray | kObject)) == 0;
        if (scalar) {
            PB_TRY(const ExprId out, single(flat.all, c));
            return scalars_[key] = out;
        }
        const RuleId rule = rules_.declare(c.path);
        rules_of_[key] = rule;
        if (depth_ == kMaxSchemaDepth) {
            PB_CHECK(work_.spend(500 * sources.size() + 20 * flat.cost)); // what keeping and flattening them takes
            later_.emplace_back(rule, sources);
        } else {
            PB_CHECK(define(rule, flat, c));
        }
        return rules_.rule(rule);
    }

    Result<> define(RuleId rule, const FlatSchema& flat, const Constraints& c) {
        depth_ += 1;
        ExprId body = 0;
        if (flat.choices.empty()) {
            PB_TRY(body, single(flat.all, c));
        } else {
            PB_TRY(body, alternatives(flat, c.path));
        }
        depth_ -= 1;
        rules_.define(rule, body);
        return {};
    }

    Result<ExprId> alternatives(const FlatSchema& flat, const std::string& path) {
        PB_TRY(const std::vector<SchemaSources> all, combinations_.of(flat, path, work_));
        std::vector<ExprId> parts;
        for (const SchemaSources& together : all) {
            PB_TRY(const ExprId part, value(together));
            parts.push_back(part);
        }
        return rules_.choice(std::move(parts));
    }

    Result<ExprId> single(const SchemaSources& all, const Constraints& c) {
        if (c.values) return listed_values_of(listed_, all, c);
        std::vector<ExprId> ways;
        if ((c.types & kNull) && !c.excludes(Json(nullptr))) ways.push_back(rules_.bytes("null"));
        for (const bool b : {true, false})
            if ((c.types & kBoolean) && !c.excludes(Json(b))) ways.push_back(rules_.bytes(b ? "true" : "false"));
        if (c.types & kNumber) {
            PB_TRY(const ExprId e, numbers_.under(c));
            ways.push_back(e);
        }
        if (c.types & kString) {
            PB_TRY(const ExprId e, strings_.under(c));
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

    // The content of strings that are valid by the schemas.
    Result<Dfa> valid_names(const SchemaSources& sources) {
        PB_TRY(const FlatSchema flat, schema_.flat(sources));
        if (flat.impossible) return Dfa{};
        if (!flat.choices.empty()) {
            if (++names_depth_ > kMaxSchemaDepth)
                return invalid(sources.front().path + ": schemas nest deeper than " + std::to_string(kMaxSchemaDepth));
            std::vector<ExprId> ways;
            PB_TRY(const std::vector<SchemaSources> all, combinations_.of(flat, sources.front().path, work_));
            for (const SchemaSources& together : all) {
                PB_TRY(Dfa way, valid_names(together));
                if (!way.empty()) ways.push_back(rules_.automaton(std::move(way)));
            }
            names_depth_ -= 1;
            return regular(rules_, rules_.choice(std::move(ways)), work_);
        }
        PB_TRY(const Constraints c, Constraints::of(flat, work_));
        const bool texts = flat.all.empty() || (c.types & kString);
        if (!texts) return Dfa{};
        if (c.values) return listed_names(c);
        PB_TRY(const ExprId content, strings_.content(c));
        return regular(rules_, content, work_);
    }

    Result<Dfa> listed_names(const Constraints& c) {
        std::vector<ExprId> names;
        for (const Json* v : *c.values) {
            PB_CHECK(work_.spend(10 * c.excluded.size()));
            if (!v->is_string() || c.excludes(*v)) continue;
            PB_TRY(const bool valid, strings_.allows(c, *v));
            const std::string spelled = JsonText::spelled(*v);
            if (valid) names.push_back(rules_.bytes(spelled.substr(1, spelled.size() - 2)));
        }
        if (names.empty()) return Dfa{};
        return regular(rules_, rules_.choice(std::move(names)), work_);
    }

    Result<ExprId> array(const SchemaSources& all, const Constraints& c) {
        const ArrayTranslation to{rules_,
                                  text_,
                                  work_,
                                  schema_,
                                  [&](const SchemaSources& s) { return value(s); },
                                  [&](const SchemaSources& s) { return different_values(s); }};
        return array_of(to, all, c);
    }

    Result<ExprId> object(const SchemaSources& all, const Constraints& c) {
        const NameAutomata names{
            [&]() -> Result<Dfa> { return strings_.matching("", "#"); },
            [&](const std::string& p, const std::string& path) { return strings_.matching(p, path); },
            [&](const SchemaSources& s) { return valid_names(s); }};
        const ObjectTranslation to{rules_, text_, work_, names, [&](const SchemaSources& s) { return value(s); }};
        return object_of(to, all, c);
    }

    // Those that these schemas allow, if they list them; else none.
    Result<std::vector<ExprId>> different_values(const SchemaSources& sources) {
        PB_TRY(const FlatSchema flat, schema_.flat(sources));
        std::vector<ExprId> out;
        if (flat.impossible || flat.all.empty() || !flat.choices.empty()) return out;
        PB_TRY(Constraints c, Constraints::of(flat, work_));
        if (!c.values) return out;
        const std::vector<const Json*> all = *c.values;
        PB_CHECK(work_.spend(all.size() * all.size()));
        for (size_t i = 0; i < all.size(); ++i) {
            if (std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i),
                            [&](const Json* known) { return same_value(*known, *all[i]); }))
                continue;
            c.values = {all[i]};
            PB_TRY(const ExprId one, listed_values_of(listed_, flat.all, c));
            out.push_back(one);
        }
        return out;
    }

    Rules& rules_;
    Work& work_;
    SchemaText schema_;
    JsonText text_;
    SchemaNumbers numbers_{rules_, text_, work_};
    SchemaStrings strings_{rules_, text_, work_};
    ListedValues listed_{rules_, text_, work_, schema_, numbers_, strings_};
    Combinations combinations_;
    std::map<Key, RuleId> rules_of_;
    std::map<Key, ExprId> scalars_;
    std::vector<std::pair<RuleId, SchemaSources>> later_; // rules that are declared, and what defines them
    int depth_ = 0, names_depth_ = 0;
};

}  // namespace

Result<RuleId> parse_json_schema(Rules& rules, std::string_view schema, Whitespace whitespace, Work& work) {
    PB_TRY(const Json root, parse_schema(schema));
    auto out = Translator(rules, root, whitespace, work).translate();
    if (!out) return prefixed("json", out.failure());
    return out;
}

}  // namespace patchbay::grammar
