// What a byte-level tokenizer of a GGUF file does before its merges: the file only names it (tokenizer.ggml.pre), by a
// name of llama.cpp's. For gguf_tokenizer.cpp.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.hpp"

namespace patchbay::weights {

struct GgufPreTokenizer { // as tokenizer.json would say it
    nlohmann::json normalizer, pre_tokenizer;
    bool whole_words = false; // a word that is a token is not merged from its parts
    bool begins = false;      // with BOS, where the file does not say it
};

// An error says why the name is not read, and which near one is.
Result<GgufPreTokenizer> gguf_pre_tokenizer(const std::string& name);

}  // namespace patchbay::weights
