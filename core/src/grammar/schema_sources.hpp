// The schemas that apply to one value: references followed, allOf joined, alternatives collected, every keyword known.
// For the JSON Schema front end.
#pragma once
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "grammar/json_text.hpp"
#include "grammar/schema_references.hpp"

namespace patchbay::grammar {

// A schema with unevaluatedProperties or unevaluatedItems, which others lie in that are about the same value.
struct UnevaluatedScope {
    const Json* schema;
    const UnevaluatedScope* outer;
    static bool contains(const UnevaluatedScope* around, const UnevaluatedScope* inner) {
        for (; inner; inner = inner->outer)
            if (inner == around) return true;
        return false;
    }
};

struct SchemaSource {
    const Json* schema;
    std::string path; // "#/properties/name"; a long one is cut
    bool entered = false;  // scopes are those within it: it is what is left of a schema
    bool violates = false; // it says what a `not` or `oneOf` forbids: it evaluates nothing for the schemas around it
    const UnevaluatedScope* scope = nullptr;
    const DynamicAnchors* dynamic = nullptr; // of the resources on the way to it, the outermost first; null: not needed

    // A part that is about another value, and one that is about the same.
    SchemaSource at(const std::string& keyword, const Json& part) const {
        return {&part, longer(keyword), false, false, nullptr, dynamic};
    }
    SchemaSource beside(const std::string& keyword, const Json& part) const {
        return {&part, longer(keyword), false, violates, scope, dynamic};
    }
    // Another one, made without knowing where this one lies, in its place.
    SchemaSource placed(const SchemaSource& other) const {
        return {other.schema, other.path, false, violates || other.violates, scope, dynamic};
    }
    bool lies_in(const UnevaluatedScope* around) const { return UnevaluatedScope::contains(around, scope); }

  private:
    std::string longer(const std::string& keyword) const {
        return path.size() < 300 ? path + "/" + keyword.substr(0, 200) : path;
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
struct SchemaTypes {
    uint32_t allowed = kAnyType; // by type, enum, const, and a plain `not`
    bool given = false;          // by one of the first three
    uint32_t about = 0;          // that its other keywords are about
};
Result<SchemaTypes> types_of(const SchemaSource&);

struct FlatSchema {
    SchemaSources all;                  // apply together; each is an object with keywords that constrain values
    std::vector<std::vector<SchemaSources>> choices; // of each, all of one branch must apply
    bool impossible = false;            // one of them is the schema false
    size_t seen = 0, cost = 0;          // number of schemas; with their keywords and branches
};

// The values of enum or const; none without them.
std::span<const Json> values_of(const Json& schema);
// Equality of JSON values: the order of members does not matter; 1 equals 1.0.
bool same_value(const Json&, const Json&);
// The approximate cost of comparing a value: the number of its parts.
uint64_t cost_of(const Json&);
// The cost of comparing all pairs.
uint64_t cost_of(std::span<const Json>, std::span<const Json>);

// By $schema of the root; without one the latest. Keywords of a later one than it names are kept all the same.
enum class Draft { kBefore2019, k2019, k2020 };

class SchemaText { // a whole schema; outlives everything made from it
  public:
    static constexpr size_t kMaxBytes = 256u << 10, kMaxMembers = 2000;
    static constexpr int kMaxDepth = 64;

    static Result<Json> parse(std::string_view);
    explicit SchemaText(const Json& root);

    Result<FlatSchema> flat(const SchemaSources&) const;
    SchemaSource root() const;
    Draft draft() const;
    Result<SchemaSource> resolve(const SchemaSource& with_ref) const;
    SchemaSource negation(const SchemaSource&) const; // {"not": schema}, the same one each time
    // Whether the keyword is followed as a schema beside its own one.
    static bool applies(const std::string& keyword, const Json& value);
    const Json& keep(Json made) const { // as long as this
        made_.push_back(std::move(made));
        return made_.back();
    }

  private:
    Result<> add(const SchemaSource&, FlatSchema&, int depth) const;
    Result<> add_parts(const SchemaSource&, FlatSchema&, int depth) const;
    Result<> add_not(const SchemaSource& negated, FlatSchema&, int depth) const;
    Result<> add_dependencies(const SchemaSource&, FlatSchema&) const;
    Result<std::vector<SchemaSources>> one_of(const SchemaSource&) const;
    struct Target {
        SchemaSource source;
        const Json* resource; // around it
    };
    Result<Target> look_up(const SchemaSource& with_ref, const char* keyword) const;
    Result<SchemaSource> resolve_dynamic(const SchemaSource&, const char* keyword) const;
    Result<SchemaSource> entered(SchemaSource) const; // with the scopes that its schema opens
    const DynamicAnchors* within(const DynamicAnchors*, const Json* resource) const;
    bool disjoint(const Json& a, const Json& b, int depth) const;
    const Json& followed(const Json&) const; // follows $ref to its end
    bool pays(uint64_t n) const { // false: the budget of comparisons is used up
        const bool enough = n <= comparisons_;
        comparisons_ = enough ? comparisons_ - n : 0;
        return enough;
    }
    const Json& root_;
    std::map<const Json*, DynamicAnchors> resources_;  // empty: no reference needs them
    mutable std::set<DynamicAnchors> dynamic_scopes_;
    mutable std::map<std::pair<const Json*, const UnevaluatedScope*>, UnevaluatedScope> scopes_;
    mutable std::map<const Json*, Target> resolved_; // by the schema that contains the $ref
    mutable std::map<const Json*, std::vector<SchemaSources>> one_of_; // branches, by schema
    mutable std::map<const Json*, const Json*> negations_;             // {"not": schema}, by schema
    mutable std::map<const Json*, SchemaSources> violations_;          // by schema
    mutable std::map<const Json*, std::vector<std::vector<SchemaSources>>> dependencies_; // by schema
    mutable std::deque<Json> made_;
    mutable size_t copies_ = 8u << 20; // bytes that may be copied
    mutable uint64_t comparisons_ = 1'000'000; // left for oneOf; at 0 branches no longer count as exclusive
};

}  // namespace patchbay::grammar
