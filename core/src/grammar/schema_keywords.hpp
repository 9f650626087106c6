// The keywords of JSON Schema, and the types of values that they are about. For the JSON Schema front end.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "grammar/schema_source.hpp"

namespace patchbay::grammar {

enum SchemaType : uint32_t { // bits; a number is an integer or has a fraction
    kNull = 1,
    kBoolean = 2,
    kString = 4,
    kInteger = 8,
    kFraction = 16,
    kArray = 32,
    kObject = 64,
    kNumber = kInteger | kFraction,
    kAnyType = 127
};
struct SchemaTypes {
    uint32_t allowed = kAnyType; // by type, enum, const, and a plain `not`
    bool given = false;          // by one of the first three
    uint32_t about = 0;          // that its other keywords are about
};
Result<SchemaTypes> types_of(const SchemaSource&);

enum class Draft { k4, k6, k7, k2019, k2020 };
// By $schema of the root; nothing: it names none of these.
std::optional<Draft> draft_named(const Json& root);
// Whether the draft has it, for keywords that not all drafts have; true for all other names.
bool is_of(Draft, std::string_view keyword);

struct Keyword {
    std::string_view name;
    uint32_t types; // that it is about; 0: not about one
    enum class Kind { kAsserts, kApplies } kind = Kind::kAsserts;
};
// All others are annotations, or belong to one of these.
std::span<const Keyword> known_keywords();
// Whether the keyword is followed as a schema beside its own one.
bool applies(const std::string& keyword, const Json& value);
// Whether the schema constrains values by itself, without what is followed beside it.
bool has_assertions(const Json::object_t& schema);

}  // namespace patchbay::grammar
