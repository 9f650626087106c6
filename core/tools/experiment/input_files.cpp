#include "experiment/input_files.hpp"

#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "base/numbers.hpp"
#include "base/refusals.hpp"
#include "base/sha256.hpp"
#include "experiment/traces/lines.hpp"

namespace patchbay::experiment {
namespace {

std::string at_line(const std::filesystem::path& path, size_t line) {
    return path.string() + ":" + std::to_string(line);
}

// The text at a dotted path, or why there is none.
Result<std::string> text_at(const nlohmann::json& object, const std::string& field) {
    const nlohmann::json* node = &object;
    for (const std::string_view part : split(field, '.')) {
        if (node->is_array()) {
            const auto index = parse_number<uint32_t>(part);
            if (!index || *index >= node->size())
                return invalid("no element '" + std::string(part) + "' of '" + field + "' in a list of " +
                               std::to_string(node->size()));
            node = &(*node)[*index];
        } else if (node->is_object() && node->contains(part)) {
            node = &(*node)[std::string(part)];
        } else {
            std::string keys;
            if (node->is_object())
                for (const auto& [key, value] : node->items())
                    keys += (keys.empty() ? " (there are " : ", ") + in_quotes(key);
            return invalid("no field '" + field + "'" + (keys.empty() ? "" : keys + ")"));
        }
    }
    if (!node->is_string()) return invalid("field '" + field + "' is a " + node->type_name() + ", expected a string");
    std::string text = node->get<std::string>();
    if (text.empty()) return invalid("field '" + field + "' is empty");
    return text;
}

}  // namespace

Result<std::string> read_input(const std::filesystem::path& path, std::vector<InputFile>& files,
                               const InputLimits& limits) {
    PB_TRY(std::string text, read_whole_file(path, limits.file_bytes));
    files.push_back({std::filesystem::absolute(path).lexically_normal().string(), sha256_hex(text)});
    return text;
}

Result<std::vector<std::string>> jsonl_prompts(std::string_view text, const std::filesystem::path& path,
                                               const std::string& field, const InputLimits& limits) {
    std::vector<std::string> prompts;
    Lines lines(text);
    while (const auto line = lines.next()) {
        if (is_blank(*line)) continue;
        const std::string where = at_line(path, lines.number());
        if (line->size() > limits.line_bytes)
            return invalid(where + ": a line of " + std::to_string(line->size()) + " bytes, expected at most " +
                           std::to_string(limits.line_bytes));
        auto object = parse_json(*line, "");
        if (!object) { // ":1:<column>: …", of a text that is one line
            std::string_view why = object.error();
            if (why.starts_with(":1:")) why.remove_prefix(2);
            return invalid(where + std::string(why));
        }
        auto prompt = text_at(*object, field);
        if (!prompt) return prefixed(where, prompt.failure());
        prompts.push_back(*std::move(prompt));
        if (prompts.size() > limits.rows)
            return invalid(where + ": more than " + std::to_string(limits.rows) + " prompts");
    }
    if (prompts.empty()) return invalid(path.string() + ": no prompts in it");
    return prompts;
}

}  // namespace patchbay::experiment
