#include "experiment/traces/trace.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json_file.hpp"
#include "experiment/traces/builder.hpp"
#include "experiment/traces/lines.hpp"

namespace patchbay::experiment {
namespace {

constexpr std::array<std::pair<const char*, TraceFormat>, 9> kFormats{{{"auto", TraceFormat::kAuto},
                                                                       {"azure", TraceFormat::kAzure},
                                                                       {"vidur", TraceFormat::kVidur},
                                                                       {"splitwise", TraceFormat::kSplitwise},
                                                                       {"burstgpt", TraceFormat::kBurstGpt},
                                                                       {"mooncake", TraceFormat::kMooncake},
                                                                       {"token_ids", TraceFormat::kTokenIds},
                                                                       {"sharegpt", TraceFormat::kShareGpt},
                                                                       {"patchbay", TraceFormat::kPatchbay}}};

// Of a JSON file by its first line, else a CSV.
TraceFormat family_of(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == text.npos) return TraceFormat::kAzure; // whose reader misses the header
    if (text[begin] == '[') return TraceFormat::kShareGpt;
    if (text[begin] != '{') return TraceFormat::kAzure;
    const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
    const bool talks = line.find("\"conversations\"") != line.npos || line.find("\"messages\"") != line.npos;
    return talks ? TraceFormat::kShareGpt : TraceFormat::kMooncake;
}

uint32_t scaled(uint32_t tokens, double by) {
    if (tokens == 0) return 0;
    return std::max(1u, static_cast<uint32_t>(std::lround(std::min(tokens * by, double{kMaxTokensOfRow}))));
}

// Blocks shrink with the prompts, so that what was shared remains shared.
void scale(Trace& trace, double by) {
    const uint32_t block = trace.block_tokens;
    trace.block_tokens = scaled(block, by);
    for (TraceRow& row : trace.rows) {
        if (row.content == PromptContent::kBlocks && row.count > 0) {
            const uint64_t whole = uint64_t{row.count - 1} * trace.block_tokens;
            const uint64_t last = scaled(row.prompt_tokens - (row.count - 1) * block, by);
            row.prompt_tokens = static_cast<uint32_t>(
                std::min<uint64_t>(whole + std::min<uint64_t>(last, trace.block_tokens), kMaxTokensOfRow));
        } else {
            row.prompt_tokens = scaled(row.prompt_tokens, by);
            if (row.content == PromptContent::kPrefix) row.count = std::min(scaled(row.count, by), row.prompt_tokens);
        }
        row.output_tokens = scaled(row.output_tokens, by);
        row.max_tokens = scaled(row.max_tokens, by);
    }
}

}  // namespace

std::span<const std::pair<const char*, TraceFormat>> trace_formats() { return kFormats; }

const char* name_of(TraceFormat format) { return kFormats[static_cast<size_t>(format)].first; }

Result<Trace> parse_trace(std::string_view text, const std::string& name, const TraceOptions& options,
                          const InputLimits& limits) {
    const TraceFormat family = options.format == TraceFormat::kAuto ? family_of(text) : options.format;
    const auto parse = family == TraceFormat::kShareGpt ? parse_sharegpt
                       : family == TraceFormat::kMooncake || family == TraceFormat::kTokenIds ||
                               family == TraceFormat::kPatchbay
                           ? parse_jsonl_trace
                           : parse_csv_trace;
    PB_TRY(Trace trace, parse(text, name, options, limits));
    if (options.length_scale != 1) scale(trace, options.length_scale);
    return trace;
}

Result<Trace> read_trace(const std::filesystem::path& path, const TraceOptions& options, const InputLimits& limits) {
    PB_TRY(const std::string text, read_whole_file(path, limits.file_bytes));
    return parse_trace(text, path.string(), options, limits);
}

}  // namespace patchbay::experiment
