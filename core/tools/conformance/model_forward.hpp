// The checks of what a model computes, with weights drawn at random: see model_forward.cpp.
#pragma once
#include "conformance/check.hpp"
#include "patchbay/abi/model.h"

namespace patchbay::conformance {

// Each of a component after load_config(), which gave the facts.
Outcome computes(const host::Component&, const pb_model&, const pb_model_facts&);
Outcome is_causal(const host::Component&, const pb_model&, const pb_model_facts&);
Outcome computes_in_pieces(const host::Component&, const pb_model&, const pb_model_facts&);
Outcome keeps_the_residual(const host::Component&, const pb_model&, const pb_model_facts&);
Outcome uses_each_weight(const host::Component&, const pb_model&, const pb_model_facts&);
Outcome gives_hidden_states(const host::Component&, const pb_model&, const pb_model_facts&);

}  // namespace patchbay::conformance
