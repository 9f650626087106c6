// Untrusted traces of a JSON object a line: Mooncake's, those of token ids, Patchbay's own, and what seems to be one.
#include "read_any_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using patchbay::experiment::TraceFormat;
    for (const auto format :
         {TraceFormat::kAuto, TraceFormat::kMooncake, TraceFormat::kTokenIds, TraceFormat::kPatchbay})
        read_any_trace(data, size, format);
    return 0;
}
