// One sequence as the host keeps it, and the record of it that schedulers see. Engine-internal.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/draft_tree.hpp"
#include "engine/request.hpp"
#include "engine/stop_matcher.hpp"
#include "engine/waiting_queue.hpp"
#include "grammar/grammar.hpp"
#include "kv/kv_cache.hpp"
#include "patchbay/abi/sampler.h"
#include "patchbay/abi/scheduler.h"

namespace patchbay::engine {

// Pending: its arrival is still to come. Held: until the first output of its request has computed the prompt.
enum class Place { kPending, kHeld, kWaiting, kRunning };

struct BeamGroup;

struct HiddenRows { // of tokens that the step under way computed: where the target left their hidden states
    uint32_t begin = 0, count = 0, first_row = 0;
    bool has(uint32_t token) const { return token >= begin && token - begin < count; }
    uint32_t row_of(uint32_t token) const { return first_row + (token - begin); }
};

// What a draft model has computed of a sequence (draft_model.hpp). A head with layers is one token ahead: what it
// computes in a token's place belongs to that token's hidden state and to the next token.
struct DraftKv {
    uint32_t computed = 0;      // confirmed tokens,
    std::vector<TokenId> ahead; // and these guesses behind them
    bool lost = false;          // what its pages hold is not known: no drafts until the sequence is computed anew
    HiddenRows hidden;          // for a head,
    std::vector<int32_t> made;  // and rows of those that it made itself: behind no draft, behind one, …
};

struct OutputSums { // over the output's tokens
    double logprob = 0;
    LogitsStatistics logits; // of so many of them
    uint32_t logits_rows = 0;
};

struct TokenRules { // what min_tokens, allowed_token_ids and bad_words forbid (token_masks.cpp)
    std::vector<uint32_t> allowed; // a bit for each token that may be sampled; empty: all
    std::vector<uint32_t> no_stop; // the same before min_tokens; empty: no other
    std::vector<std::vector<TokenId>> bad_words; // of several tokens
};

struct Sequence {
    RequestId id = 0;            // of this sequence; that of a request is its first one's
    RequestId group = 0;         // of the request
    uint32_t index = 0;          // of those of its request
    Request request;
    Place place = Place::kPending;
    WaitingQueue::Ticket ticket = 0;

    std::vector<TokenId> tokens; // prompt, output, then drafts
    uint32_t prompt_count = 0;
    uint32_t drafts = 0;         // at the end of tokens
    std::vector<DraftPath> branches; // further paths of its drafts, the more likely first
    // By rejection, of drafts: whether each was drawn at random, and (drafts, vocab) from what.
    std::vector<uint8_t> drafts_drawn;
    std::vector<float> draft_probs;
    uint32_t computed = 0;       // tokens whose KV is there
    uint32_t in_flight = 0;      // further ones, that steps compute which are not back
    uint32_t coming = 0;         // tokens that they make, after which it goes on: at most 1 when a step begins
    uint32_t coming_row = 0;     // of the step in flight that makes it
    uint64_t named_by_plan = 0;  // the latest one that does, by their number
    kv::BlockTable table;
    kv::BlockKey salt;           // of its KV in the prefix cache; the default: none
    std::optional<size_t> watched; // while it waits: its place in kv::PrefixWatch
    kv::SwappedTable swapped;    // in place of the table, while it waits for its KV to come back
    DraftKv draft_kv;

    uint64_t seed = 0;
    pb_sampling_params params{};
    std::vector<pb_logit_bias> bias;
    std::vector<float> surprise;        // of each output token, if it samples by it
    TokenRules rules;
    std::vector<uint32_t> word_masks; // of the step under way: (rows, words), for rows that a bad word may follow

    // ---- prompt_logprobs (prompt_logprobs.cpp) ----
    pb_sampling_params prompt_params{.logprobs = -1};
    uint32_t prompt_noted = 1;          // prompt tokens that have theirs; the first one has none
    std::vector<uint32_t> prompt_masks; // of the step under way: (prompt rows, words)

