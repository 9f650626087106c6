#include "engine/groups/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/request/sampling_params.hpp"

namespace patchbay::engine {
namespace {

struct Candidate {
    double sum;
    uint32_t parent;
    TokenId token;
    float logprob;
};

bool better(const Candidate& a, const Candidate& b) {
    if (a.sum != b.sum) return a.sum > b.sum;
    return a.parent != b.parent ? a.parent < b.parent : a.token < b.token;
}

bool contains(const std::vector<TokenId>& tokens, TokenId t) {
    return std::find(tokens.begin(), tokens.end(), t) != tokens.end();
}

double score(double sum, size_t length, float length_penalty) {
    return sum / std::pow(static_cast<double>(length), static_cast<double>(length_penalty));
}

}  // namespace

BeamSearch::BeamSearch(Settings settings, Hypothesis empty) : settings_(std::move(settings)) {
    open_.push_back(std::move(empty));
}

uint32_t BeamSearch::kept() const {
    const auto n = static_cast<uint32_t>(settings_.ends.size());
    return std::max(2u, 1 + n) * settings_.sampling.beam_width;
}

uint32_t BeamSearch::wanted() const {
    return kept() + (settings_.sampling.min_tokens > 0 ? static_cast<uint32_t>(settings_.ends.size()) : 0);
}

bool BeamSearch::ends(TokenId t) const { return contains(settings_.ends, t); }

std::optional<size_t> BeamSearch::link(const Hypothesis& parent, const Candidates& highest, float logprob) {
    const auto& wanted = settings_.sampling.logprobs;
    if (!wanted) return std::nullopt;
    const auto n = std::min(highest.size(), static_cast<size_t>(*wanted));
    links_.push_back({{logprob, {highest.begin(), highest.begin() + static_cast<ptrdiff_t>(n)}}, parent.logprobs});
    return links_.size() - 1;
}

std::vector<TokenLogprobs> BeamSearch::logprobs_of(const Hypothesis& h) const {
    std::vector<TokenLogprobs> out;
    for (auto at = h.logprobs; at; at = links_[*at].before) out.push_back(links_[*at].own);
    std::ranges::reverse(out);
    return out;
}

Hypothesis BeamSearch::extend(const Hypothesis& parent, TokenId token, float logprob) const {
    const SamplingParams& p = settings_.sampling;
    Hypothesis out = parent;
    out.tokens.push_back(token);
    out.sum += logprob;
    const bool may_stop = out.tokens.size() > p.min_tokens;
    const bool at_end = may_stop && ends(token);
    if (out.detokenizer && (!at_end || p.include_stop_str_in_output)) {
        const std::string text = out.detokenizer->add(token);
        out.text += out.stops.add(text, may_stop);
    }
    if (at_end) {
        out.finish = FinishReason::kStop;
        if (contains(settings_.named, token)) out.stop_token = token, out.stop_reason = std::to_string(token);
    } else if (!out.stops.matched().empty()) {
        out.finish = FinishReason::kStop;
        out.stop_reason = out.stops.matched();
    }
    if (settings_.ends_after > 0 && out.tokens.size() >= settings_.ends_after && out.finish == FinishReason::kNone)
        out.finish = FinishReason::kStop;
    if (out.finish == FinishReason::kNone && out.tokens.size() >= p.max_tokens) out.finish = FinishReason::kLength;
    if (out.finish == FinishReason::kNone) return out;
    out.score = score(out.sum, out.tokens.size(), p.length_penalty);
    if (out.detokenizer && out.stops.matched().empty()) {
        out.text += out.stops.add(out.detokenizer->finish());
        out.text += out.stops.flush();
    }
    return out;
}

void BeamSearch::step(const std::vector<Candidates>& by_beam) {
    const SamplingParams& p = settings_.sampling;
    const uint32_t width = p.beam_width;
    const bool too_short = open_[0].tokens.size() < p.min_tokens;
    std::vector<Candidate> all;
    for (uint32_t beam = 0; beam < by_beam.size(); ++beam)
        for (const auto& [token, logprob] : by_beam[beam])
            if (!too_short || !ends(token)) all.push_back({open_[beam].sum + logprob, beam, token, logprob});
    std::ranges::sort(all, better);
    all.resize(std::min<size_t>(all.size(), kept()));

    std::vector<Hypothesis> next;
    parents_.clear();
    for (uint32_t rank = 0; rank < all.size() && (rank < width || next.size() < width); ++rank) {
        const Candidate& c = all[rank];
        Hypothesis child = extend(open_[c.parent], c.token, c.logprob);
        const bool ended = child.finish != FinishReason::kNone;
        if (ended ? rank >= width : next.size() == width) continue; // one after these is complete, but no beam
        child.logprobs = link(open_[c.parent], by_beam[c.parent], c.logprob);
        if (!ended) {
            next.push_back(std::move(child));
            parents_.push_back(c.parent);
        } else {
            complete_.push_back(std::move(child));
        }
    }
    open_ = std::move(next);
    std::ranges::stable_sort(complete_, [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    if (complete_.size() > width) complete_.erase(complete_.begin() + width, complete_.end());
    over_ = open_.empty() || (complete_.size() >= width && !can_improve());
}

// Whether the best open beam may still come before the last of the complete ones.
bool BeamSearch::can_improve() const {
    const SamplingParams& p = settings_.sampling;
    if (p.early_stopping == EarlyStopping::kYes) return false;
    const bool at_full_length = p.early_stopping == EarlyStopping::kNever && p.length_penalty > 0;
    const size_t length = at_full_length ? p.max_tokens : open_[0].tokens.size();
    return score(open_[0].sum, length, p.length_penalty) > complete_.back().score;
}

}  // namespace patchbay::engine
