// Beam search over what a model thinks of each beam's next token: which beams go on, which sequences are complete, when
// it is over. The rules are those of Hugging Face's generate(num_beams, length_penalty, early_stopping); a length is
// that of the output with its end token. Nothing here knows of KV or schedulers. Used by engine/beams.cpp.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/output/stop_matcher.hpp"
#include "engine/request/output.hpp"
#include "text/detokenizer.hpp"

namespace patchbay::engine {

struct SamplingParams;

struct Hypothesis { // one output, complete or as far as it has come
    std::vector<TokenId> tokens;
    std::optional<size_t> logprobs;      // the last token's among BeamSearch::links(), if they are asked for
    double sum = 0;                      // of the tokens' log-probabilities
    std::string text;
    std::optional<text::Detokenizer> detokenizer; // none: ids only
    StopMatcher stops;
    // Complete ones only:
    FinishReason finish = FinishReason::kNone;
    std::string stop_reason;
    std::optional<TokenId> stop_token; // the stop reason
    double score = 0; // sum / length ^ length_penalty
};

class BeamSearch {
  public:
    struct Settings {
        const SamplingParams& sampling; // of the request, which outlives it
        std::vector<TokenId> ends;      // its end tokens: those that it stops at, by name or by the model's
        std::vector<TokenId> named;     // of them those that are a stop reason
        uint32_t ends_after = 0;        // as Request::ends_after
    };
    BeamSearch(Settings, Hypothesis empty);

    // Candidates that a step looks at: enough that `beam_width` of them do not end, were it not for stop strings.
    uint32_t kept() const;
    // That each beam has to bring for it: of those some may not end the output yet.
    uint32_t wanted() const;

    // The highest log-probabilities of a beam's next token, highest first, by beam; at least one.
    using Candidates = std::vector<std::pair<TokenId, float>>;
    void step(const std::vector<Candidates>&);

    // The beams that go on, best first, and by each of them the beam before that it continues.
    const std::vector<Hypothesis>& open() const { return open_; }
    const std::vector<uint32_t>& parents() const { return parents_; }
    bool over() const { return over_; }
    const std::vector<Hypothesis>& complete() const { return complete_; } // best first, at most beam_width
    // Log-probabilities of tokens. Hypotheses share those of the tokens that they have in common.
    struct Link {
        TokenLogprobs own;
        std::optional<size_t> before; // the link of the token before it
    };
    const std::vector<Link>& links() const { return links_; }
    std::vector<TokenLogprobs> logprobs_of(const Hypothesis&) const; // by token, if they are asked for

  private:
    bool ends(TokenId) const;
    Hypothesis extend(const Hypothesis&, TokenId, float logprob) const;
    std::optional<size_t> link(const Hypothesis& parent, const Candidates&, float logprob);
    bool can_improve() const;

    Settings settings_;
    std::vector<Hypothesis> open_, complete_;
    std::vector<Link> links_;
    std::vector<uint32_t> parents_;
    bool over_ = false;
};

}  // namespace patchbay::engine
