// The form of output that a request prescribes, with the names of vLLM's structured_outputs.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace patchbay::grammar {

struct StructuredOutputs {                // exactly one of the first five
    std::optional<std::string> json{};    // a JSON Schema, its text
    std::optional<std::string> regex{};   // the whole output must match
    std::vector<std::string> choice{};    // one of these texts
    std::optional<std::string> grammar{}; // EBNF
    bool json_object = false;             // any JSON object
    bool disable_any_whitespace = false;  // json and json_object: no white space between the parts
};

}  // namespace patchbay::grammar
