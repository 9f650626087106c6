#include "engine/trace/step_files.hpp"

#include <array>
#include <filesystem>
#include <utility>

#include "base/refusals.hpp"
#include "engine/loop/step_observer.hpp"
#include "engine/trace/decision_log.hpp"
#include "engine/trace/kv_event_feed.hpp"
#include "engine/trace/kv_event_file.hpp"
#include "engine/trace/step_file_paths.hpp"
#include "engine/trace/step_trace.hpp"
#include "engine/trace/trace_of.hpp"

namespace patchbay::engine {

Result<> check(const StepFilePaths& paths) {
    const auto is_at = [](const std::string& path) { // however it is spelt
        std::error_code error;
        const auto found = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
        return error ? std::filesystem::path(path) : found;
    };
    struct Named {
        const char* name;
        const std::string& path;
    };
    const std::array<Named, 3> all = {{{"the trace", paths.trace},
                                       {"the log of decisions", paths.decisions},
                                       {"the KV events", paths.kv_events}}};
    for (size_t i = 1; i < all.size(); ++i)
        for (size_t before = 0; before < i; ++before) {
            const Named &a = all[before], &b = all[i];
            if (a.path.empty() || b.path.empty() || (a.path != b.path && is_at(a.path) != is_at(b.path))) continue;
            return invalid(std::string(a.name) + " and " + b.name + " have the same file, '" + b.path +
                           "', expected one for each");
        }
    return {};
}

StepFiles::StepFiles(StepObservers& observers, KvEventFeed& kv_events, const StepSources& sources)
    : observers_(observers), kv_events_(kv_events), sources_(sources) {}
StepFiles::~StepFiles() = default;

void StepFiles::start(std::unique_ptr<TraceFile> file) {
    trace_ = std::make_unique<StepTrace>(std::move(file), sources_.sequences);
    observers_.add(*trace_);
}

void StepFiles::start(std::unique_ptr<DecisionFile> file) {
    decisions_ = std::make_unique<DecisionLog>(std::move(file), sources_);
    observers_.add(*decisions_);
}

Result<> StepFiles::write(const StepFilePaths& paths, const TraceOf& of) {
    PB_CHECK(check(paths));
    if (!paths.trace.empty()) {
        if (trace_) return fail(StatusCode::kInvalid, "a trace is being written already");
        PB_TRY(auto file, TraceFile::create(paths.trace, of));
        start(std::move(file));
    }
    if (!paths.decisions.empty()) {
        if (decisions_) return fail(StatusCode::kInvalid, "a log of decisions is being written already");
        PB_TRY(auto file, DecisionFile::create(paths.decisions, of));
        start(std::move(file));
    }
    if (!paths.kv_events.empty()) {
        if (kv_events_.has_file()) return fail(StatusCode::kInvalid, "KV events are being written already");
        PB_TRY(auto file, KvEventFile::create(paths.kv_events, of));
        kv_events_.write_to(std::move(file));
    }
    return {};
}

void StepFiles::go_on_with(StepFiles& other) {
    if (other.trace_ && !trace_) {
        other.observers_.remove(*other.trace_);
        start(std::exchange(other.trace_, nullptr)->give_file());
    }
    if (other.decisions_ && !decisions_) {
        other.observers_.remove(*other.decisions_);
        start(std::exchange(other.decisions_, nullptr)->give_file());
    }
    if (other.kv_events_.has_file() && !kv_events_.has_file()) kv_events_.go_on_with(other.kv_events_);
}

Result<> StepFiles::close() {
    Result<> closed;
    const auto note = [&closed](Result<> one) {
        if (closed) closed = std::move(one);
    };
    if (trace_) {
        observers_.remove(*trace_);
        note(std::exchange(trace_, nullptr)->close());
    }
    if (decisions_) {
        observers_.remove(*decisions_);
        note(std::exchange(decisions_, nullptr)->close());
    }
    if (const auto file = kv_events_.give_file()) note(file->close());
    return closed;
}

}  // namespace patchbay::engine
