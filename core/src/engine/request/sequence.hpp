// One sequence as every part of the engine knows it: its tokens, its KV, and where it is. What only some requests ask
// for (grammars, drafts, beams, logprobs of the prompt) is kept by the part that does it, by the sequence's id.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/output/output_state.hpp"
#include "engine/request/ids.hpp"
#include "kv/block_table.hpp"
#include "patchbay/abi/sampler.h"

struct pb_sequence;

namespace patchbay::kv {
struct CachedPrefix;
}  // namespace patchbay::kv

namespace patchbay::engine {

struct Request;

// Pending: its arrival is still to come. Held: until the first output of its request has computed the prompt, or until
// the first beam of its search is admitted.
enum class Place { kPending, kHeld, kWaiting, kRunning };

struct SequenceKv {
    kv::BlockTable table;
    kv::BlockKey salt;           // of its KV in the prefix cache; the default: none
    kv::SwappedTable swapped;    // in place of the table, while it waits for its KV to come back
    bool reads_prefixes = true;  // takes KV from the prefix cache
};

struct SequenceSampling {
    uint64_t seed = 0;
    pb_sampling_params params{};
    std::vector<pb_logit_bias> bias;
    // Why its next token may depend on the tokens before it, and not on their number alone: "history",
    // "structured_output". Empty: it does not.
    std::string_view history_reason;

    // Its next token depends on how probable those before it were when they were sampled: a draft never was.
    bool samples_by_surprisal() const { return params.mirostat_tau > 0; }
};

struct SequenceRecord { // of what happened to it, for its last output
    uint32_t cached_tokens = 0;  // of the prompt, at first admission
    bool admitted_once = false;
    uint32_t preemptions = 0;
    uint64_t first_scheduled_ns = 0;
};

struct SequenceInFlight { // what steps make of it that were submitted and are not back
    uint32_t tokens = 0;          // after the computed ones
    uint32_t placeholders = 0;    // for tokens that they make, after which it goes on: at most 1 when a step begins
    uint32_t placeholder_row = 0; // of the step that makes it
};

struct Sequence {
    RequestId id = 0;            // of this sequence; that of a request is its first one's
    RequestId group = 0;         // of the request
    uint32_t index = 0;          // of those of its request
    std::shared_ptr<const Request> request; // of all sequences of a request the same
    Place place = Place::kPending;
    QueueTicket ticket = 0;
    bool announced = false;      // to the scheduler
    bool ended = false;          // with its reason in output.delta

    std::vector<TokenId> tokens; // prompt, output, then drafts
    uint32_t prompt_count = 0;
    uint32_t drafts = 0;         // at the end of tokens
    uint32_t computed = 0;       // tokens whose KV is there
    SequenceInFlight in_flight;
    bool idle = false;           // it runs, and has nothing to compute until other beams have

    SequenceKv kv;
    SequenceSampling sampling;
    OutputState output;
    SequenceRecord record;

    Sequence(RequestId i, std::shared_ptr<const Request> r) : id(i), group(i), request(std::move(r)) {}

    bool is_beam() const;
    bool has_siblings() const;
    uint32_t confirmed() const { return static_cast<uint32_t>(tokens.size()) - drafts; } // prompt and output
    uint32_t outputs() const { return confirmed() - prompt_count; }
    uint32_t remaining() const {
        return idle ? 0 : static_cast<uint32_t>(tokens.size()) + in_flight.placeholders - computed - in_flight.tokens;
    }
    bool decoding() const { return computed + 1 >= confirmed(); }
    std::span<const TokenId> confirmed_tokens() const { return {tokens.data(), confirmed()}; }
    void drop_drafts() {
        tokens.resize(confirmed());
        drafts = 0;
    }
};

// `hint`: what is cached, for one that waits.
pb_sequence record_of(const Sequence&, kv::CachedPrefix hint, uint32_t block_size);

}  // namespace patchbay::engine
