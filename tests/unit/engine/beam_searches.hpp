// Beam searches as tests ask for them.
#pragma once
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing {

inline SamplingParams beams(uint32_t width, uint32_t max_tokens) {
    SamplingParams p = greedy(max_tokens);
    p.temperature = 1; // the default
    p.beam_width = p.n = width;
    return p;
}

inline const Output& output(const Harness& h, RequestId id, uint32_t index) {
    return index == 0 ? h.outputs.at(id) : h.others.at({id, index});
}

}  // namespace patchbay::engine::testing
