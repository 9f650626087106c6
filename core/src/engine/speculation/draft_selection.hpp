// Which sequences a step drafts for, and how many tokens of each.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/speculation/draft_length.hpp"
#include "patchbay/abi/proposer.h"

namespace patchbay::config {
struct EngineSettings;
struct SpeculationSettings;
}

namespace patchbay::engine {

class Aborts;
class DraftModel;
struct Sequence;
class Sequences;
struct StepContext;

struct DraftRow {
    Sequence* sequence;
    pb_propose_row wire;
};

class DraftSelection {
  public:
    struct Parts {
        const config::EngineSettings& settings;
        const config::SpeculationSettings& speculation;
        uint32_t max_model_len;
        Sequences& sequences;
        const Aborts& aborts;
        StepContext& context;
        DraftModel* draft_model; // null: the proposer drafts without one
    };
    explicit DraftSelection(const Parts&);

    std::vector<DraftRow> select(); // of the sequences that run; takes pages for the draft model

    void forget_acceptance(); // of the drafts so far: another proposer's follow
    void observe(const StepReport& report) { // of the step that verified what was selected before it
        if (length_) length_->observe(report);
    }

  private:
    uint32_t choose_length();

    const Parts p_;
    std::optional<DraftLength> length_; // by mode: adaptive
};

}  // namespace patchbay::engine
