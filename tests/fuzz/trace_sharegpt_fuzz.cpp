// Untrusted conversations, as a JSON list or one a line.
#include "read_any_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    read_any_trace(data, size, patchbay::experiment::TraceFormat::kShareGpt);
    return 0;
}
