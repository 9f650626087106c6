// The phase in which the swaps of a transaction are refused or rolled back because another one of it was.
#pragma once

namespace patchbay::engine {

inline constexpr const char* kTogether = "together";

}  // namespace patchbay::engine
