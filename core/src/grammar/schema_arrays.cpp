#include "grammar/schema_arrays.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/refusals.hpp"
#include "grammar/counted_parts.hpp"

namespace patchbay::grammar {
namespace {

constexpr size_t kMaxPrefixItems = 200, kMaxContains = 3, kMaxCounted = 20'000;
constexpr uint32_t kMaxItemsWithContains = 64; // under a maxItems, if no other number asks for more

// The keyword that lists the first items: prefixItems, and items before draft 2020-12.
const char* listed(const Json& s) {
    if (s.contains("prefixItems")) return "prefixItems";
    return s.contains("items") && s["items"].is_array() ? "items" : nullptr;
}

Result<> check_list(const SchemaSource& s, const char* keyword) {
    if (s.schema->contains(keyword) && !(*s.schema)[keyword].is_array())
        return invalid(s.path + "/" + keyword + ": is not an array");
    return {};
}

// How many of the first items a schema evaluates.
size_t evaluated_by(const SchemaSource& source, const UnevaluatedScope* around) {
    const Json& s = *source.schema;
    if (source.violates || !source.lies_in(around)) return 0;
    if (source.scope != around && s.contains("unevaluatedItems")) return SIZE_MAX;
    const char* list = listed(s);
    const bool old_list = list && std::string_view(list) == "items";
    if (s.contains(old_list ? "additionalItems" : "items")) return SIZE_MAX;
    return list ? s[list].size() : 0;
}

Result<> read_contains(const SchemaSource& source, Draft draft, std::vector<ArrayItems::Containing>& out) {
    const Json& s = *source.schema;
    if (!s.contains("contains")) return {};
    uint64_t min = 1, max = kUnbounded;
    if (s.contains("minContains")) {
        PB_TRY(min, count_of(source, "minContains"));
    }
    if (s.contains("maxContains")) {
        PB_TRY(max, count_of(source, "maxContains"));
    }
    if (min > kMaxCounted)
        return invalid(source.path + "/minContains: is " + std::to_string(min) + ", expected at most " +
                    std::to_string(kMaxCounted));
    const auto high = max == kUnbounded ? kUnbounded : static_cast<uint32_t>(std::min<uint64_t>(max, kMaxCounted));
    if (min == 0 && high == kUnbounded) return {};
    const bool evaluates = draft == Draft::k2020 && !source.violates;
    out.push_back({source.at("contains", s["contains"]), static_cast<uint32_t>(min), high, evaluates, source.scope});
    return {};
}

}  // namespace

Result<ArrayItems> ArrayItems::of(const SchemaSources& sources, Draft draft) {
    ArrayItems out;
    size_t max_prefix = 0;
    for (const SchemaSource& source : sources) {
        PB_CHECK(check_list(source, "prefixItems"));
        if (const char* list = listed(*source.schema)) max_prefix = std::max(max_prefix, (*source.schema)[list].size());
        PB_CHECK(read_contains(source, draft, out.contains));
    }
    if (max_prefix > kMaxPrefixItems)
        return invalid(sources.front().path + ": more than " + std::to_string(kMaxPrefixItems) + " prefixItems");
    out.first.resize(max_prefix);
    size_t allowed = max_prefix; // positions that no `items: false` forbids
    for (const SchemaSource& source : sources) {
        const Json& s = *source.schema;
        const char* list = listed(s);
        const size_t own = list ? s[list].size() : 0;
        for (size_t i = 0; i < own; ++i)
            out.first[i].push_back(source.at(list + ("/" + std::to_string(i)), s[list][i]));
        const char* others = list && std::string_view(list) == "items" ? "additionalItems" : "items";
        if (s.contains("unevaluatedItems")) {
            size_t from = 0;
            for (const SchemaSource& each : sources) from = std::max(from, evaluated_by(each, source.scope));
            if (from != SIZE_MAX)
                out.unevaluated.push_back(
                    {source.at("unevaluatedItems", s["unevaluatedItems"]), from, source.scope});
        }
        if (!s.contains(others)) continue;
        const SchemaSource rest = source.at(others, s[others]);
        if (*rest.schema == false) {
            out.has_rest = false;
            allowed = std::min(allowed, own);
        }
        for (size_t i = own; i < out.first.size(); ++i) out.first[i].push_back(rest);
        out.rest.push_back(rest);
    }
    out.first.resize(allowed);
    return out;
}

namespace {

class Arrays {
  public:
    Arrays(const ArrayTranslation& to, const Constraints& c, ArrayItems items)
        : to_(to), rules_(to.rules), c_(c), items_(std::move(items)) {}

