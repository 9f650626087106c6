// Whether a checkpoint stores an lm head of its own, whatever its configuration says. Used where a model is chosen.
#pragma once
#include <string>

#include "weights/loader.hpp"

namespace patchbay::weights {

// Sets tie_word_embeddings to false where the checkpoint stores an lm head that differs from the token table: it then
// makes the logits, as in transformers 5. Returns what is to be said of that; empty: nothing.
Result<std::string> settle_head(FlatConfig&, const WeightSource&);

}  // namespace patchbay::weights
