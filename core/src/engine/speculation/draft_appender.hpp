// Appends the drafts that a proposer gave to their sequence, as far as its constraints allow, and records what they
// were drawn from.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "config/engine_config.hpp"
#include "engine/request/ids.hpp"
#include "engine/speculation/draft_tree.hpp"

namespace patchbay::engine {

class Constraints;
class DraftRecords;
class DraftVerification;
struct Sequence;
struct StepContext;

struct DrawnDrafts { // of one sequence, as the proposer wrote it
    std::span<const uint8_t> drawn; // by draft: whether it was drawn at random,
    std::span<const float> probs;   // and (drafts, vocab) from what; empty: verification does not need it
};

class DraftAppender {
  public:
    struct Parts {
        uint32_t vocab_size, max_paths;
        Constraints& constraints;
        const DraftVerification& verification;
        DraftRecords& drafts;
        StepContext& context;
    };
    explicit DraftAppender(const Parts& parts) : p_(parts) {}

    void append_chain(Sequence&, std::span<const TokenId> drafts, const DrawnDrafts&);
    void append_tree(Sequence&, std::vector<DraftPath>); // its first path; the others go into the record

  private:
    void append(Sequence&, TokenId, std::span<const float> drawn_from); // empty: it was not drawn
    void cut_disallowed(Sequence&);

    const Parts p_;
};

}  // namespace patchbay::engine