    Result<ExprId> translate() {
        count_ = c_.items;
        for (const Json* v : c_.excluded)
            if (v->is_array()) {
                if (!v->empty())
                    return unsupported(c_.path + ": a 'not' of an array that is not empty is not supported");
                count_.min = std::max(count_.min, 1u);
            }
        if (!items_.contains.empty()) return containing();
        keep_unevaluated();
        const auto first = static_cast<uint32_t>(items_.first.size());
        if (!items_.has_rest) count_.max = std::min(count_.max, first);
        if (count_.min > count_.max) return rules_.nothing();
        if (c_.unique && count_.max > 1) return different();
        if (count_.max == 0) return none();
        ExprId tail = rules_.empty(); // after the items so far
        if (count_.max > first) {
            PB_TRY(const ExprId rest, to_.value(items_.rest));
            const uint32_t before = std::max(first, 1u);
            const uint32_t more = count_.max == kUnbounded ? kUnbounded : count_.max - before;
            tail = rules_.counted(separated(rest), count_.min > before ? count_.min - before : 0, more);
            if (first == 0) tail = rules_.sequence({rest, tail});
        }
        for (uint32_t i = std::min(first, count_.max); i-- > 0;) {
            PB_TRY(const ExprId item, to_.value(items_.first[i]));
            tail = rules_.sequence({i > 0 ? separated(item) : item, tail});
            if (i > 0 && i >= count_.min) tail = rules_.optional(tail);
        }
        return in_brackets(tail, count_.min == 0);
    }

  private:
    using Counts = std::vector<uint32_t>; // of items valid by each `contains`

    ExprId none() { return rules_.bytes("[]"); }
    ExprId separated(ExprId e) { return rules_.sequence({to_.text.separator(), e}); }
    ExprId in_brackets(ExprId items, bool or_none) {
        const ExprId some = to_.text.array_of(items);
        return or_none ? rules_.choice({none(), some}) : some;
    }

    // What holds for unevaluated items joins the others, where no `contains` evaluates one of them.
    void keep_unevaluated() {
        for (const auto& u : items_.unevaluated) {
            if (*u.value.schema == false) {
                items_.has_rest = false;
                if (u.from < items_.first.size()) items_.first.resize(u.from);
                continue;
            }
            while (items_.first.size() < u.from) items_.first.push_back(items_.rest);
            for (size_t i = u.from; i < items_.first.size(); ++i) items_.first[i].push_back(u.value);
            items_.rest.push_back(u.value);
        }
    }

    // Items that differ: values of an enum in its order; of others at most one.
    Result<ExprId> different() {
        std::vector<ExprId> values;
        if (items_.first.empty()) {
            PB_TRY(values, to_.listed(items_.rest));
        }
        if (values.empty()) {
            if (count_.min > 1)
                return unsupported(c_.path +
                                   ": keyword 'uniqueItems' with several items is supported for values of an enum");
            PB_TRY(const ExprId one, to_.value(items_.at(0)));
            return in_brackets(one, count_.min == 0);
        }
        std::vector<JoinedPart> parts;
        for (const ExprId v : values) parts.push_back({v, JoinedPart::Needed::kMaybe});
        PB_TRY(const ExprId some, counted_parts(rules_, to_.text.separator(), parts,
                                                {std::max(count_.min, 1u), count_.max}, c_.path));
        return in_brackets(some, count_.min == 0);
    }

    Result<ExprId> containing() {
        if (items_.contains.size() > kMaxContains)
            return unsupported(c_.path + ": keyword 'contains' of more than " + std::to_string(kMaxContains) +
                               " schemas together is not supported");
        uint64_t least = count_.min, states = 1;
        uint32_t of_contains = 0;
        for (const auto& c : items_.contains) {
            if (c.min > c.max) return rules_.nothing();
            of_contains += c.min;
            states *= capped(c) + 1;
        }
        if (c_.unique && count_.max > 1) {
            if (std::max<uint64_t>(least, of_contains) > 1)
                return unsupported(c_.path +
                                   ": keyword 'uniqueItems' beside 'contains' with several items is not supported");
            count_.max = 1;
        }
        if (!items_.has_rest) count_.max = std::min(count_.max, static_cast<uint32_t>(items_.first.size()));
        last_ = std::max<uint64_t>({1, items_.first.size(), least});
        for (const auto& u : items_.unevaluated) last_ = std::max<uint64_t>(last_, u.from);
        if (count_.max != kUnbounded) {
            const uint64_t enough = std::max<uint64_t>({last_, of_contains, kMaxItemsWithContains});
            last_ = count_.max = static_cast<uint32_t>(std::min<uint64_t>(count_.max, enough));
        }
        if (count_.min > count_.max) return rules_.nothing();
        if (states * (last_ + 1) > kMaxCounted)
            return invalid(c_.path + ": keyword 'contains': too many items to count");
        PB_TRY(const ExprId all, after(0, Counts(items_.contains.size())));
        const bool empty = may_end(0, Counts(items_.contains.size()));
        return in_brackets(all, empty);
    }

