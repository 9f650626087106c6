// The routes that answer from the served model alone: its names, and text as tokens and back.
#pragma once
#include <vector>

#include "serve/model_gate.hpp"
#include "serve/routes.hpp"

namespace patchbay::serve {

std::vector<Route> model_routes(const ModelGate&, const Routes&); // which outlive the requests

}  // namespace patchbay::serve
