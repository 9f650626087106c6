// The sequences of a propose(), and which of them the current pass computes. Part of DraftModel.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/request/ids.hpp"
#include "patchbay/abi/services.h"

namespace patchbay::engine {

struct Sequence;

class DraftTurns {
  public:
    struct Row { // a sequence that is drafted for
        Sequence* sequence;
        uint32_t max_drafts;
    };

    // all: that the target has computed, in their order; rows: some of them.
    void begin(std::span<const Row> rows, std::vector<Sequence*> all);
    const std::vector<Sequence*>& all() const { return all_; }
    std::optional<uint32_t> max_drafts(RequestId) const; // nothing: it is not drafted for

    // A pass is asked for these rows, which were checked. Their drafts are put after the sequences' own tokens, where
    // there is room for them: no pointer moves.
    void ask(const pb_runner_batch&);
    void ask_nothing();
    void drop_drafts(); // the pass is over
    std::optional<uint32_t> asked(const Sequence&) const; // its row of the pass; nothing: it has none

  private:
    struct Turn {
        Sequence* sequence;
        uint32_t max_drafts;
        std::optional<uint32_t> asked;
    };

    std::vector<Sequence*> all_;
    std::unordered_map<RequestId, Turn> turns_;
};

}  // namespace patchbay::engine
