#include "experiment/traces/json_lines.hpp"

#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "experiment/traces/lines.hpp"

namespace patchbay::experiment {

Result<> each_json_line(std::string_view text, TraceBuilder& b,
                        const std::function<Result<>(const nlohmann::json&, size_t line)>& take) {
    Lines lines(text);
    while (const auto line = lines.next()) {
        if (is_blank(*line)) continue;
        b.at_line(lines.number());
        if (line->size() > b.limits().line_bytes)
            return b.fault("a line of " + std::to_string(line->size()) + " bytes, expected at most " +
                           std::to_string(b.limits().line_bytes));
        const auto value = parse_json(*line, "");
        if (!value) { // ":1:<column>: …", of a text that is one line
            std::string_view why = value.error();
            const bool has_column = why.starts_with(":1:");
            if (has_column) why.remove_prefix(3);
            return b.fault((has_column ? "column " : "") + std::string(why));
        }
        PB_CHECK(take(*value, lines.number()));
    }
    return {};
}

}  // namespace patchbay::experiment
