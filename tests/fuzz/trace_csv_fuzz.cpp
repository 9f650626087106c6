// Untrusted traces in CSV: Azure's, Vidur's, Splitwise's, BurstGPT's.
#include "read_any_trace.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using patchbay::experiment::TraceFormat;
    for (const auto format :
         {TraceFormat::kAzure, TraceFormat::kVidur, TraceFormat::kSplitwise, TraceFormat::kBurstGpt})
        read_any_trace(data, size, format);
    return 0;
}
