// What a probed library's process reports: it may write anything on the descriptor. A manifest comes only with a report
// that ends and can be read, and how a process ended always has words.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "host/probe_wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace patchbay::host;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const ProbeTranscript transcript = read_transcript(text, "/tmp/fuzz.so");
    if (transcript.manifest && !(transcript.done && transcript.fault.empty())) __builtin_trap();
    if (describe(read_ending(text)).empty()) __builtin_trap();
    return 0;
}
