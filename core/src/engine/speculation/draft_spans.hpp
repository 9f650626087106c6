// Which tokens of which sequences a pass of a draft model computes, and what it has computed of them afterwards. Part
// of DraftModel.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/speculation/draft_load.hpp"
#include "engine/speculation/draft_turns.hpp"

namespace patchbay::runner {
class Batch;
}

namespace patchbay::engine {

class DraftKvTable;

class DraftSpans {
  public:
    struct Span { // of a sequence's tokens
        Sequence* sequence;
        uint32_t begin, end;
        std::optional<uint32_t> asked; // row of the proposer's batch that wants the logits after it
        size_t features = 0;           // of a head: where its own begin among the features
    };

    // All outlive it. max_tokens: of a pass.
    DraftSpans(const DraftForm& form, DraftKvTable& kv, uint32_t max_tokens)
        : form_(form), kv_(kv), max_tokens_(max_tokens) {}

    // Around a propose() over these sequences.
    void begin(std::span<Sequence* const> all);
    void end(std::span<Sequence* const> all);
    bool followed() const { return followed_; } // what the target has computed, it has too, or a pass does it

    void plan(const DraftTurns&);
    std::span<const Span> all() const { return spans_; } // of the pass that was planned
    void fill(runner::Batch&) const; // cleared before; its rows that are asked for have a logit row, in order
    // The pass has ended; hidden_row: where a head kept the hidden states of the first row that was asked for.
    void passed(bool well, uint32_t hidden_row);

  private:
    void plan_with_layers(const DraftTurns&);
    void plan_without_layers(const DraftTurns&);
    void plan(Sequence&, std::optional<uint32_t> asked, uint32_t& left);
    bool find_features(const Sequence&, uint32_t begin, uint32_t end); // appends to features_; false: not all are there
    uint32_t shift() const { return form_.is_head() ? 1 : 0; } // from a place to the token that is computed there

    const DraftForm& form_;
    DraftKvTable& kv_;
    const uint32_t max_tokens_;
    bool followed_ = false;
    std::vector<Span> spans_;
    std::vector<int32_t> features_; // of a head: by token, the row of a hidden state
    uint32_t ahead_ = 0;            // of a head without layers: drafts before its rows
};

}  // namespace patchbay::engine
