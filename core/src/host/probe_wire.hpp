// How the probe's child tells its parent what it does: a JSON object a line, on a descriptor of its own. The parent
// believes none of it without checking, since the library under test runs in the writer.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "host/probe.hpp"

namespace patchbay::host {

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
