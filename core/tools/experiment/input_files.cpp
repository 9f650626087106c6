#include "experiment/input_files.hpp"

#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_file.hpp"

namespace patchbay::experiment {
namespace {

std::string at_line(const std::filesystem::path& path, size_t line) {
    return path.string() + ":" + std::to_string(line);
}

std::string in_quotes(std::string_view text) {
    constexpr size_t kMost = 60;
    return "'" + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "…'" : "'");
}

// Hands out lines without their ends; the last needs no newline.
class Lines {
  public:
    explicit Lines(std::string_view text) : rest_(text) {}
    std::optional<std::string_view> next() {
        if (rest_.empty()) return std::nullopt;
        const size_t end = rest_.find('\n');
        std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
        if (line.ends_with('\r')) line.remove_suffix(1);
        number_ += 1;
        return line;
    }
    size_t number() const { return number_; }

  private:
    std::string_view rest_;
    size_t number_ = 0;
};

std::vector<std::string_view> split(std::string_view text, char by) {
    std::vector<std::string_view> parts;
    for (size_t end; (end = text.find(by)) != text.npos; text.remove_prefix(end + 1))
        parts.push_back(text.substr(0, end));
    parts.push_back(text);
    return parts;
}

template <class T>
std::optional<T> whole_number(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

// "2023-11-16 18:15:46.6805900" → ns since 1970.
std::optional<int64_t> timestamp_ns(std::string_view text) {
    using namespace std::chrono;
    if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') ||
        text[13] != ':' || text[16] != ':')
        return std::nullopt;
    const auto y = whole_number<uint32_t>(text.substr(0, 4)), mo = whole_number<uint32_t>(text.substr(5, 2)),
               d = whole_number<uint32_t>(text.substr(8, 2)), h = whole_number<uint32_t>(text.substr(11, 2)),
               mi = whole_number<uint32_t>(text.substr(14, 2)), s = whole_number<uint32_t>(text.substr(17, 2));
    if (!y || !mo || !d || !h || !mi || !s || *h > 23 || *mi > 59 || *s > 60 || *y < 1970 || *y > 2200)
        return std::nullopt;
    const year_month_day date{year(static_cast<int>(*y)), month(*mo), day(*d)};
    if (!date.ok()) return std::nullopt;
    int64_t fraction = 0;
    if (text.size() > 19) {
        const std::string_view digits = text.substr(20);
        if (text[19] != '.' || digits.empty() || digits.size() > 9) return std::nullopt;
        const auto value = whole_number<uint32_t>(digits);
        if (!value) return std::nullopt;
        fraction = *value;
        for (size_t i = digits.size(); i < 9; ++i) fraction *= 10;
    }
    const auto since = sys_days(date).time_since_epoch() + hours(*h) + minutes(*mi) + seconds(*s);
    return duration_cast<nanoseconds>(since).count() + fraction;
}

// The text at a dotted path, or why there is none.
Result<std::string> text_at(const nlohmann::json& object, const std::string& field) {
    const nlohmann::json* node = &object;
    for (const std::string_view part : split(field, '.')) {
        if (node->is_array()) {
            const auto index = whole_number<uint32_t>(part);
            if (!index || *index >= node->size())
                return fail("no element '" + std::string(part) + "' of '" + field + "' in a list of " +
                            std::to_string(node->size()));
            node = &(*node)[*index];
        } else if (node->is_object() && node->contains(part)) {
            node = &(*node)[std::string(part)];
        } else {
            std::string keys;
            if (node->is_object())
                for (const auto& [key, value] : node->items())
                    keys += (keys.empty() ? " (there are " : ", ") + in_quotes(key);
            return fail("no field '" + field + "'" + (keys.empty() ? "" : keys + ")"));
        }
    }
    if (!node->is_string()) return fail("field '" + field + "' is a " + node->type_name() + ", expected a string");
    std::string text = node->get<std::string>();
    if (text.empty()) return fail("field '" + field + "' is empty");
    return text;
}

}  // namespace

Result<std::vector<std::string>> read_jsonl_prompts(const std::filesystem::path& path, const std::string& field,
                                                    const InputLimits& limits) {
    PB_TRY(const std::string text, read_whole_file(path, limits.file_bytes));
    std::vector<std::string> prompts;
    Lines lines(text);
    while (const auto line = lines.next()) {
        if (line->find_first_not_of(" \t") == line->npos) continue;
        const std::string where = at_line(path, lines.number());
        if (line->size() > limits.line_bytes)
            return fail(where + ": a line of " + std::to_string(line->size()) + " bytes, expected at most " +
                        std::to_string(limits.line_bytes));
        auto object = parse_json(*line, "");
        if (!object) { // ":1:<column>: …", of a text that is one line
            std::string_view why = object.error();
            if (why.starts_with(":1:")) why.remove_prefix(2);
            return fail(where + std::string(why));
        }
        auto prompt = text_at(*object, field);
        if (!prompt) return fail(where + ": " + prompt.error());
        prompts.push_back(*std::move(prompt));
        if (prompts.size() > limits.rows)
            return fail(where + ": more than " + std::to_string(limits.rows) + " prompts");
    }
    if (prompts.empty()) return fail(path.string() + ": no prompts in it");
    return prompts;
}

Result<std::vector<TraceRow>> read_azure_trace(const std::filesystem::path& path, uint32_t skip, uint32_t max_rows,
                                               const InputLimits& limits) {
    PB_TRY(const std::string text, read_whole_file(path, limits.file_bytes));
    constexpr std::string_view kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
    Lines lines(text);
    const auto header = lines.next();
    if (!header || *header != kHeader)
        return fail(at_line(path, 1) + ": " + in_quotes(header.value_or("")) + ", expected the header '" +
                    std::string(kHeader) + "'");
    std::vector<TraceRow> rows;
    int64_t first_ns = 0, last_ns = 0;
    uint64_t number = 0;
    while (const auto line = lines.next()) {
        if (line->empty()) continue;
        if (number++ < skip) continue;
        if (rows.size() >= max_rows) break;
        const std::string where = at_line(path, lines.number()) + ": ";
        const auto cells = split(*line, ',');
        if (cells.size() != 3)
            return fail(where + std::to_string(cells.size()) + " cells, expected 3 in " + in_quotes(*line));
        const auto at = timestamp_ns(cells[0]);
        if (!at) return fail(where + in_quotes(cells[0]) + ", expected a time such as '2023-11-16 18:15:46.6805900'");
        const auto prompt = whole_number<uint32_t>(cells[1]), output = whole_number<uint32_t>(cells[2]);
        if (!prompt || !output)
            return fail(where + in_quotes(prompt ? cells[2] : cells[1]) + ", expected a number of tokens");
        if (rows.empty()) first_ns = last_ns = *at;
        if (*at < last_ns) return fail(where + "a time before that of the row above");
        if (rows.size() >= limits.rows) return fail(where + "more than " + std::to_string(limits.rows) + " rows");
        last_ns = *at;
        rows.push_back({static_cast<uint64_t>(*at - first_ns), *prompt, *output});
    }
    if (rows.empty())
        return fail(path.string() + ": no rows in it" + (skip ? " after skipping " + std::to_string(skip) : ""));
    return rows;
}

Result<std::string> read_text(const std::filesystem::path& path, const InputLimits& limits) {
    PB_TRY(std::string text, read_whole_file(path, limits.file_bytes));
    if (text.empty()) return fail(path.string() + " is empty");
    return text;
}

}  // namespace patchbay::experiment
