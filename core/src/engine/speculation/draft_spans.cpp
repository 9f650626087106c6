#include "engine/speculation/draft_spans.hpp"

#include <algorithm>

#include "engine/request/sequence.hpp"
#include "engine/speculation/draft_kv.hpp"
#include "runner/batch.hpp"

namespace patchbay::engine {
namespace {

// Which of its guesses came true: those are computed like any other token.
void settle(const Sequence& s, DraftKv& d) {
    size_t right = 0;
    while (right < d.ahead.size() && d.computed < s.confirmed() && d.ahead[right] == s.tokens[d.computed])
        right += 1, d.computed += 1;
    if (d.computed < s.confirmed()) d.ahead.clear();
    else d.ahead.erase(d.ahead.begin(), d.ahead.begin() + static_cast<ptrdiff_t>(right));
}

}  // namespace

void DraftSpans::begin(std::span<Sequence* const> all) {
    followed_ = !form_.keeps_kv();
    if (!form_.is_head()) return;
    for (const Sequence* s : all) { // guesses were made from guesses: they are computed anew from what the target has
        kv_.of(*s).ahead.clear();
        kv_.of(*s).made.clear();
    }
}

void DraftSpans::end(std::span<Sequence* const> all) {
    for (const Sequence* s : all) kv_.of(*s).hidden = {}; // the next step's lie there
}

void DraftSpans::plan(const DraftTurns& turns) {
    spans_.clear();
    features_.clear();
    if (form_.keeps_kv()) plan_with_layers(turns);
    else plan_without_layers(turns);
}

// Those of the tokens that the target computed in this step are its own; after them, those that the head made.
bool DraftSpans::find_features(const Sequence& s, uint32_t begin, uint32_t end) {
    const size_t before = features_.size();
    for (uint32_t token = begin; token < end; ++token) {
        const DraftKv& d = kv_.of(s);
        const uint32_t newest = s.confirmed() - 1; // which only the head has computed
        const uint32_t made = token - newest;
        if (token < newest && d.hidden.has(token))
            features_.push_back(static_cast<int32_t>(d.hidden.row_of(token)));
        else if (token >= newest && made < d.made.size()) features_.push_back(d.made[made]);
        else return features_.resize(before), false;
    }
    return true;
}

// All rows from the hidden state that the newest token was sampled from.
void DraftSpans::plan_without_layers(const DraftTurns& turns) {
    for (Sequence* s : turns.all()) {
        const std::optional<uint32_t> asked = turns.asked(*s);
        if (!asked || s->confirmed() < 2) continue;
        ahead_ = s->drafts; // of all alike
        const uint32_t from = s->confirmed() - 2;
        const size_t at = features_.size();
        if (ahead_ < form_.head_depth.value_or(0) && find_features(*s, from, from + 1))
            spans_.push_back({s, from, from + 1, asked, at});
    }
}

// In the order in which the target computed them: a prefix that another one fills in this pass is there.
void DraftSpans::plan_with_layers(const DraftTurns& turns) {
    uint32_t left = max_tokens_;
    for (Sequence* s : turns.all()) plan(*s, turns.asked(*s), left);
    followed_ = true;
}

void DraftSpans::plan(Sequence& s, std::optional<uint32_t> asked, uint32_t& left) {
    DraftKv& d = kv_.of(s);
    if (d.lost) return;
    if (!form_.is_head()) settle(s, d);
    uint32_t begin = d.computed, end = std::min({s.computed, s.confirmed() - shift(), form_.facts.max_position});
    if (asked) {
        end = static_cast<uint32_t>(s.tokens.size()) - shift();
        const auto same = std::mismatch(d.ahead.begin(), d.ahead.end(), s.tokens.begin() + s.confirmed(),
                                        s.tokens.end()).first - d.ahead.begin();
        begin = std::min(d.computed + static_cast<uint32_t>(same), end - 1); // whose logits are wanted, always
        d.made.resize(std::min(d.made.size(), static_cast<size_t>(same) + 1)); // others follow other drafts
    } else if (followed_) {
        return;
    }
    if (begin >= end || left == 0) return;
    const uint32_t to = std::min(end, begin + left);
    const size_t features = features_.size();
    if (form_.is_head() && !find_features(s, begin, to)) {
        d.lost |= begin < d.hidden.begin; // what it missed does not come back
        return;
    }
    spans_.push_back({&s, begin, to, to == end ? asked : std::nullopt, features});
    left -= to - begin;
}

void DraftSpans::fill(runner::Batch& batch) const {
    for (const Span& span : spans_) {
        const uint32_t n = span.end - span.begin;
        batch.add({std::span<const TokenId>(span.sequence->tokens).subspan(span.begin + shift(), n), span.begin,
                   span.asked ? 1u : 0u, span.sequence->kv.table,
                   form_.is_head() ? std::span<const int32_t>(features_).subspan(span.features, n)
                                   : std::span<const int32_t>()});
    }
    batch.finish();
    if (form_.is_head()) batch.draft_step = ahead_;
}

void DraftSpans::passed(bool well, uint32_t hidden_row) {
    if (!form_.keeps_kv()) return;
    auto made = static_cast<int32_t>(hidden_row);
    for (const Span& span : spans_) {
        Sequence& s = *span.sequence;
        DraftKv& d = kv_.of(s);
        d.lost = !well; // what its pages hold is not known
        d.computed = std::min(span.end, s.confirmed() - shift());
        d.ahead.assign(s.tokens.begin() + d.computed + shift(), s.tokens.begin() + span.end + shift());
        if (form_.is_head() && span.asked) {
            d.made.resize(s.drafts);
            d.made.push_back(made++);
        }
    }
}

}  // namespace patchbay::engine
