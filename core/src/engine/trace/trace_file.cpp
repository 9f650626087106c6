#include "engine/trace/trace_file.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/output_file.hpp"

namespace patchbay::engine {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

}  // namespace

Result<std::unique_ptr<TraceFile>> TraceFile::create(const std::string& path, TraceOf of) {
    PB_TRY(std::ofstream out, open_output(path));
    return std::unique_ptr<TraceFile>(new TraceFile(path, std::move(out), std::move(of)));
}

TraceFile::TraceFile(std::string path, std::ofstream out, TraceOf of)
    : path_(std::move(path)), of_(std::move(of)), out_(std::move(out)) {}

TraceFile::~TraceFile() { static_cast<void>(close()); }

Json TraceFile::event(const char* phase, uint32_t process, uint64_t track, std::string_view name) const {
    return {{"ph", phase}, {"pid", process + kProcesses * of_.number}, {"tid", track}, {"name", name}};
}

double TraceFile::time_us(uint64_t ns) const { return microseconds(ns > of_.origin_ns ? ns - of_.origin_ns : 0); }

void TraceFile::write(const Json& event) {
    out_ << (std::exchange(first_, false) ? "[\n" : ",\n")
         << event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void TraceFile::name_process(uint32_t process, std::string_view name) {
    Json e = event("M", process, 0, "process_name");
    e["args"] = {{"name", (of_.name.empty() ? "" : of_.name + ": ") + std::string(name)}};
    write(e);
}

void TraceFile::name_track(Track track, std::string_view name) {
    Json e = event("M", track.process, track.number, "thread_name");
    e["args"] = {{"name", name}};
    write(e);
}

void TraceFile::span(Track track, std::string_view name, uint64_t begin_ns, uint64_t end_ns, const Json& args) {
    Json e = event("X", track.process, track.number, name);
    e["ts"] = time_us(begin_ns);
    e["dur"] = microseconds(end_ns > begin_ns ? end_ns - begin_ns : 0);
    if (!args.is_null()) e["args"] = args;
    write(e);
}

void TraceFile::mark(Track track, std::string_view name, uint64_t at_ns, const Json& args) {
    Json e = event("i", track.process, track.number, name);
    e["ts"] = time_us(at_ns);
    e["s"] = "t";
    if (!args.is_null()) e["args"] = args;
    write(e);
}

void TraceFile::counter(uint32_t process, std::string_view name, uint64_t at_ns, const Json& values) {
    Json e = event("C", process, 0, name);
    e["ts"] = time_us(at_ns);
    e["args"] = values;
    write(e);
}

void TraceFile::flush() { out_.flush(); }

Result<> TraceFile::close() {
    if (!out_.is_open()) return out_ ? Result<>() : cannot_write(path_);
    out_ << (first_ ? "[]\n" : "\n]\n");
    return close_output(out_, path_);
}

}  // namespace patchbay::engine
