// The commit that the program was built from. Found out when it is built (cmake/BuiltFrom.cmake), into a file of its
// own, so that nothing else is compiled for another commit.
#pragma once
#include "experiment/results_store.hpp"

namespace patchbay::cli {

experiment::BuiltFrom built_from();

}  // namespace patchbay::cli
