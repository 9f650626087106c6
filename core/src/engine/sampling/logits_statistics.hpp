// logits_statistics: how sure the model was, of the raw logits that a token is sampled from.
#pragma once
#include <span>

#include "engine/request/output.hpp"

namespace patchbay::engine {

LogitsStatistics statistics_of(std::span<const float> logits); // NaN counts as −infinity

}  // namespace patchbay::engine
