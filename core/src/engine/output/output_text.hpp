// How far one output's text has come. Kept with the sequence, changed by Outputs; beams begin with copies of its parts.
#pragma once
#include "engine/output/stop_matcher.hpp"
#include "text/detokenizer.hpp"

namespace patchbay::engine {

struct OutputText {
    text::Detokenizer detokenizer;
    StopMatcher stops;
};

}  // namespace patchbay::engine
