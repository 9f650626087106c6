// Paths of the checkout and its build. They are compiled in one place only, so that a compiler cache serves every
// checkout.
#pragma once

namespace patchbay {

extern const char* const kSourceDir;
extern const char* const kBuildDir;

}  // namespace patchbay
