#include "grammar/schema_objects.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/refusals.hpp"
#include "grammar/counted_parts.hpp"

namespace patchbay::grammar {
namespace {

constexpr uint32_t kMaxDifferent = 32; // members that minProperties demands and no schema names

Result<ExprId> other_member(const ObjectTranslation& to, const ObjectMembers& members) {
    std::vector<ExprId> ways;
    for (const auto& others : members.others) {
        PB_TRY(const ExprId v, to.value(others.value));
        ways.push_back(to.text.member(to.text.quoted(to.rules.automaton(others.names)), v));
    }
    return to.rules.choice(std::move(ways));
}

// So many members that the schemas do not name. The lengths of their names, divided by `count`, leave different
// remainders, so that no two names are the same.
Result<> add_different(const ObjectTranslation& to, const ObjectMembers& members, uint32_t count,
                       std::vector<JoinedPart>& parts, const std::string& path) {
    if (count > kMaxDifferent)
        return unsupported(path + ": keyword 'minProperties' of more than " + std::to_string(kMaxDifferent) +
                           " members without a name is not supported");
    for (uint32_t remainder = 1; remainder <= count; ++remainder) {
        Dfa lengths;
        lengths.states.resize(count);
        for (uint32_t s = 0; s < count; ++s) lengths.states[s].edges = {{0, 255, (s + 1) % count}};
        lengths.states[remainder % count].accepts = true;
        std::vector<ExprId> ways;
        for (const auto& others : members.others) {
            PB_TRY(Dfa names, common(others.names, lengths, to.work));
            if (names.empty()) continue;
            PB_TRY(const ExprId v, to.value(others.value));
            ways.push_back(to.text.member(to.text.quoted(to.rules.automaton(std::move(names))), v));
        }
        if (ways.empty())
            return unsupported(path + ": keyword 'minProperties' is not supported for names of so few lengths");
        parts.push_back({to.rules.choice(std::move(ways)), JoinedPart::Needed::kAlways});
    }
    return {};
}

}  // namespace

Result<ExprId> object_of(const ObjectTranslation& to, const SchemaSources& all, const Constraints& c) {
    PB_TRY(const ObjectMembers members, ObjectMembers::of(all, to.names, to.work));
    if (members.impossible) return to.rules.nothing();
    CountRange count = c.members;
    for (const Json* v : c.excluded)
        if (v->is_object()) {
            if (!v->empty()) return unsupported(c.path + ": a 'not' of an object that is not empty is not supported");
            count.min = std::max(count.min, 1u);
        }
    std::vector<JoinedPart> parts;
    uint32_t required = 0;
    for (const auto& m : members.named) {
        PB_TRY(const ExprId v, to.value(m.value));
        const ExprId name = to.rules.bytes(JsonText::spelled(Json(m.name)));
        parts.push_back(
            {to.text.member(name, v), m.required ? JoinedPart::Needed::kAlways : JoinedPart::Needed::kMaybe});
        required += m.required;
    }
    const auto named = static_cast<uint32_t>(members.named.size());
    if (required > count.max || count.min > count.max) return to.rules.nothing();
    // Other members may have the same name: together they count as one at least.
    const bool open = !members.others.empty() && count.max > required;
    if (count.min > named + open) {
        if (!open) return to.rules.nothing();
        PB_CHECK(add_different(to, members, count.min - required, parts, c.path));
        count.min = 1; // those that are always there are enough
    }
    if (open && (c.members.min <= named + open || count.max == kUnbounded)) {
        PB_TRY(const ExprId one, other_member(to, members));
        const bool limited = count.max != kUnbounded && named > 0;
        const uint32_t more = count.max == kUnbounded ? kUnbounded : limited ? 0 : count.max - 1;
        const ExprId rest = to.rules.repeat(to.rules.sequence({to.text.separator(), one}), 0, more);
        parts.push_back({to.rules.sequence({one, rest}), JoinedPart::Needed::kMaybe});
    }
    const ExprId none = to.rules.bytes("{}");
    const bool may_be_empty = required == 0 && count.min == 0;
    if (parts.empty() || count.max == 0) return may_be_empty ? none : to.rules.nothing();
    PB_TRY(const ExprId inner, counted_parts(to.rules, to.text.separator(), parts,
                                             {std::max(count.min, 1u), count.max}, c.path));
    const ExprId some = to.text.object_of(inner);
    return may_be_empty ? to.rules.choice({none, some}) : some;
}

}  // namespace patchbay::grammar
