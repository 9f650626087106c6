#include "engine/sampling/structured_output.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/output/output_text.hpp"
#include "engine/request/request.hpp"
#include "engine/request/sampling_params.hpp"
#include "engine/request/sequence.hpp"
#include "execution/sync_reasons.hpp"

namespace patchbay::engine {
namespace {

bool contains(const std::vector<TokenId>& tokens, TokenId t) {
    return std::find(tokens.begin(), tokens.end(), t) != tokens.end();
}

}  // namespace

StructuredOutput::StructuredOutput(std::shared_ptr<const text::Tokenizer> tokenizer, const std::vector<TokenId>& eos,
                                   uint32_t vocab_size, Clock& clock, StepContext& context)
    : eos_(eos), vocab_size_(vocab_size), clock_(clock), context_(context) {
    if (!tokenizer) return;
    grammars_ = std::make_unique<grammar::GrammarCache>(
        [tokenizer = std::move(tokenizer), vocab_size, ends = eos] {
            return grammar::Vocabulary::of(*tokenizer, vocab_size, ends);
        },
        clock);
}

Result<std::shared_ptr<grammar::Grammar>> StructuredOutput::compile(const grammar::StructuredOutputs& wanted,
                                                                    std::shared_ptr<grammar::Grammar> known) {
    if (!grammars_) return fail(StatusCode::kUnsupported, "structured_outputs need a tokenizer");
    if (known && grammars_->made(*known)) return known;
    auto out = grammars_->get(wanted);
    if (!out) return prefixed("structured_outputs", out.failure());
    return out;
}

void StructuredOutput::add(Sequence& s, std::shared_ptr<grammar::Grammar> g) {
    const SamplingParams& p = s.request->sampling;
    Record r;
    if (!p.ignore_eos) r.end_tokens = eos_;
    for (const TokenId t : p.stop_token_ids) { // those that stand for text belong to the text
        const bool known = t >= 0 && static_cast<uint32_t>(t) < vocab_size_;
        const bool has_text = known && !g->vocabulary().bytes(t, grammar::Vocabulary::Place::kLater).empty();
        if (known && !has_text && !contains(r.end_tokens, t)) r.end_tokens.push_back(t);
    }
    using From = grammar::Vocabulary::Place;
    const bool continues = s.output.text && s.output.text->detokenizer.continues_text();
    r.matcher = std::make_unique<grammar::Matcher>(std::move(g), continues ? From::kLater : From::kFirst);
    records_.add(s.id, std::move(r));
    s.sampling.history_reason = execution::sync_reason::kStructuredOutput;
}

bool StructuredOutput::applies(const Sequence& s) const { return records_.find(s.id) != nullptr; }

void StructuredOutput::erase(const Sequence& s) { records_.erase(s.id); }

void StructuredOutput::inherit(const Sequence& from, const Sequence& to) {
    if (const Record* r = records_.find(from.id))
        records_.add(to.id, {std::make_unique<grammar::Matcher>(*r->matcher), r->end_tokens});
}

void StructuredOutput::mask(const PathRows& path, MaskWords& memory, Unsatisfiable& unsatisfiable) {
    const Record& record = *records_.find(path.sequence.id);
    grammar::Matcher& matcher = *record.matcher;
    const uint64_t start = clock_.now_ns();
    const size_t words = (vocab_size_ + 31) / 32;
    const auto rows = static_cast<uint32_t>(path.rows.size());
    memory.resize(rows * words);
    uint32_t drafts = 0;
    for (uint32_t depth = 0; depth < path.after + rows; ++depth) {
        if (depth > 0) {
            const auto advanced = matcher.advance(path.tokens[path.confirmed + depth - 1]);
            if (!advanced || !*advanced) break; // the row before will not sample it: what follows is of no matter
            drafts += 1;
        }
        if (depth < path.after) continue;
        const uint32_t j = depth - path.after;
        const std::span<uint32_t> mask = std::span(memory).subspan(j * words, words);
        const auto made = matcher.allow(mask);
        if (matcher.complete())
            for (const TokenId t : record.end_tokens) mask[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
        pb_sample_row& row = path.rows[j];
        const auto is_empty = [&] { return std::ranges::all_of(mask, [](uint32_t bits) { return bits == 0; }); };
        const bool dead_end = is_empty();
        for (size_t w = 0; row.allowed && w < words; ++w) mask[w] &= row.allowed[w];
        if (!made || is_empty()) {
            constexpr std::string_view kGoesOn = " goes on with the structured output";
            std::string why = dead_end ? "no token of the vocabulary"
                                       : "no token that allowed_token_ids, bad_words and min_tokens leave";
            why = made ? why.append(kGoesOn) : made.error();
            unsatisfiable.emplace_back(path.first_row + j, "structured_outputs: " + why);
            row.allowed = nullptr;
            continue;
        }
        row.allowed = mask.data();
        context_.report.grammars.masks += 1;
    }
    matcher.roll_back(drafts);
    context_.report.grammars.mask_ns += clock_.now_ns() - start;
}

Result<> StructuredOutput::accept(const Sequence& s, TokenId token, const std::string& sampler) {
    const Record& r = *records_.find(s.id);
    if (contains(r.end_tokens, token) && r.matcher->complete()) return {};
    const auto advanced = r.matcher->advance(token);
    if (!advanced) return prefixed("structured_outputs", advanced.failure());
    if (*advanced) return {};
    return fail("structured_outputs: " + sampler + " gave token " + std::to_string(token) + ", which is not allowed");
}

bool StructuredOutput::is_complete(const Sequence& s) const { return records_.find(s.id)->matcher->finished(); }

uint32_t StructuredOutput::count_allowed(const Sequence& s, std::span<const TokenId> drafts) {
    grammar::Matcher& matcher = *records_.find(s.id)->matcher;
    uint32_t allowed = 0;
    for (; allowed < drafts.size(); ++allowed) {
        const auto advanced = matcher.advance(drafts[allowed]);
        if (!advanced || !*advanced) break;
    }
    matcher.roll_back(allowed);
    return allowed;
}

void StructuredOutput::report_compiled(StepReport& report) {
    if (!grammars_) return;
    const auto now = grammars_->counts();
    report.grammars.compiled = now.compiled - reported_.compiled;
    report.grammars.cached = now.cached - reported_.cached;
    report.grammars.refused = now.refused - reported_.refused;
    report.grammars.compile_ns = now.compile_ns - reported_.compile_ns;
    reported_ = now;
}

}  // namespace patchbay::engine
