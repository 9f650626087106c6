// The proposer, and what becomes of its drafts: after each step, for the next one. Drafts only save time: a proposer
// that fails is counted, and the next step does without.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/groups/beams.hpp"
#include "engine/loop/aborts.hpp"
#include "engine/loop/page_copies.hpp"
#include "engine/speculation/draft_feedback.hpp"
#include "engine/speculation/draft_length.hpp"
#include "engine/speculation/draft_model.hpp"
#include "engine/speculation/draft_verification.hpp"
#include "engine/swap/swap_journal.hpp"
#include "host/slot.hpp"

namespace patchbay::engine {

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
    ~Proposals() override;

    bool any() const { return slot_.filled(); }
    host::Slot& slot() { return slot_; }
    DraftModel* draft_model() const { return draft_model_; }
    bool asked() const { return asked_in_ == p_.context.step; } // the proposer, in this step
    void forget_acceptance();             // of the drafts so far: another one proposes from now on
    // Its predecessor is back. False: it is not on probation.
    bool roll_back(const std::string& phase, const std::string& reason);
    void propose(); // for the sequences that run

    void observe(const Sequence&, uint32_t verified, uint32_t accepted) override;
    void observe(const StepReport& report) { // of the step that verified what was proposed before it
        if (length_) length_->observe(report);
    }
    void free_outside_window(Sequence&) override; // unless propose() will do so
    bool lingers(const Sequence&) const override;
    void linger(std::unique_ptr<Sequence> s) override { lingering_.push_back(std::move(s)); }
    std::span<const std::unique_ptr<Sequence>> lingering() const { return lingering_; }
    void release_lingering();
    void finished(const Sequence&) override;

  private:
    struct Row {
        Sequence* sequence;
        pb_propose_row wire;
    };
    std::vector<Row> rows_to_draft(uint32_t length);
    uint32_t choose_length();
    Result<> draft_with_model(std::span<const Row>);
    Result<> ask(std::span<const Row>);
    void keep_chain(Sequence&, std::span<const TokenId>, size_t first_draft, std::span<const uint8_t> drawn);
    void keep_tree(Sequence&, DraftTree);
    void keep(Sequence&, TokenId, std::span<const float> drawn_from); // empty: it was not drawn
    void cut_disallowed(Sequence&);
    enum class Fault { kError, kContract }; // the call failed; what it gave breaks the contract
    void note_fault(Fault, const std::string& why, const char* what_follows);

    const Parts p_;
    host::Slot slot_;
    DraftModel* const draft_model_;
    std::optional<DraftLength> length_;  // by mode: adaptive
    std::vector<std::unique_ptr<Sequence>> lingering_;
    std::vector<float> drawn_from_;      // by a proposer, as it writes them
    uint64_t faults_ = 0;                // ever
    uint64_t asked_in_ = 0;              // the step in which there was something to draft last
};

}  // namespace patchbay::engine
