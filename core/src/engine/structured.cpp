// Structured output: the rows of a sequence that has a grammar sample among the tokens that it allows, each row as if
// the drafts before it were accepted. Nothing here changes what other sequences get.
#include <algorithm>

#include "engine/state.hpp"

namespace patchbay::engine {
namespace {

bool contains(const std::vector<TokenId>& tokens, TokenId t) {
    return std::find(tokens.begin(), tokens.end(), t) != tokens.end();
}

}  // namespace

Result<std::shared_ptr<grammar::Grammar>> Engine::State::grammar_of(const grammar::StructuredOutputs& asked) {
    if (!grammars) return fail(StatusCode::kUnsupported, "structured_outputs need a tokenizer");
    auto out = grammars->get(asked);
    if (!out) return prefixed("structured_outputs", out.failure());
    return out;
}

void Engine::State::structure(Sequence& s, std::shared_ptr<grammar::Grammar> g) {
    const SamplingParams& p = s.request.sampling;
    if (!p.ignore_eos) s.end_tokens = eos;
    for (const TokenId t : p.stop_token_ids) { // those that stand for text belong to the text
        const bool known = t >= 0 && static_cast<uint32_t>(t) < facts.vocab_size;
        const bool has_text = known && !g->vocabulary().bytes(t, grammar::Vocabulary::Place::kLater).empty();
        if (known && !has_text && !contains(s.end_tokens, t)) s.end_tokens.push_back(t);
    }
    s.matcher = std::make_unique<grammar::Matcher>(std::move(g));
}

void Engine::State::restrict_rows(const PathRows& path) {
    Sequence& s = path.sequence;
    grammar::Matcher& matcher = *s.matcher;
    const uint64_t start = clock.now_ns();
    const size_t words = (facts.vocab_size + 31) / 32;
    path.masks.resize(path.rows * words);
    uint32_t drafts = 0;
    for (uint32_t depth = 0; depth < path.behind + path.rows; ++depth) {
        if (depth > 0) {
            const auto advanced = matcher.advance(path.tokens[path.confirmed + depth - 1]);
            if (!advanced || !*advanced) break; // the row before will not sample it: what follows is of no matter
            drafts += 1;
        }
        if (depth < path.behind) continue;
        const uint32_t j = depth - path.behind;
        const std::span<uint32_t> mask = std::span(path.masks).subspan(j * words, words);
        const auto made = matcher.allow(mask);
        if (matcher.complete())
            for (const TokenId t : s.end_tokens) mask[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
        pb_sample_row& row = sample_rows[path.first_row + j];
        for (size_t w = 0; row.allowed && w < words; ++w) mask[w] &= row.allowed[w];
        const bool none = std::ranges::all_of(mask, [](uint32_t bits) { return bits == 0; });
        if (!made || none) { // ends the sequence, if it gets there
            get_stuck(s, path.first_row + j,
                      "structured_outputs: " +
                          (made ? "no token of the vocabulary goes on with the structured output" : made.error()));
            row.allowed = nullptr;
            continue;
        }
        row.allowed = mask.data();
        report.grammar_masks += 1;
    }
    matcher.roll_back(drafts);
    report.grammar_mask_ns += clock.now_ns() - start;
}

void Engine::State::cut_drafts(Sequence& s) {
    grammar::Matcher& matcher = *s.matcher;
    uint32_t allowed = 0;
    for (; allowed < s.drafts; ++allowed) {
        const auto advanced = matcher.advance(s.tokens[s.confirmed() + allowed]);
        if (!advanced || !*advanced) break;
    }
    matcher.roll_back(allowed);
    // One that was drawn is judged like any other: to leave it out would make others more likely.
    if (allowed < s.drafts && by_rejection() && s.drafts_drawn[allowed]) allowed += 1;
    report.cut_drafts += s.drafts - allowed;
    s.tokens.resize(s.confirmed() + allowed);
    s.drafts = allowed;
}

void Engine::State::cut_path(Sequence& s, DraftPath& path) {
    uint32_t allowed = 0;
    for (; allowed < path.size(); ++allowed) {
        const auto advanced = s.matcher->advance(path[allowed]);
        if (!advanced || !*advanced) break;
    }
    s.matcher->roll_back(allowed);
    report.cut_drafts += static_cast<uint32_t>(path.size()) - allowed;
    path.resize(allowed);
}

bool Engine::State::follow_grammar(Sequence& s, TokenId token) {
    if (contains(s.end_tokens, token) && s.matcher->complete()) return true;
    const auto advanced = s.matcher->advance(token);
    if (advanced && *advanced) return true;
    finish(s, FinishReason::kError,
           "structured_outputs: " + (advanced ? "sampler '" + std::string(sampler.current().type().name) +
                                                    "' gave token " + std::to_string(token) + ", which is not allowed"
                                              : advanced.error()));
    return false;
}

void Engine::State::report_grammars() {
    if (!grammars) return;
    const auto now = grammars->counts();
    const auto& before = grammars_reported;
    report.grammars_compiled = now.compiled - before.compiled;
    report.grammars_cached = now.cached - before.cached;
    report.grammars_refused = now.refused - before.refused;
    report.grammar_compile_ns = now.compile_ns - before.compile_ns;
    grammars_reported = now;
}

}  // namespace patchbay::engine
