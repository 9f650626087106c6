// What stands around the parts that take a step's tokens, over a part that drafts nothing and remembers what it hears.
#pragma once
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "engine/loop/aborts.hpp"
#include "engine/loop/in_flight.hpp"
#include "engine/loop/lifecycle.hpp"
#include "engine/speculation/draft_feedback.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing {

class FakeDrafting final : public DraftFeedback {
  public:
    explicit FakeDrafting(kv::KvCache& kv) : kv_(kv) {}
    ~FakeDrafting() override;
    bool keeps_pages = false;
    std::vector<std::array<uint64_t, 3>> observed; // ids, drafts verified, drafts accepted
    std::vector<RequestId> ended, freed;
    std::vector<std::unique_ptr<Sequence>> lingering;

    void observe(const Sequence& s, uint32_t verified, uint32_t accepted) override {
        observed.push_back({s.id, verified, accepted});
    }
    void free_outside_window(Sequence& s) override { freed.push_back(s.id); }
    bool lingers(const Sequence&) const override { return keeps_pages; }
    void linger(std::unique_ptr<Sequence> s) override { lingering.push_back(std::move(s)); }
    void finished(const Sequence& s) override { ended.push_back(s.id); }

  private:
    kv::KvCache& kv_;
};

struct EndingNeighbours : RowNeighbours {
    explicit EndingNeighbours(World = {});
    ~EndingNeighbours();

    Aborts aborts;
    FakeDrafting drafting{kv};
    InFlightSteps in_flight{kv, kMaxModelLen};
    Outputs outputs{nullptr, eos, kMaxModelLen, surprisals, context};
    Lifecycle lifecycle{{sequences, kv, admission, scheduler, hints, siblings, beams, in_flight, outputs, constraints,
                         prompt_logprobs, pooling, surprisals, drafting, aborts, clock, context}};
};

}  // namespace patchbay::engine::testing
