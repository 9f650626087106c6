// Whether a checkpoint stores its own lm head, regardless of its configuration. Used when a model is chosen.
#pragma once
#include <string>

#include "weights/loader.hpp"

namespace patchbay::weights {

// Sets tie_word_embeddings, of text_config where there is one, to false if the checkpoint stores an lm head that
// differs from the token table: it then computes the logits, as in transformers 5. Returns a message about that;
// empty: nothing to report.
Result<std::string> settle_head(FlatConfig&, const WeightSource&);

}  // namespace patchbay::weights
