#include "grammar/made_schemas.hpp"

#include <utility>

namespace patchbay::grammar {

const Json& MadeSchemas::keep(Json made) const {
    made_.push_back(std::move(made));
    return made_.back();
}

SchemaSource MadeSchemas::negation(const SchemaSource& source) const {
    const auto [at, fresh] = negations_.try_emplace(source.schema, nullptr);
    if (fresh) at->second = &keep(Json{{"not", *source.schema}});
    SchemaSource out = source;
    out.schema = at->second;
    out.violates = true;
    out.entered = false;
    return out;
}

}  // namespace patchbay::grammar
