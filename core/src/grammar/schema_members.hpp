// The members that objects may have by all schemas that apply to them. For the JSON Schema front end.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "grammar/dfa.hpp"
#include "grammar/schema_source.hpp"

namespace patchbay::grammar {

// Automata of names as they stand in a text, without quotes.
struct NameAutomata {
    std::function<Result<Dfa>()> any;
    std::function<Result<Dfa>(const std::string& pattern, const std::string& path)> matching;
    std::function<Result<Dfa>(const SchemaSources&)> valid; // for strings under these schemas
};

struct ObjectMembers {
    struct Member {
        std::string name;
        SchemaSources value; // hold together
        bool required;
    };
    struct Others { // members with other names, by the patterns that these match
        Dfa names;
        SchemaSources value;
    };
    std::vector<Member> named;  // in the order of the schemas, without forbidden ones
    std::vector<Others> others; // none: there may be no others
    bool impossible = false;    // a required member is forbidden

    static Result<ObjectMembers> of(const SchemaSources&, const NameAutomata&, Work&);
};

}  // namespace patchbay::grammar
