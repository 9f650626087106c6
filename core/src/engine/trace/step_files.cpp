#include "engine/trace/step_files.hpp"

#include <filesystem>
#include <utility>

#include "base/refusals.hpp"
#include "engine/loop/step_observer.hpp"
#include "engine/trace/decision_log.hpp"
#include "engine/trace/step_file_paths.hpp"
#include "engine/trace/step_trace.hpp"
#include "engine/trace/trace_of.hpp"

namespace patchbay::engine {

Result<> check(const StepFilePaths& paths) {
    if (paths.trace.empty() || paths.decisions.empty()) return {};
    const auto is_at = [](const std::string& path) { // however it is spelt
        std::error_code error;
        const auto found = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
        return error ? std::filesystem::path(path) : found;
    };
    if (paths.trace != paths.decisions && is_at(paths.trace) != is_at(paths.decisions)) return {};
    return invalid("the trace and the log of decisions have the same file, '" + paths.decisions +
                   "', expected one for each");
}

StepFiles::StepFiles(StepObservers& observers, const StepSources& sources)
    : observers_(observers), sources_(sources) {}
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
}

Result<> StepFiles::close() {
    Result<> closed;
    if (trace_) {
        observers_.remove(*trace_);
        closed = std::exchange(trace_, nullptr)->close();
    }
    if (decisions_) {
        observers_.remove(*decisions_);
        Result<> other = std::exchange(decisions_, nullptr)->close();
        if (closed) closed = std::move(other);
    }
    return closed;
}

}  // namespace patchbay::engine
