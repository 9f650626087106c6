#include "engine/trace/trace_file.hpp"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace patchbay::engine {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

Json event(const char* phase, uint32_t process, uint64_t track, std::string_view name) {
    return {{"ph", phase}, {"pid", process}, {"tid", track}, {"name", name}};
}

}  // namespace

Result<std::unique_ptr<TraceFile>> TraceFile::create(const std::string& path) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    if (!out) return fail(StatusCode::kInvalid, "cannot write " + path + ": " + std::strerror(errno));
    return std::unique_ptr<TraceFile>(new TraceFile(path, std::move(out)));
}

TraceFile::TraceFile(std::string path, std::ofstream out) : path_(std::move(path)), out_(std::move(out)) {}

TraceFile::~TraceFile() { static_cast<void>(close()); }

void TraceFile::write(const Json& event) {
    out_ << (std::exchange(first_, false) ? "[\n" : ",\n")
         << event.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void TraceFile::name_process(uint32_t process, std::string_view name) {
    Json e = event("M", process, 0, "process_name");
    e["args"] = {{"name", name}};
    write(e);
}

void TraceFile::name_track(Track track, std::string_view name) {
    Json e = event("M", track.process, track.number, "thread_name");
    e["args"] = {{"name", name}};
    write(e);
}

void TraceFile::span(Track track, std::string_view name, uint64_t begin_ns, uint64_t end_ns, const Json& args) {
    Json e = event("X", track.process, track.number, name);
    e["ts"] = microseconds(begin_ns);
    e["dur"] = microseconds(end_ns > begin_ns ? end_ns - begin_ns : 0);
    if (!args.is_null()) e["args"] = args;
    write(e);
}

void TraceFile::mark(Track track, std::string_view name, uint64_t at_ns, const Json& args) {
    Json e = event("i", track.process, track.number, name);
    e["ts"] = microseconds(at_ns);
    e["s"] = "t";
    if (!args.is_null()) e["args"] = args;
    write(e);
}

void TraceFile::counter(uint32_t process, std::string_view name, uint64_t at_ns, const Json& values) {
    Json e = event("C", process, 0, name);
    e["ts"] = microseconds(at_ns);
    e["args"] = values;
    write(e);
}

Result<> TraceFile::close() {
    if (out_.is_open()) {
        out_ << (first_ ? "[]\n" : "\n]\n");
        out_.close();
    }
    return out_ ? Result<>() : fail("cannot write " + path_ + ": " + std::strerror(errno));
}

}  // namespace patchbay::engine
