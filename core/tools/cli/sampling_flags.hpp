// Flags for what a request asks for: engine::SamplingParams, but for max_tokens. Used by `patchbay generate`.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/request/request.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::cli {

struct SamplingFlags {
    engine::SamplingParams sampling;
    std::string schema_file, grammar_file, structural_tag_file;
    std::vector<std::string> dry_breakers; // texts; tokens_with() has their tokens
};

// The flags live as long as the app.
void add_sampling_flags(CLI::App&, const std::shared_ptr<SamplingFlags>&);
Result<engine::SamplingParams> read_sampling(const SamplingFlags&); // with the files that flags name
// Tokens of a model's vocabulary whose text has one of these texts in it.
std::vector<text::TokenId> tokens_with(const text::Tokenizer&, uint32_t vocab_size,
                                       const std::vector<std::string>& texts);
Result<std::string> read_file(const char* flag, const std::string& name); // may be a pipe

}  // namespace patchbay::cli
