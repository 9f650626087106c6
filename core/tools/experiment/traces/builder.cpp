#include "experiment/traces/builder.hpp"

#include "base/refusals.hpp"

namespace patchbay::experiment {

TraceBuilder::TraceBuilder(std::string name, const TraceOptions& options, const InputLimits& limits,
                           TraceFormat format)
    : name_(std::move(name)), options_(options), limits_(limits), choice_(options) {
    trace_.format = format;
}

Result<bool> TraceBuilder::if_there_is_room(bool taken) const {
    if (taken && trace_.rows.size() >= limits_.rows)
        return fault("more than " + std::to_string(limits_.rows) + " rows");
    return taken;
}

Result<bool> TraceBuilder::wanted(int64_t time_ns) {
    if (!choice_.is_in_order(time_ns)) return fault("a time before that of the row above; sort the file by time");
    PB_TRY(const bool is_taken, if_there_is_room(choice_.takes(time_ns)));
    if (!is_taken) return false;
    if (trace_.rows.empty()) first_ns_ = time_ns;
    now_ns_ = time_ns - first_ns_;
    return true;
}

Result<bool> TraceBuilder::wanted_without_time() { return if_there_is_room(choice_.takes_without_time()); }

void TraceBuilder::add(TraceRow row) {
    row.at_ns = static_cast<uint64_t>(now_ns_);
    trace_.rows.push_back(row);
}

uint32_t TraceBuilder::label(std::string_view name) {
    const auto at = labels_.find(name);
    if (at != labels_.end()) return at->second;
    trace_.labels.emplace_back(name);
    return labels_[std::string(name)] = static_cast<uint32_t>(trace_.labels.size() - 1);
}

uint32_t TraceBuilder::session(std::string_view name) {
    const auto at = sessions_.find(name);
    if (at != sessions_.end()) return at->second;
    return sessions_.emplace(name, static_cast<uint32_t>(sessions_.size() + 1)).first->second;
}

uint64_t TraceBuilder::prefix(std::string_view name) {
    const auto at = prefixes_.find(name);
    if (at != prefixes_.end()) return at->second;
    return prefixes_.emplace(name, prefixes_.size()).first->second;
}

Result<Trace> TraceBuilder::finish() {
    if (trace_.rows.empty())
        return invalid(name_ + ": no rows in it" +
                       (choice_.saw_any() ? " after `skip`, `from_s` and `until_s`" : "") +
                       (trace_.left_out > 0 ? "; " + std::to_string(trace_.left_out) + " hold no request" : ""));
    return std::move(trace_);
}

}  // namespace patchbay::experiment
