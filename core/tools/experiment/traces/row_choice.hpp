// Which rows of a trace's file are taken: after `skip`, and within `from_s` and `until_s` of the file's first.
#pragma once
#include <cstdint>
#include <optional>

#include "experiment/traces/trace.hpp"

namespace patchbay::experiment {

class RowChoice { // asked once a row, in the order of the file
  public:
    explicit RowChoice(const TraceOptions& o) : skip_(o.skip), from_s_(o.from_s), until_s_(o.until_s) {}

    bool is_in_order(int64_t time_ns) const { return !last_ns_ || time_ns >= *last_ns_; }
    bool takes(int64_t time_ns);                    // of a row that is in order
    bool takes_without_time() { return seen_++ >= skip_; } // of formats without times, and of rows that follow
    bool saw_any() const { return seen_ > 0 || last_ns_; }

  private:
    uint32_t skip_;
    double from_s_, until_s_;
    uint64_t seen_ = 0; // rows within the time that is wanted
    std::optional<int64_t> first_ns_, last_ns_;
};

}  // namespace patchbay::experiment
