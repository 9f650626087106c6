// Flags of the rarer sampling stages, by llama.cpp's names. Used by `generate`.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/request.hpp"

namespace patchbay::cli {

// Both live as long as the app.
void add_stage_flags(CLI::App&, engine::SamplingParams&, std::vector<std::string>& dry_breakers);
// Tokens whose text has one of these texts in it.
std::vector<text::TokenId> tokens_with(const text::Tokenizer&, const std::vector<std::string>& texts);

}  // namespace patchbay::cli
