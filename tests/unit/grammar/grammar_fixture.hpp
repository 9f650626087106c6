// Grammars for tests: over single bytes, over a small vocabulary with longer tokens, and over real ones.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grammar/compile.hpp"

namespace patchbay::grammar::testing {

StructuredOutputs json(std::string schema);
StructuredOutputs regex(std::string pattern);
StructuredOutputs ebnf(std::string text);

std::shared_ptr<const Vocabulary> bytes_only(); // token b is the byte b
std::shared_ptr<const Vocabulary> small();      // the bytes, and some 200 pieces of JSON and prose
std::optional<std::filesystem::path> real_tokenizer(const std::string& name); // where the test data is

std::shared_ptr<Grammar> compiled(const StructuredOutputs&, const std::shared_ptr<const Vocabulary>& = bytes_only());
std::string refusal(const StructuredOutputs&); // empty: it compiles

bool accepts(const std::shared_ptr<Grammar>& over_bytes, std::string_view text);
bool accepts(const StructuredOutputs&, std::string_view text);

// The mask, found by trying each token byte by byte.
std::vector<uint32_t> brute_force(const Matcher&, const Vocabulary&);
std::vector<uint32_t> allowed(Matcher&, const Vocabulary&);
bool has(const std::vector<uint32_t>& mask, TokenId);
std::vector<TokenId> ids_of(const std::vector<uint32_t>& mask);

// A text of tokens drawn among the allowed ones, and whether it ended within `max_tokens`. After half of them the
// token is the one after which the text can end soonest, of a few that are tried.
struct Drawn {
    std::vector<TokenId> tokens;
    std::string text;
    bool complete;
};
Drawn draw(const std::shared_ptr<Grammar>&, uint64_t seed, size_t max_tokens);

}  // namespace patchbay::grammar::testing
