#include "text/pattern_json.hpp"

#include "base/refusals.hpp"
#include "text/json_fields.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {

Result<std::variant<std::string, Regex>> read_pattern(const nlohmann::json& part, const std::string& type) {
    using Pattern = std::variant<std::string, Regex>;
    const nlohmann::json& pattern = member(part, "pattern");
    if (!pattern.is_object()) return invalid(type + " has no 'pattern'");
    if (const auto& text = member(pattern, "String"); text.is_string()) {
        if (text.get_ref<const std::string&>().empty())
            return unsupported(type + ": an empty 'String' is not supported");
        if (text.get_ref<const std::string&>().size() > kMaxTokenBytes)
            return unsupported(type + ": a 'String' of more than " + std::to_string(kMaxTokenBytes) +
                               " bytes is not supported");
        return Pattern(text.get<std::string>());
    }
    if (const auto& text = member(pattern, "Regex"); text.is_string()) {
        PB_TRY(Regex regex, Regex::compile(text.get<std::string>()));
        return Pattern(std::move(regex));
    }
    return invalid(type + ": 'pattern' has neither 'Regex' nor 'String'");
}

}  // namespace patchbay::text