    OutputSums sums, published_sums; // published: of the tokens that were handed out

    // ---- structured output (structured.cpp) ----
    std::unique_ptr<grammar::Matcher> matcher; // of the output; null: it may be any text
    std::vector<TokenId> end_tokens;    // that are allowed where the output is complete
    std::vector<uint32_t> masks;        // of the step under way: (rows, words)

    std::vector<std::pair<size_t, std::string>> stuck; // rows of the step under way without a token, and why

    std::unique_ptr<text::Detokenizer> detokenizer; // null: ids only
    StopMatcher stops;

    BeamGroup* beams = nullptr;  // that it is a beam of (beams.cpp)
    bool idle = false;           // it runs, and has nothing to compute until other beams have
    bool announced = false;      // to the scheduler
    bool holds_siblings = false; // until it has computed the prompt
    bool forked = false;         // at its latest admission it took the prompt's KV from a sibling
    uint32_t cached_tokens = 0;  // of the prompt, at first admission; before it a hint
    bool admitted_once = false;
    uint32_t preemptions = 0;
    uint64_t first_scheduled_ns = 0;
    RequestOutput delta{};       // of the step under way

    Sequence(RequestId i, Request r, StopMatcher s) : id(i), group(i), request(std::move(r)), stops(std::move(s)) {}

    uint32_t confirmed() const { return static_cast<uint32_t>(tokens.size()) - drafts; } // prompt and output
    uint32_t outputs() const { return confirmed() - prompt_count; }
    uint32_t remaining() const {
        return idle ? 0 : static_cast<uint32_t>(tokens.size()) + coming - computed - in_flight;
    }
    // Whether what its next token may be hangs on the tokens before it, and not on their number alone.
    bool needs_history() const {
        return matcher || !rules.bad_words.empty() || params.repetition_penalty != 1 ||
               params.presence_penalty != 0 || params.frequency_penalty != 0 || params.dry_multiplier > 0 ||
               samples_by_surprise();
    }
    // Its next token hangs on how probable those before it were when they were sampled: a draft never was.
    bool samples_by_surprise() const { return params.mirostat_tau > 0; }
    // A sibling finds what the first one noted; it has no logprobs of the prompt to make.
    bool notes_prompt() const { return prompt_params.logprobs >= 0 && prompt_noted < prompt_count; }
    bool reads_prefixes() const { return !request.sampling.skip_reading_prefix_cache && !notes_prompt(); }
    bool decoding() const { return computed + 1 >= confirmed(); }
    // For the token behind so many of its drafts, or of tokens in flight, as if they were accepted.
    pb_sample_row row_to_sample(uint32_t behind) const {
        const uint32_t made = outputs() + behind;
        const auto there = static_cast<uint32_t>(tokens.size()) - prompt_count; // a token in flight is not
        const bool may_stop = made >= request.sampling.min_tokens || rules.no_stop.empty();
        const auto& mask = may_stop ? rules.allowed : rules.no_stop;
        return {id,           seed,                  confirmed() + behind,
                &params,      tokens.data(),         tokens.data() + prompt_count,
                prompt_count, std::min(made, there), mask.empty() ? nullptr : mask.data(),
                samples_by_surprise() ? surprise.data() : nullptr};
    }
    std::span<const TokenId> confirmed_tokens() const { return {tokens.data(), confirmed()}; }
    void drop_drafts() {
        tokens.resize(confirmed());
        drafts = 0;
        branches.clear();
    }
};

StopMatcher stops_of(const SamplingParams&);
RequestOutput delta_of(const Sequence&); // an empty one
std::span<const TokenId> findable_prefix(const Sequence&); // tokens whose KV it may take over from the prefix cache
// `hint`: what is cached, for one that waits.
pb_sequence record_of(const Sequence&, kv::CachedPrefix hint, uint32_t block_size);

}  // namespace patchbay::engine
