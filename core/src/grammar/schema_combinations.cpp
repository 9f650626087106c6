#include "grammar/schema_combinations.hpp"

#include <cstddef>
#include <utility>

#include "base/refusals.hpp"
#include "grammar/schema_keywords.hpp"

namespace patchbay::grammar {

constexpr size_t kMaxAlternatives = 256; // of several anyOf together

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

}  // namespace patchbay::grammar
