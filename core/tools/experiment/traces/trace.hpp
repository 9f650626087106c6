// Requests as a trace recorded them, whatever the format of its file. Read with limits: files come from anywhere.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::experiment {

struct InputLimits {
    uint64_t file_bytes = 1ull << 30, line_bytes = 4ull << 20;
    uint32_t rows = 4'000'000;
};

enum class TraceFormat { kAuto, kAzure, kVidur, kSplitwise, kBurstGpt, kMooncake, kTokenIds, kShareGpt, kPatchbay };
std::span<const std::pair<const char*, TraceFormat>> trace_formats(); // names as in the file of an experiment
const char* name_of(TraceFormat);

enum class PromptContent : uint8_t {
    kRandom, // of its length
    kBlocks, // of named blocks; equal names are equal tokens
    kPrefix, // a named prefix, then random
    kIds,    // of given tokens
    kText,   // of a text that is not yet tokenised
};

struct TraceRow {
    uint64_t at_ns = 0; // since the first row; of one that follows: of the row above
    uint32_t prompt_tokens = 0, output_tokens = 0;
    uint32_t max_tokens = 0; // as declared; 0: the length of the output
    uint32_t label = 0;      // index into Trace::labels
    uint32_t tenant = 0;
    int32_t priority = 0;
    uint32_t session = 0; // from 1; 0: none
    PromptContent content = PromptContent::kRandom;
    bool follows = false;    // comes when the row of its session before it is done, and continues its prompt
    bool has_answer = false; // kIds: the output's ids follow the prompt's; kText: the answer is the next text
    uint64_t first = 0;      // of its blocks, ids or texts; of kPrefix the number of the prefix
    uint32_t count = 0;      // of them; of kPrefix the tokens
    double think_s = std::numeric_limits<double>::quiet_NaN(); // of one that follows; NaN: not given
};

struct Trace {
    TraceFormat format = TraceFormat::kAuto;
    bool timed = true; // the rows have times
    std::vector<TraceRow> rows;
    std::vector<uint64_t> blocks;
    uint32_t block_tokens = 0;
    std::vector<text::TokenId> ids;
    std::vector<std::string> texts;
    std::vector<std::string> labels{""};
    uint64_t left_out = 0; // rows that hold no request: failures, conversations without an answer
};

struct TraceOptions {
    TraceFormat format = TraceFormat::kAuto;
    uint32_t skip = 0;           // rows left out at the start
    double from_s = 0, until_s = 0; // only rows of this time, since the file's first; until 0: all
    uint32_t block_tokens = 512; // of Mooncake's
    double length_scale = 1;     // lengths are multiplied by it, blocks too
};

// Errors name the file and the line (of ShareGPT: the conversation), what is there and what is expected.
Result<Trace> read_trace(const std::filesystem::path&, const TraceOptions& = {}, const InputLimits& = {});
Result<Trace> parse_trace(std::string_view text, const std::string& name, const TraceOptions& = {},
                          const InputLimits& = {});

}  // namespace patchbay::experiment
