// The form of output that a request prescribes, with the names of vLLM's structured_outputs.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace patchbay::grammar {

struct StructuredOutputs {                // exactly one of the first six
    std::optional<std::string> json{};    // a JSON Schema, its text
    std::optional<std::string> regex{};   // the whole output must match
    std::vector<std::string> choice{};    // one of these texts
    std::optional<std::string> grammar{}; // GBNF or Lark
    std::optional<std::string> structural_tag{}; // JSON: free text, in which triggers begin parts of a form
    bool json_object = false;             // any JSON object
    bool disable_any_whitespace = false;  // json and json_object: no white space between the parts

    int forms() const { // how many of them are given
        return json.has_value() + regex.has_value() + !choice.empty() + grammar.has_value() +
               structural_tag.has_value() + json_object;
    }
    static constexpr const char* kForms = "json, regex, choice, grammar, structural_tag and json_object";
};

}  // namespace patchbay::grammar