    static uint32_t capped(const ArrayItems::Containing& c) { return c.max == kUnbounded ? c.min : c.max; }

    bool may_end(uint64_t position, const Counts& counts) const {
        bool out = position >= count_.min;
        for (size_t i = 0; i < counts.size(); ++i) out = out && counts[i] >= items_.contains[i].min;
        return out;
    }

    // The items from a position on, separators before them; at position 0 at least one.
    Result<ExprId> after(uint64_t position, const Counts& counts) {
        if (const auto known = rests_.find({position, counts}); known != rests_.end())
            return rules_.rule(known->second);
        PB_CHECK(to_.work.spend(100));
        const RuleId rule = rules_.declare("items");
        rests_[{position, counts}] = rule;
        std::vector<ExprId> ways, again;
        if (position > 0 && may_end(position, counts)) ways.push_back(rules_.empty());
        const bool more = count_.max == kUnbounded || position < count_.max;
        for (uint32_t valid = 0; more && valid < 1u << counts.size(); ++valid) {
            Counts next = counts;
            if (!counted(valid, next)) continue;
            PB_TRY(const std::optional<ExprId> item, item_at(position, valid));
            if (!item) continue;
            const ExprId here = position > 0 ? separated(*item) : *item;
            const uint64_t to = count_.max == kUnbounded ? std::min(position + 1, last_) : position + 1;
            if (to == position && next == counts) {
                again.push_back(here);
                continue;
            }
            PB_TRY(const ExprId rest, after(to, next));
            ways.push_back(rules_.sequence({here, rest}));
        }
        ExprId body = rules_.choice(std::move(ways));
        if (!again.empty())
            body = rules_.sequence({rules_.repeat(rules_.choice(std::move(again)), 0, kUnbounded), body});
        rules_.define(rule, body);
        return rules_.rule(rule);
    }

    // With one item that is valid by these schemas, by bit. false: there are too many, or it says nothing new.
    bool counted(uint32_t valid, Counts& counts) const {
        for (size_t i = 0; i < counts.size(); ++i) {
            const auto& c = items_.contains[i];
            if ((valid >> i & 1) == 0) continue;
            if (counts[i] < capped(c))
                counts[i] += 1;
            else if (c.max != kUnbounded || items_.unevaluated.empty())
                return false;
        }
        return true;
    }

    // None: there is no such item that can be kept.
    Result<std::optional<ExprId>> item_at(uint64_t position, uint32_t valid) {
        SchemaSources all = items_.at(position);
        std::vector<const ArrayItems::Containing*> holds;
        for (size_t i = 0; i < items_.contains.size(); ++i) {
            const auto& c = items_.contains[i];
            if (valid >> i & 1) {
                all.push_back(c.schema);
                holds.push_back(&c);
            } else if (c.max != kUnbounded) {
                all.push_back(to_.schema.negation(c.schema));
                if (!to_.schema.flat({all.back()})) return std::optional<ExprId>();
            }
        }
        for (const auto& u : items_.unevaluated) {
            const bool evaluated = std::any_of(holds.begin(), holds.end(), [&](const auto* c) {
                return c->evaluates && UnevaluatedScope::contains(u.scope, c->scope);
            });
            if (position >= u.from && !evaluated) all.push_back(u.value);
        }
        for (const SchemaSource& s : all)
            if (*s.schema == false) return std::optional<ExprId>();
        PB_TRY(const ExprId e, to_.value(all));
        return std::optional(e);
    }

    const ArrayTranslation& to_;
    Rules& rules_;
    const Constraints& c_;
    ArrayItems items_;
    CountRange count_;
    uint64_t last_ = 1; // position from which on all are alike
    std::map<std::pair<uint64_t, Counts>, RuleId> rests_;
};

}  // namespace

Result<ExprId> array_of(const ArrayTranslation& to, const SchemaSources& all, const Constraints& c) {
    PB_TRY(ArrayItems items, ArrayItems::of(all, to.schema.draft()));
    return Arrays(to, c, std::move(items)).translate();
}

}  // namespace patchbay::grammar
