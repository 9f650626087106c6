// What the readers of all formats share: the rows that are taken, names as numbers, where a fault is.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "base/refusals.hpp"
#include "experiment/traces/row_choice.hpp"
#include "experiment/traces/trace.hpp"

namespace patchbay::experiment {

inline constexpr uint32_t kMaxTokensOfRow = 1 << 26;

class TraceBuilder {
  public:
    TraceBuilder(std::string name, const TraceOptions&, const InputLimits&, TraceFormat);

    void at_line(size_t line) { place_ = ":" + std::to_string(line); }
    void at_conversation(size_t number) { place_ = ": conversation " + std::to_string(number); }
    Failure fault(const std::string& what) const { return invalid(name_ + place_ + ": " + what); }

    // Whether the row of this time is taken; fails where times go back, or rows are too many. Ask once a row.
    Result<bool> wanted(int64_t time_ns);
    Result<bool> wanted_without_time(); // of formats without times, and of rows that follow
    void add(TraceRow); // after `wanted`, which gave it its time

    uint32_t label(std::string_view name);   // of a row
    uint32_t session(std::string_view name); // likewise
    uint64_t prefix(std::string_view name);
    // Whether a row of this session was taken; one can follow only then.
    bool has_session(std::string_view name) const { return sessions_.contains(name); }

    Trace& trace() { return trace_; }
    const TraceOptions& options() const { return options_; }
    const InputLimits& limits() const { return limits_; }
    const std::string& name() const { return name_; }
    Result<Trace> finish(); // fails without rows

  private:
    Result<bool> if_there_is_room(bool taken) const;

    std::string name_, place_;
    TraceOptions options_;
    InputLimits limits_;
    Trace trace_;
    RowChoice choice_;
    int64_t first_ns_ = 0, now_ns_ = 0; // of the first row of the trace; since then
    std::map<std::string, uint32_t, std::less<>> labels_, sessions_;
    std::map<std::string, uint64_t, std::less<>> prefixes_;
};

Result<Trace> parse_csv_trace(std::string_view text, const std::string& name, const TraceOptions&, const InputLimits&);
// Mooncake, token ids, Patchbay's own.
Result<Trace> parse_jsonl_trace(std::string_view text, const std::string& name, const TraceOptions&,
                                const InputLimits&);
// A JSON list of conversations, or one a line.
Result<Trace> parse_sharegpt(std::string_view text, const std::string& name, const TraceOptions&, const InputLimits&);

}  // namespace patchbay::experiment
