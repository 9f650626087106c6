// The model that a proposer drafts with: patchbay.runner/1 of one engine. Goes on with it for the sequences of a
// propose(), and keeps what it has computed of them in step with the target. Engine-internal.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/speculation/draft_load.hpp"
#include "engine/speculation/draft_sampling.hpp"
#include "engine/speculation/draft_spans.hpp"
#include "engine/speculation/draft_turns.hpp"
#include "execution/draft_passes.hpp"
#include "execution/executor.hpp"

namespace patchbay {
class Clock;
}

namespace patchbay::kv {
class KvCache;
}

namespace patchbay::engine {

class DraftKvTable;
class SampleRowBuilder;

class DraftModel {
  public:
    explicit DraftModel(const DraftLoad::Context&);
    DraftModel(const DraftModel&) = delete;
    DraftModel& operator=(const DraftModel&) = delete;

    const pb_runner& service() const { return service_; }
    DraftLoad& opened() { return load_; } // while the engine is made [control]
    const DraftLoad& opened() const { return load_; }

    struct Parts {
        execution::DraftPasses& passes;   // its own
        kv::KvCache& kv;
        const host::Slot& sampler;        // the engine's
        std::span<const TokenId> eos;     // for made-up tokens
        Clock& clock;
        const SampleRowBuilder& rows;
        DraftKvTable& draft_kv;
    };
    void start(const Parts&); // the runner is made

    // ---- steps [step]
    // Of `count` drafts as many as it reaches and as there are pages for, which are taken. `running`: sequences, each
    // of which is left a block.
    uint32_t make_room(Sequence&, uint32_t count, size_t running);
    // Around a propose(): the sequences that are drafted for, and all that the target has computed, in their order.
    using Row = DraftTurns::Row;
    void begin(std::span<const Row>, std::vector<Sequence*> all);
    // What the target has computed and it has not yet, it computes now, unless a pass did already.
    Result<> end();
    // Of the sequence's tokens those that neither model has to compute any more.
    uint32_t computed_by_both(const Sequence&) const;
    bool keeps_kv() const { return load_.form().keeps_kv(); } // else it need not follow the target

    struct Work { // since begin()
        uint32_t passes = 0, tokens = 0;
        uint64_t ns = 0;
    };
    const Work& work() const { return work_; }

  private:
    struct Started {
        Started(const Parts& p, const DraftForm& form)
            : parts(p), spans(form, p.draft_kv, p.passes.max_tokens()),
              sampling({form, p.sampler, p.rows, p.eos}) {}
        const Parts parts;
        DraftSpans spans;
        DraftSampling sampling;
    };

    Result<> forward(pb_runner_batch&);
    Result<> check_head_pass(const pb_runner_batch&) const;
    Result<runner::SampledRows> run_pass(); // over the spans, of the rows
    Result<execution::StepOutput> compute(bool on_device);
    static pb_status answer(DraftModel&, const Result<>&, pb_str* why);

    DraftLoad load_;
    std::optional<Started> started_;
    pb_runner service_{};
    std::string why_;
    // ---- the propose() under way
    bool in_propose_ = false;
    DraftTurns turns_;
    Work work_;
    runner::Batch batch_; // of the pass under way
};

}  // namespace patchbay::engine
