// Small tokenizers for tests: token b is byte b, and each merge makes the next id from 256 on.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer.hpp"

namespace patchbay::text {

using Merges = std::vector<std::pair<std::string, std::string>>; // spelled in the byte alphabet: "Ġ" is a space

nlohmann::json byte_tokenizer(const Merges& merges = {});
nlohmann::json with_added(nlohmann::json tokenizer, nlohmann::json tokens);

std::shared_ptr<const Tokenizer> built(const nlohmann::json& tokenizer,
                                       const nlohmann::json& config = nlohmann::json::object());
std::string refusal(const nlohmann::json& tokenizer, const nlohmann::json& config = nlohmann::json::object());

// The text of each token, for tests of how text is cut: {"Hello", " world"}.
std::vector<std::string> pieces(const Tokenizer&, const std::string& text);

}  // namespace patchbay::text
