#include "engine/sampling/token_rules.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/refusals.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sampling_params.hpp"
#include "engine/request/sequence.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::engine {
namespace {

constexpr size_t kMaxWords = 1024, kMaxBytes = 256; // bad words of a request; of each

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

// A word as a text begins with it, and as it stands after a space, unless that is a token of the space and the same.
Result<std::vector<std::vector<TokenId>>> spellings(const text::Tokenizer& tokenizer, const std::string& word) {
    const size_t begin = word.find_first_not_of(" \t\n\v\f\r");
    if (begin == std::string::npos) return invalid("bad_words: a word that is empty or blank");
    if (word.size() > kMaxBytes)
        return invalid("bad_words: a word of " + std::to_string(word.size()) + " bytes, expected at most " +
                       std::to_string(kMaxBytes));
    const std::string bare = word.substr(begin);
    std::vector<std::vector<TokenId>> out = {tokenizer.encode_inside(bare)};
    if (out[0].empty()) return invalid("bad_words: '" + bare + "' has no tokens");
    std::vector<TokenId> after = tokenizer.encode_inside(" " + bare);
    const bool ends_alike = after.size() >= out[0].size() &&
                            std::equal(out[0].rbegin(), out[0].rend(), after.rbegin());
    if (!after.empty() && !ends_alike) out.push_back(std::move(after));
    return out;
}

uint64_t next_number() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
}

// Whether the output ends in all of the word but its last token.
bool ends_before_last(std::span<const TokenId> output, const std::vector<TokenId>& word) {
    const size_t n = word.size() - 1;
    return output.size() >= n && std::equal(word.begin(), word.end() - 1, output.end() - static_cast<ptrdiff_t>(n));
}

}  // namespace

TokenRules::TokenRules(std::shared_ptr<const text::Tokenizer> tokenizer, const std::vector<TokenId>& eos,
                       uint32_t vocab_size)
    : number_(next_number()), tokenizer_(std::move(tokenizer)), eos_(eos), vocab_size_(vocab_size) {}

Result<std::shared_ptr<const TokenRules::Rules>> TokenRules::read(const SamplingParams& p,
                                                                  std::shared_ptr<const Rules> known) const {
    if (known && known->reader == number_) return known;
    PB_TRY(Rules rules, read_all(p));
    rules.reader = number_;
    return std::make_shared<const Rules>(std::move(rules));
}

Result<TokenRules::Rules> TokenRules::read_all(const SamplingParams& p) const {
    const uint32_t vocab = vocab_size_;
    const auto in_vocabulary = [&](TokenId t) { return t >= 0 && static_cast<uint32_t>(t) < vocab; };
    Rules out;
    if (p.allowed_token_ids) {
        if (p.allowed_token_ids->empty()) return invalid("allowed_token_ids is empty, expected at least one token");
        out.allowed.assign((vocab + 31) / 32, 0);
        for (const TokenId t : *p.allowed_token_ids) {
            if (!in_vocabulary(t))
                return invalid("allowed_token_ids has " + std::to_string(t) + ", expected 0 to " +
                               std::to_string(vocab - 1));
            out.allowed[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
        }
    }
    if (!p.bad_words.empty() && !tokenizer_) return fail(StatusCode::kUnsupported, "bad_words need a tokenizer");
    if (p.bad_words.size() > kMaxWords)
        return invalid(std::to_string(p.bad_words.size()) + " bad_words, expected at most " +
                       std::to_string(kMaxWords));
    for (const std::string& word : p.bad_words) {
        PB_TRY(auto forms, spellings(*tokenizer_, word));
        for (std::vector<TokenId>& tokens : forms) {
            if (!std::ranges::all_of(tokens, in_vocabulary))
                return invalid("bad_words: '" + word + "' has a token that the model does not know");
            if (tokens.size() > 1) {
                out.bad_words.push_back(std::move(tokens));
                continue;
            }
            if (out.allowed.empty()) out.allowed = all_tokens(vocab);
            forbid(out.allowed, tokens[0]);
        }
    }
    if (!out.allowed.empty() && is_empty(out.allowed)) return invalid("bad_words forbid all of allowed_token_ids");
    if (p.min_tokens == 0) return out;
    out.before_stop = out.allowed.empty() ? all_tokens(vocab) : out.allowed; // tokens that would stop are not sampled
    const auto forbid_stop = [&](TokenId t) {
        if (in_vocabulary(t)) forbid(out.before_stop, t);
    };
    if (!p.ignore_eos) std::ranges::for_each(eos_, forbid_stop);
    std::ranges::for_each(p.stop_token_ids, forbid_stop);
    if (is_empty(out.before_stop)) return invalid("min_tokens forbids all allowed tokens, which stop the output");
    return out;
}

void TokenRules::add(const Sequence& s, std::shared_ptr<const Rules> rules) {
    if (!rules->empty()) records_.add(s.id, std::move(rules));
}

void TokenRules::erase(const Sequence& s) { records_.erase(s.id); }

void TokenRules::inherit(const Sequence& from, const Sequence& to) {
    if (const auto* r = records_.find(from.id)) records_.add(to.id, std::shared_ptr<const Rules>(*r));
}

const uint32_t* TokenRules::mask(const Sequence& s, uint32_t made) const {
    const auto* const r = records_.find(s.id);
    if (!r) return nullptr;
    const Rules& rules = **r;
    const bool may_stop = made >= s.request->sampling.min_tokens || rules.before_stop.empty();
    const MaskWords& mask = may_stop ? rules.allowed : rules.before_stop;
    return mask.empty() ? nullptr : mask.data();
}

bool TokenRules::applies(const Sequence& s) const {
    const auto* const r = records_.find(s.id);
    return r && !(*r)->bad_words.empty();
}

void TokenRules::mask(const PathRows& path, MaskWords& memory, Unsatisfiable& unsatisfiable) {
    const Sequence& s = path.sequence;
    const Rules& rules = **records_.find(s.id);
    const size_t words = (vocab_size_ + 31) / 32;
    memory.resize(path.rows.size() * words);
    for (uint32_t j = 0; j < path.rows.size(); ++j) {
        const std::span<const TokenId> output(path.tokens.data() + s.prompt_count,
                                              path.confirmed - s.prompt_count + path.after + j);
        pb_sample_row& row = path.rows[j];
        MaskWords mask;
        for (const std::vector<TokenId>& word : rules.bad_words) {
            if (!ends_before_last(output, word)) continue;
            if (mask.empty())
                mask = row.allowed ? MaskWords(row.allowed, row.allowed + words) : all_tokens(vocab_size_);
            forbid(mask, word.back());
        }
        if (mask.empty()) continue;
        const std::span<uint32_t> kept = std::span(memory).subspan(j * words, words);
        std::ranges::copy(mask, kept.begin());
        row.allowed = kept.data();
        if (!is_empty(kept)) continue;
        unsatisfiable.emplace_back(path.first_row + j, "bad_words forbid every token that is allowed here");
        row.allowed = nullptr;
    }
}

}  // namespace patchbay::engine
