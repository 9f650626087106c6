// A file in the Trace Event Format (a JSON array), which ui.perfetto.dev and chrome://tracing show. Events lie on
// tracks, tracks belong to processes; times are in nanoseconds from any one start. Not for several threads.
#pragma once
#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/trace/trace_of.hpp"

namespace patchbay::engine {

class TraceFile {
  public:
    static constexpr uint32_t kProcesses = 2; // that an engine has at most; from 1

    struct Track {
        uint32_t process;
        uint64_t number;
    };

    static Result<std::unique_ptr<TraceFile>> create(const std::string& path, TraceOf = {});
    ~TraceFile();
    TraceFile(const TraceFile&) = delete;
    TraceFile& operator=(const TraceFile&) = delete;

    void name_process(uint32_t process, std::string_view name);
    void name_track(Track, std::string_view name);
    // args: an object of what is shown for the event, or null.
    void span(Track, std::string_view name, uint64_t begin_ns, uint64_t end_ns, const nlohmann::ordered_json& args);
    void mark(Track, std::string_view name, uint64_t at_ns, const nlohmann::ordered_json& args);
    void counter(uint32_t process, std::string_view name, uint64_t at_ns, const nlohmann::ordered_json& values);

    void flush(); // what was written so far is in the file if the process ends here
    // Ends the array. Whether all of it is on the disk; a file without its end is read, too.
    Result<> close();

  private:
    TraceFile(std::string path, std::ofstream out, TraceOf);
    void write(const nlohmann::ordered_json& event);
    nlohmann::ordered_json event(const char* phase, uint32_t process, uint64_t track, std::string_view name) const;
    double time_us(uint64_t ns) const;

    const std::string path_;
    const TraceOf of_;
    std::ofstream out_;
    bool first_ = true;
};

}  // namespace patchbay::engine
