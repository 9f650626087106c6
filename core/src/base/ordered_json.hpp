// JSON from untrusted requests, whose members stay in the order of the text. Read in time that grows as the text does:
// the library's own reading looks through the members of an object for each that it adds.
// Callers include <nlohmann/json.hpp> in their .cpp.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.hpp"

namespace patchbay {

struct OrderedJsonLimits {
    uint32_t depth = 64;           // of nested lists and objects
    uint32_t members = 256u << 10; // of one object: as many as the largest vocabularies have tokens
};

// Of members with the same name the last one counts, at the place of the first. A failure says what follows the
// document's name: "is not JSON: …", "nests lists and objects more than 64 deep".
Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text, const OrderedJsonLimits& = {});

}  // namespace patchbay
