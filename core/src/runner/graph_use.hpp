// Whether a forward pass was a graph's replay, and if not, why.
#pragma once
#include <cstdint>
#include <string_view>

namespace patchbay::runner {

enum class GraphMiss { kNone, kDevice, kDisabled, kUnsupported, kMixedBatch, kTooLarge, kNotCaptured, kHiddenStates };
std::string_view name_of(GraphMiss); // "" of kNone: it was replayed

struct GraphUse { // of one forward pass
    GraphMiss miss = GraphMiss::kDevice; // kNone: it was replayed
    uint32_t size = 0;                   // tokens of the graph; 0: none was replayed
    uint32_t padded_tokens = 0;          // computed for no sequence
    uint64_t capture_ns = 0;             // captured after it
};

}  // namespace patchbay::runner
