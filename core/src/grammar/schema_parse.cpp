#include "grammar/schema_parse.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "grammar/exact_numbers.hpp"
#include "grammar/schema_references.hpp"

namespace patchbay::grammar {

Result<Json> parse_schema(std::string_view text) {
    constexpr size_t kMaxBytes = 256u << 10;
    constexpr int kMaxDepth = 64;
    if (text.size() > kMaxBytes)
        return fail("a schema of " + std::to_string(text.size()) + " bytes, expected at most " +
                    std::to_string(kMaxBytes));
    std::string refused;
    std::vector<size_t> members; // of the objects around
    const auto look = [&](int depth, Json::parse_event_t event, Json&) {
        if (depth > kMaxDepth) refused = "nests deeper than " + std::to_string(kMaxDepth);
        if (event == Json::parse_event_t::object_start) members.push_back(0);
        if (event == Json::parse_event_t::object_end && !members.empty()) members.pop_back();
        if (event == Json::parse_event_t::key && !members.empty() && ++members.back() > kMaxSchemaMembers)
            refused = "has an object of more than " + std::to_string(kMaxSchemaMembers) + " members";
        return refused.empty();
    };
    try {
        Json out = Json::parse(text, look);
        if (!refused.empty()) return fail("the schema " + refused);
        PB_CHECK(check_numbers(text));
        localise_references(out);
        return out;
    } catch (const Json::exception& e) {
        const std::string what = e.what();
        return fail("the schema is not JSON: " + what.substr(std::min(what.size(), what.find("] ") + 2), 200));
    }
}

}  // namespace patchbay::grammar
