// The `model` of tokenizer.json: BPE over bytes or characters, or Unigram.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "base/result.hpp"
#include "text/subword_model.hpp"
#include "text/vocabulary.hpp"

namespace patchbay::text {

enum class Alphabet { kBytes, kCharacters };

// Puts its tokens into the vocabulary, which is empty.
Result<std::unique_ptr<const SubwordModel>> read_model(const nlohmann::json&, Alphabet, Vocabulary&);

}  // namespace patchbay::text
