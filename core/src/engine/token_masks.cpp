// Tokens that a request forbids by itself: all but allowed_token_ids, the ends of bad words, and what stops the output
// before min_tokens. Each row is masked as if the drafts before it were accepted.
#include <algorithm>

#include "engine/state.hpp"

namespace patchbay::engine {
namespace {

constexpr size_t kMostWords = 1024, kMostBytes = 256; // bad words of a request; of each

void forbid(std::vector<uint32_t>& mask, TokenId token) {
    mask[static_cast<size_t>(token) / 32] &= ~(1u << (token % 32));
}

bool is_empty(std::span<const uint32_t> mask) {
    return std::ranges::all_of(mask, [](uint32_t bits) { return bits == 0; });
}

std::vector<uint32_t> all_tokens(uint32_t vocab) {
    std::vector<uint32_t> mask((vocab + 31) / 32, ~0u);
    if (vocab % 32 != 0) mask.back() = (1u << vocab % 32) - 1;
    return mask;
}

// A word as a text begins with it, and as it stands behind a space, unless that is a token of the space and the same.
Result<std::vector<std::vector<TokenId>>> spellings(const text::Tokenizer& tokenizer, const std::string& word) {
    const size_t begin = word.find_first_not_of(" \t\n\v\f\r");
    if (begin == std::string::npos) return fail("bad_words: a word that is empty or blank");
    if (word.size() > kMostBytes)
        return fail("bad_words: a word of " + std::to_string(word.size()) + " bytes, expected at most " +
                    std::to_string(kMostBytes));
    const std::string bare = word.substr(begin);
    std::vector<std::vector<TokenId>> out = {tokenizer.encode_inside(bare)};
    if (out[0].empty()) return fail("bad_words: '" + bare + "' has no tokens");
    std::vector<TokenId> behind = tokenizer.encode_inside(" " + bare);
    const bool ends_alike = behind.size() >= out[0].size() &&
                            std::equal(out[0].rbegin(), out[0].rend(), behind.rbegin());
    if (!behind.empty() && !ends_alike) out.push_back(std::move(behind));
    return out;
}

// Whether the output ends in all of the word but its last token.
bool ends_before_last(std::span<const TokenId> output, const std::vector<TokenId>& word) {
    const size_t n = word.size() - 1;
    return output.size() >= n && std::equal(word.begin(), word.end() - 1, output.end() - static_cast<ptrdiff_t>(n));
}

}  // namespace

Result<TokenRules> Engine::State::token_rules(const SamplingParams& p) const {
    const uint32_t vocab = facts.vocab_size;
    const auto in_vocabulary = [&](TokenId t) { return t >= 0 && static_cast<uint32_t>(t) < vocab; };
    TokenRules out;
    if (p.allowed_token_ids) {
        if (p.allowed_token_ids->empty()) return fail("allowed_token_ids is empty, expected at least one token");
        out.allowed.assign((vocab + 31) / 32, 0);
        for (const TokenId t : *p.allowed_token_ids) {
            if (!in_vocabulary(t))
                return fail("allowed_token_ids has " + std::to_string(t) + ", expected 0 to " +
                            std::to_string(vocab - 1));
            out.allowed[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
        }
    }
    if (!p.bad_words.empty() && !tokenizer) return fail(StatusCode::kUnsupported, "bad_words need a tokenizer");
    if (p.bad_words.size() > kMostWords)
        return fail(std::to_string(p.bad_words.size()) + " bad_words, expected at most " + std::to_string(kMostWords));
    for (const std::string& word : p.bad_words) {
        PB_TRY(auto forms, spellings(*tokenizer, word));
        for (std::vector<TokenId>& tokens : forms) {
            if (!std::ranges::all_of(tokens, in_vocabulary))
                return fail("bad_words: '" + word + "' has a token that the model does not know");
            if (tokens.size() > 1) {
                out.bad_words.push_back(std::move(tokens));
                continue;
            }
            if (out.allowed.empty()) out.allowed = all_tokens(vocab);
            forbid(out.allowed, tokens[0]);
        }
    }
    if (!out.allowed.empty() && is_empty(out.allowed)) return fail("bad_words forbid all of allowed_token_ids");
    if (p.min_tokens == 0) return out;
    out.no_stop = out.allowed.empty() ? all_tokens(vocab) : out.allowed; // tokens that would stop are not sampled
    const auto forbid_stop = [&](TokenId t) {
        if (in_vocabulary(t)) forbid(out.no_stop, t);
    };
    if (!p.ignore_eos) std::ranges::for_each(eos, forbid_stop);
    std::ranges::for_each(p.stop_token_ids, forbid_stop);
    if (is_empty(out.no_stop)) return fail("min_tokens forbids all allowed tokens, which stop the output");
    return out;
}

void Engine::State::mask_rows(const PathRows& path) {
    if (!path.sequence.rules.bad_words.empty()) forbid_words(path);
    if (path.sequence.matcher) restrict_rows(path);
}

void Engine::State::forbid_words(const PathRows& path) {
    Sequence& s = path.sequence;
    const size_t words = (facts.vocab_size + 31) / 32;
    path.word_masks.resize(path.rows * words);
    for (uint32_t j = 0; j < path.rows; ++j) {
        const std::span<const TokenId> output(path.tokens.data() + s.prompt_count,
                                              path.confirmed - s.prompt_count + path.behind + j);
        pb_sample_row& row = sample_rows[path.first_row + j];
        std::vector<uint32_t> mask;
        for (const std::vector<TokenId>& word : s.rules.bad_words) {
            if (!ends_before_last(output, word)) continue;
            if (mask.empty()) mask = row.allowed ? std::vector<uint32_t>(row.allowed, row.allowed + words)
                                                 : all_tokens(facts.vocab_size);
            forbid(mask, word.back());
        }
        if (mask.empty()) continue;
        const std::span<uint32_t> kept = std::span(path.word_masks).subspan(j * words, words);
        std::ranges::copy(mask, kept.begin());
        row.allowed = kept.data();
        if (!is_empty(kept)) continue;
        get_stuck(s, path.first_row + j, "bad_words forbid every token that is allowed here");
        row.allowed = nullptr;
    }
}

void Engine::State::get_stuck(Sequence& s, size_t row, std::string why) {
    s.stuck.emplace_back(row, std::move(why));
}

bool Engine::State::check_stuck(Sequence& s, size_t row) {
    const auto at = std::ranges::find(s.stuck, row, &std::pair<size_t, std::string>::first);
    if (at == s.stuck.end()) return true;
    finish(s, FinishReason::kError, std::move(at->second));
    return false;
}

}  // namespace patchbay::engine
