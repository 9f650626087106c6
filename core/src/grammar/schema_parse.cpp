#include "grammar/schema_parse.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "base/exact_numbers.hpp"
#include "base/ordered_json.hpp"
#include "base/refusals.hpp"
#include "grammar/schema_references.hpp"

namespace patchbay::grammar {

Result<Json> parse_schema(std::string_view text) {
    constexpr size_t kMaxBytes = 256u << 10;
    if (text.size() > kMaxBytes)
        return invalid("a schema of " + std::to_string(text.size()) + " bytes, expected at most " +
                       std::to_string(kMaxBytes));
    auto out = parse_ordered_json(text, {.members = kMaxSchemaMembers});
    if (!out) return fail(out.code(), "the schema " + out.error());
    PB_CHECK(check_exact_numbers(text));
    PB_CHECK(localise_references(*out));
    return out;
}

}  // namespace patchbay::grammar
