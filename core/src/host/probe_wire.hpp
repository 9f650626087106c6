// How the probe's child reports what it does: a JSON object a line, on a descriptor of its own. The parent
// believes none of it without checking, since the library under test runs in the writer.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "host/probe.hpp"

namespace patchbay::host {

inline constexpr int kVerdictFd = 3, kEndingFd = 4; // in the child

// How the process that ran the library ended, as its supervisor (probe/supervisor.hpp) says it.
struct ProbeEnding {
    enum class How {
        kExited, // value: the exit code
        kSignal, // its number
        kTimeout, // seconds
        kMemory, // bytes that it may use
        kTasks,  // processes and threads that it may start
        kLost    // nothing is known: the supervisor was killed, or could not begin
    };
    How how = How::kLost;
    uint64_t value = 0;
};
std::string ending_line(const ProbeEnding&);
ProbeEnding read_ending(std::string_view line); // kLost where it is none
std::string describe(const ProbeEnding&);       // "ended by signal 6 (Aborted)"

class ProbeWriter {
  public:
    explicit ProbeWriter(int fd) : fd_(fd) {}
    void begin(const std::string& component, const std::string& check); // from here on, this check is to blame
    void end(CheckOutcome, const std::string& reason);
    // The whole of one check at once.
    void line(const CheckLine&);
    void done(const Manifest*); // null: refused

  private:
    void write(const std::string& text);
    int fd_;
};

struct ProbeTranscript {
    std::vector<CheckLine> lines;
    std::optional<CheckLine> open; // begun, not ended
    bool done = false;
    std::optional<Manifest> manifest;
    std::string fault; // what cannot be read
};

ProbeTranscript read_transcript(std::string_view bytes, const std::filesystem::path& library);

}  // namespace patchbay::host
