// Traces of one request a line in columns that a header names. Columns beyond those that are needed are passed over.
#include <algorithm>
#include <array>

#include "base/numbers.hpp"
#include "experiment/traces/builder.hpp"
#include "experiment/traces/lines.hpp"

namespace patchbay::experiment {
namespace {

enum class Times { kDates, kSeconds };

struct CsvFormat {
    TraceFormat format;
    const char *time, *prompt, *output, *label; // columns; label: nullptr where there is none
    Times times;
    bool may_have_no_times; // files of lengths alone
    bool fails_without_output; // an output of 0 tokens is a request that failed
};

constexpr std::array<CsvFormat, 4> kCsvFormats{
    {{TraceFormat::kAzure, "TIMESTAMP", "ContextTokens", "GeneratedTokens", nullptr, Times::kDates, false, false},
     {TraceFormat::kVidur, "arrived_at", "num_prefill_tokens", "num_decode_tokens", nullptr, Times::kSeconds, true,
      false},
     {TraceFormat::kSplitwise, "arrival_timestamp", "prompt_size", "token_size", nullptr, Times::kSeconds, false,
      false},
     {TraceFormat::kBurstGpt, "Timestamp", "Request tokens", "Response tokens", "Log Type", Times::kSeconds, false,
      true}}};

// Of one line, as RFC 4180 has them: a cell in quotes may hold commas, and "" is a quote. None: a quote is open.
std::optional<std::vector<std::string>> cells_of(std::string_view line) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') cells.back() += line[++i];
        else if (c == '"' && (quoted || cells.back().empty())) quoted = !quoted;
        else if (c == ',' && !quoted) cells.emplace_back();
        else cells.back() += c;
    }
    if (quoted) return std::nullopt;
    return cells;
}

std::optional<size_t> column_of(const std::vector<std::string>& header, const char* name) {
    if (!name) return std::nullopt;
    const auto at = std::find(header.begin(), header.end(), name);
    if (at == header.end()) return std::nullopt;
    return static_cast<size_t>(at - header.begin());
}

struct Columns {
    CsvFormat format;
    std::optional<size_t> time, label;
    size_t prompt, output, count;
};

std::optional<Columns> columns_of(const std::vector<std::string>& header, const CsvFormat& f) {
    const auto prompt = column_of(header, f.prompt), output = column_of(header, f.output);
    const auto time = column_of(header, f.time);
    if (!prompt || !output || (!time && !f.may_have_no_times)) return std::nullopt;
    return Columns{f, time, column_of(header, f.label), *prompt, *output, header.size()};
}

Result<Columns> choose_format(const TraceBuilder& b, std::string_view line, TraceFormat wanted) {
    const auto header = cells_of(line).value_or(std::vector<std::string>{});
    std::string expected;
    for (const CsvFormat& f : kCsvFormats) {
        if (wanted != TraceFormat::kAuto && wanted != f.format) continue;
        if (const auto columns = columns_of(header, f)) return *columns;
        expected += (expected.empty() ? "" : "; ") + std::string(name_of(f.format)) + ": '" + f.time + "," + f.prompt +
                    "," + f.output + "'";
    }
    return b.fault(in_quotes(line) + ", expected a header with the columns of " +
                   (wanted == TraceFormat::kAuto ? "one of " : "") + expected);
}

Result<> add_row(TraceBuilder& b, const Columns& columns, std::string_view line) {
    const auto cells = cells_of(line);
    if (!cells) return b.fault("a quote that no other ends");
    if (cells->size() != columns.count)
        return b.fault(std::to_string(cells->size()) + " cells, expected " + std::to_string(columns.count) + " in " +
                       in_quotes(line));
    std::optional<int64_t> time;
    if (columns.time) {
        const std::string& cell = (*cells)[*columns.time];
        const bool dates = columns.format.times == Times::kDates;
        if (dates) time = timestamp_ns(cell);
        else if (const auto seconds = parse_number<double>(cell)) time = seconds_ns(*seconds);
        if (!time)
            return b.fault(in_quotes(cell) + ", expected " +
                           (dates ? "a time such as '2023-11-16 18:15:46.6805900'" : "a time in seconds, at most 1e9"));
    }
    TraceRow row;
    for (const auto& [column, field] : {std::pair{columns.prompt, &TraceRow::prompt_tokens},
                                        std::pair{columns.output, &TraceRow::output_tokens}}) {
        const auto tokens = parse_number<uint32_t>((*cells)[column]);
        if (!tokens || *tokens > kMaxTokensOfRow)
            return b.fault(in_quotes((*cells)[column]) + ", expected a number of tokens, at most " +
                           std::to_string(kMaxTokensOfRow));
        row.*field = *tokens;
    }
    if (columns.format.fails_without_output && row.output_tokens == 0) {
        b.trace().left_out += 1;
        return {};
    }
    PB_TRY(const bool wanted, time ? b.wanted(*time) : b.wanted_without_time());
    if (!wanted) return {};
    if (columns.label) row.label = b.label((*cells)[*columns.label]);
    b.add(row);
    return {};
}

}  // namespace

Result<Trace> parse_csv_trace(std::string_view text, const std::string& name, const TraceOptions& options,
                              const InputLimits& limits) {
    TraceBuilder b(name, options, limits, options.format);
    Lines lines(text);
    b.at_line(1);
    PB_TRY(const Columns columns, choose_format(b, lines.next().value_or(""), options.format));
    b.trace().format = columns.format.format;
    b.trace().timed = columns.time.has_value();
    while (const auto line = lines.next()) {
        if (is_blank(*line)) continue;
        b.at_line(lines.number());
        if (line->size() > limits.line_bytes)
            return b.fault("a line of " + std::to_string(line->size()) + " bytes, expected at most " +
                           std::to_string(limits.line_bytes));
        PB_CHECK(add_row(b, columns, *line));
    }
    return b.finish();
}

}  // namespace patchbay::experiment
