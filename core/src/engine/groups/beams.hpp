// Beam search in the engine. Each beam is a sequence, and all beams of a search are admitted and preempted together.
// One that has computed its last token is idle until the others have theirs; then the search chooses, and the sequences
// take over the KV of the beams that go on: pages are shared, and copied by the first to write. Schedulers see running
// sequences of one `group`.
#pragma once
#include <optional>
#include <vector>

#include "engine/groups/beam_group.hpp"
#include "engine/groups/beam_room.hpp"
#include "engine/groups/beam_search.hpp"
#include "engine/output/outputs.hpp"
#include "engine/request/sequences.hpp"
#include "engine/sampling/step_samples.hpp"
#include "engine/speculation/draft_kv.hpp"

namespace patchbay::config {
struct EngineSettings;
}

namespace patchbay::kv {
struct BlockTable;
class KvCache;
}

namespace patchbay::engine {

struct Placed;
struct Request;
struct StepContext;

struct BeamLimits {
    const std::vector<TokenId>& eos;
    uint32_t vocab_size;
    const config::EngineSettings& settings;
    const text::Tokenizer* tokenizer = nullptr; // null: ids only
};

class BeamSearches {
  public:
    BeamSearches(const BeamLimits&, Sequences&, kv::KvCache&, DraftKvTable&, StepContext&);

    // ---- requests
    Result<> check(const Request&) const;
    uint32_t candidates_wanted(const SamplingParams&) const; // that each beam brings for a step
    void add(const std::vector<Sequence*>& slots);           // of one request
    void leave(RequestId request) { groups_.erase(request); }
    bool any_running() const;

    // ---- scheduling
    BeamRoom& room() { return room_; }

    // ---- placement
    bool preempted_now(const Sequence&) const; // in the step under way, with another one of its search
    std::vector<Sequence*> seat(const Sequence& first); // all run; those that the scheduler has not heard of
    void may_be_placed(const Sequence&);  // though it was preempted in this step: by no plan
    Sequence* preempt(const Sequence&);   // all; the one that is to wait. null: they were, in this step
    // Tokens after which it keeps all of a sliding window's pages. Computed anew, the first of a search is what the
    // others fork from, at the end of what they have in common with it; UINT32_MAX: none does.
    uint32_t needed_from(const Sequence&) const;

    // ---- commit
    struct Fault {
        std::string why; // empty: the search is over
    };
    // The row of one beam is back. Nothing: the search goes on.
    std::optional<Fault> take(const Placed&, const StepSamples&, const std::string& sampler);
    struct Ending {
        Sequence* sequence;
        FinishReason reason;
        std::string why;
        StatusCode code = StatusCode::kFailed; // of an error
    };
    std::vector<Ending> end(const Sequence&, const Fault&); // of all sequences of its search, with their outputs

  private:
    BeamGroup* find(const Sequence&) const;
    void free_outside_window(kv::BlockTable&, uint32_t computed);
    void fork(BeamGroup&);
    void choose(BeamGroup&);
    void move(BeamGroup&, const std::vector<uint32_t>& parents);

    const BeamLimits limits_;
    Sequences& sequences_;
    kv::KvCache& kv_;
    DraftKvTable& draft_kv_;
    StepContext& context_;
    BeamGroups groups_;
    BeamRoom room_;
};

}  // namespace patchbay::engine
