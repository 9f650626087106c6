// The proposer, and what becomes of its drafts: after each step, for the next one. Drafts only save time: a proposer
// that fails is counted, and the next step does without.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/groups/beams.hpp"
#include "engine/loop/aborts.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/speculation/draft_appender.hpp"
#include "engine/speculation/draft_feedback.hpp"
#include "engine/speculation/draft_selection.hpp"
#include "engine/speculation/lingering_sequences.hpp"
#include "host/slot.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

class Constraints;
class DraftModel;
class DraftRecords;
class DraftVerification;
class PageCopies;
class SwapJournal;

class Proposals final : public DraftFeedback {
  public:
    struct Parts {
        const config::EngineSettings& settings;
        const config::SpeculationSettings& speculation;
        uint32_t vocab_size, max_model_len;
        Sequences& sequences;
        kv::KvCache& kv;
        const BeamSearches& beams;
        Constraints& constraints;
        const DraftVerification& verification;
        DraftRecords& drafts;
        DraftKvTable& draft_kv;
        const Aborts& aborts;
        PageCopies& copies;
        Clock& clock;
        StepContext& context;
        SwapJournal& journal;
    };
    // draft_model: that the proposer drafts with, started; null: it has none. proposer: empty: there are no drafts.
    Proposals(const Parts&, host::Proposer proposer, DraftModel* draft_model);

    bool any() const { return slot_.filled(); }
    host::Slot& slot() { return slot_; }
    DraftModel* draft_model() const { return draft_model_; }
    bool asked() const { return asked_in_ == p_.context.step; } // the proposer, in this step
    void forget_acceptance() { selection_.forget_acceptance(); } // another one proposes from now on
    // Its predecessor is back. False: it is not on probation.
    bool roll_back(const std::string& phase, const Failure& why);
    void propose(); // for the sequences that run

    void observe(const Sequence&, uint32_t verified, uint32_t accepted) override;
    void observe(const StepReport& report) { selection_.observe(report); } // of the step that verified
    void free_outside_window(Sequence&) override; // unless propose() will do so
    bool lingers(const Sequence& s) const override { return lingering_.wants(s); }
    void linger(std::unique_ptr<Sequence>) override;
    const LingeringSequences& lingering() const { return lingering_; }
    void finished(const Sequence&) override;

  private:
    Result<> draft_with_model(std::span<const DraftRow>);
    Result<> ask(std::span<const DraftRow>);
    enum class Fault { kError, kContract }; // the call failed; what it gave breaks the contract
    void note_fault(Fault, const std::string& why, const char* what_follows);

    const Parts p_;
    host::Slot slot_;
    DraftModel* const draft_model_;
    DraftSelection selection_;
    DraftAppender appender_;
    LingeringSequences lingering_;
    std::vector<float> drawn_from_;      // by a proposer, as it writes them
    uint64_t faults_ = 0;                // ever
    uint64_t asked_in_ = 0;              // the step in which there was something to draft last
};

}  // namespace patchbay::engine
