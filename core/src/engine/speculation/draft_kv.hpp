// What a draft model has computed of each sequence, kept in step with what becomes of the target's KV: both lie in the
// same pages.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/request/sequence_records.hpp"

namespace patchbay::engine {

struct Sequence;

struct HiddenRows { // of tokens that the step under way computed: where the target left their hidden states
    uint32_t begin = 0, count = 0, first_row = 0;
    bool has(uint32_t token) const { return token >= begin && token - begin < count; }
    uint32_t row_of(uint32_t token) const { return first_row + (token - begin); }
};

// A head with layers is one token ahead: what it computes in a token's place belongs to that token's hidden state and
// to the next token.
struct DraftKv {
    uint32_t computed = 0;      // confirmed tokens,
    std::vector<TokenId> ahead; // and these guesses after them
    bool lost = false;          // what its pages hold is not known: no drafts until the sequence is computed anew
    HiddenRows hidden;          // for a head,
    std::vector<int32_t> made;  // and rows of those that it made itself: after no draft, after one, …
};

class DraftKvTable {
  public:
    explicit DraftKvTable(bool has_draft_model) : kept_(has_draft_model) {}

    bool has_draft_model() const { return kept_; }
    DraftKv& of(const Sequence&);
    void erase(const Sequence&);

    // Its pages were taken over from the prefix cache, a sibling or host memory: they hold both models' KV.
    void admitted(const Sequence&);
    // Pages go as far as the target has computed: what the draft model has after it, it computes again.
    void swapped_out(const Sequence&);
    // It shares the first `computed` tokens' pages of another sequence.
    void forked(const Sequence&, const Sequence& from);
    // What a sequence becomes that takes the place of another one, of which so many tokens are computed.
    DraftKv continued(const Sequence& from, uint32_t computed);
    void set(const Sequence&, DraftKv);
    // Tokens [begin, begin + count) are computed by rows of the batch from first_row on.
    void computes(const Sequence& s, const HiddenRows& rows) {
        if (kept_) of(s).hidden = rows;
    }

  private:
    DraftKv continued(const Sequence& from, uint32_t computed, bool lost);

    const bool kept_;
    SequenceRecords<DraftKv> records_;
};

}  // namespace patchbay::engine
