// The text of a scenario's tokens, for stop strings and grammars: the file gives it for some ids, the others have none.
// Used by scenario/player.cpp.
#pragma once
#include <memory>

#include "scenario/scenario.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::scenario {

std::shared_ptr<const text::Tokenizer> scripted_vocabulary(const Vocabulary&);

}  // namespace patchbay::scenario
