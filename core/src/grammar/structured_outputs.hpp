// What a request may ask of the form of its output, as vLLM's structured_outputs has it.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace patchbay::grammar {

struct StructuredOutputs {                // exactly one of the first five
    std::optional<std::string> json{};    // a JSON Schema, its text
    std::optional<std::string> regex{};   // that the whole output matches
    std::vector<std::string> choice{};    // one of these
    std::optional<std::string> grammar{}; // EBNF
    bool json_object = false;             // any JSON object
    bool disable_any_whitespace = false;  // json and json_object: none between the parts
};

}  // namespace patchbay::grammar
