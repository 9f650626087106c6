// Any bytes as a trace: refused with a reason, or read into rows that keep what traces/trace.hpp promises.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "experiment/traces/trace.hpp"

inline void read_any_trace(const uint8_t* data, size_t size, patchbay::experiment::TraceFormat format) {
    using namespace patchbay::experiment;
    const TraceOptions options{.format = format,
                               .skip = size % 7 == 6 ? 1u : 0u,
                               .block_tokens = size % 3 ? 512u : 16u,
                               .length_scale = size % 5 == 4 ? 0.1 : 1};
    const auto trace = parse_trace({reinterpret_cast<const char*>(data), size}, "fuzz", options,
                                   {.file_bytes = 1 << 20, .line_bytes = 1 << 14, .rows = 1000});
    if (!trace) {
        if (trace.error().empty()) __builtin_trap();
        return;
    }
    if (trace->rows.empty() || trace->rows.size() > 1000) __builtin_trap();
    uint64_t last = 0;
    for (const TraceRow& r : trace->rows) {
        const uint64_t end = r.first + r.count;
        if (r.at_ns < last || r.label >= trace->labels.size() || (r.follows && r.session == 0)) __builtin_trap();
        if (r.content == PromptContent::kIds &&
            end + (r.has_answer && format != TraceFormat::kShareGpt ? 1 : 0) > trace->ids.size())
            __builtin_trap();
        if (r.content == PromptContent::kBlocks && end > trace->blocks.size()) __builtin_trap();
        if (r.content == PromptContent::kText && end + r.has_answer > trace->texts.size()) __builtin_trap();
        if (r.content == PromptContent::kPrefix && r.count > r.prompt_tokens) __builtin_trap();
        if (r.max_tokens > 0 && r.max_tokens < r.output_tokens) __builtin_trap();
        last = r.at_ns;
    }
}
