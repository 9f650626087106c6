// Arrays under all schemas that apply to them: what stands where, and how many of what. For the JSON Schema front end.
#pragma once
#include <functional>
#include <vector>

#include "grammar/schema_constraints.hpp"

namespace patchbay::grammar {

// The items that several schemas describe together.
struct ArrayItems {
    struct Unevaluated { // of items from a position on, if no other schema in the scope evaluates them
        SchemaSource value;
        size_t from;
        const UnevaluatedScope* scope;
    };
    struct Containing { // min to max items are valid by it
        SchemaSource schema;
        uint32_t min, max;
        bool evaluates; // for unevaluatedItems in whose scope it lies
        const UnevaluatedScope* scope;
    };
    std::vector<SchemaSources> first; // by position
    SchemaSources rest;
    bool has_rest = true;
    std::vector<Unevaluated> unevaluated; // of two items at the same position all hold
    std::vector<Containing> contains;

    static Result<ArrayItems> of(const SchemaSources&, Draft);
    SchemaSources at(size_t position) const { return position < first.size() ? first[position] : rest; }
};

struct ArrayTranslation {
    Rules& rules;
    JsonText& text;
    Work& work;
    const SchemaText& schema;
    std::function<Result<ExprId>(const SchemaSources&)> value;
    std::function<Result<std::vector<ExprId>>(const SchemaSources&)> listed; // the values, if these are few
};

Result<ExprId> array_of(const ArrayTranslation&, const SchemaSources&, const Constraints&);

}  // namespace patchbay::grammar
