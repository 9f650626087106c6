// The schemas that hold for one value: references followed, allOf joined, alternatives collected, every keyword known.
// For the JSON Schema front end.
#pragma once
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "grammar/json_text.hpp"

namespace patchbay::grammar {

struct SchemaSource {
    const Json* schema;
    std::string path; // "#/properties/name"; a long one ends before its end
    enum class Holds { kBeside, kAround } holds = Holds::kBeside; // kAround: the others are branches of it
    SchemaSource at(const std::string& keyword, const Json& part) const {
        return {&part, path.size() < 300 ? path + "/" + keyword.substr(0, 200) : path};
    }
};
using SchemaSources = std::vector<SchemaSource>;

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
// Of `type`; where there is none and no enum or const, the types that its keywords are about; else any.
Result<uint32_t> types_of(const SchemaSource&);

struct FlatSchema {
    SchemaSources all;                  // hold together, objects each, with keywords that say something
    std::vector<SchemaSources> choices; // of each one holds
    bool impossible = false;            // false is among them
    size_t seen = 0, cost = 0;          // schemas; those, their keywords and branches
};

// Of enum or const; none where neither is there.
std::span<const Json> values_of(const Json& schema);
// Whatever the order of members; 1 is 1.0.
bool same_value(const Json&, const Json&);
// Of comparing a value with another, about: its parts.
uint64_t cost_of(const Json&);
// Of comparing each of them with each.
uint64_t cost_of(std::span<const Json>, std::span<const Json>);

class SchemaText { // a whole schema; outlives what was made from it
  public:
    static constexpr size_t kMaxBytes = 256u << 10, kMaxMembers = 2000;
    static constexpr int kMaxDepth = 64;

    static Result<Json> parse(std::string_view);
    explicit SchemaText(const Json& root) : root_(root) {}

    Result<FlatSchema> flat(const SchemaSources&) const;
    SchemaSource root() const { return {&root_, "#"}; }

  private:
    Result<> add(const SchemaSource&, FlatSchema&, int depth) const;
    Result<SchemaSource> resolve(const SchemaSource& with_ref) const;
    Result<SchemaSource> look_up(const SchemaSource& with_ref) const;
    Result<> check_one_of(const SchemaSource&) const;
    bool disjoint(const Json& a, const Json& b, int depth) const;
    const Json& followed(const Json&) const; // through $ref, as far as it goes
    bool pays(uint64_t n) const { // false: too much has been compared
        const bool enough = n <= comparisons_;
        comparisons_ = enough ? comparisons_ - n : 0;
        return enough;
    }
    const Json& root_;
    mutable std::map<const Json*, SchemaSource> resolved_; // by the schema with the $ref
    mutable std::set<const Json*> exclusive_;              // schemas whose oneOf has been looked at
    mutable uint64_t comparisons_ = 1'000'000; // left for oneOf; then nothing is plain to see any more
};

}  // namespace patchbay::grammar
