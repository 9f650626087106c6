#include "paths.hpp"

namespace patchbay {

const char* const kSourceDir = PATCHBAY_SOURCE_DIR;
const char* const kBuildDir = PATCHBAY_BINARY_DIR;

}  // namespace patchbay
