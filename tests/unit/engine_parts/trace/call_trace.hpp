// The calls of functions that are compiled with -finstrument-functions, in order.
#pragma once
#include <string>
#include <vector>

namespace patchbay::testing {

void begin_trace();
// Of all threads since begin_trace(): names without arguments, "patchbay::engine::Intake::add"; each once, where it was
// called first.
std::vector<std::string> end_trace();

}  // namespace patchbay::testing
