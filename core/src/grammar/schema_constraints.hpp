// The constraints of all schemas that apply to one value, keyword by keyword. For the JSON Schema front end.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "grammar/counted_parts.hpp"
#include "grammar/json_numbers.hpp"
#include "grammar/schema_text.hpp"

namespace patchbay::grammar {

struct Constraints {
    uint32_t types = kAnyType;
    std::optional<std::vector<const Json*>> values; // that enum and const leave
    std::vector<NumberBound> bounds;
    std::vector<Json> multiples, not_multiples;
    CountRange length, items, members;
    struct Text {
        std::string regex;
        RegexDialect::Match match; // a format's is of the whole text
        std::string path;
        bool negated = false; // must not match
    };
    std::vector<Text> texts; // patterns and formats
    std::vector<const Json*> excluded; // values that are forbidden
    bool unique = false;               // items of arrays differ
    std::string path;        // of the first schema, for messages

    static Result<Constraints> of(const FlatSchema&, Work&);
    bool excludes(const Json& value) const;
    bool restricts_numbers() const { return !bounds.empty() || !multiples.empty() || !not_multiples.empty(); }
};

// The value of a keyword that is a count.
Result<uint64_t> count_of(const SchemaSource&, const char* keyword);

}  // namespace patchbay::grammar
