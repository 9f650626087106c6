// Policies that a test plays, made in this process without a library: a scheduler, a sampler and a proposer that do
// what a test says, and remember what they were given.
#pragma once
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "host/slot.hpp"
#include "patchbay/sdk/proposer.hpp"
#include "patchbay/sdk/sampler.hpp"
#include "patchbay/sdk/scheduler.hpp"

namespace patchbay::engine::testing {

struct FakeScheduler {
    std::function<void(const pb_scheduler_in&, pb_scheduler_out&)> plan; // empty: it plans nothing
    std::vector<uint64_t> arrived;                           // ids, in their order
    std::vector<pb_finished> finished;
    std::vector<std::pair<uint32_t, uint32_t>> resyncs;      // sequences that run, that wait

    static pb_status plan_of(void* self, const pb_scheduler_in* in, pb_scheduler_out* out) {
        return detail::enter<FakeScheduler>(self, [&](FakeScheduler& s) {
            out->item_count = out->preempt_count = 0;
            if (s.plan) s.plan(*in, *out);
        });
    }
    static FakeScheduler& of(void* self) { return static_cast<detail::Box<FakeScheduler>*>(self)->value; }
    static void arrived_of(void* self, const pb_sequence* s, uint32_t) { of(self).arrived.push_back(s->id); }
    static void finished_of(void* self, const pb_finished* f) { of(self).finished.push_back(*f); }
    static void resync_of(void* self, const pb_scheduler_in* in) {
        of(self).resyncs.emplace_back(in->running_count, in->waiting_count);
    }
    static constexpr pb_scheduler table{sizeof(pb_scheduler), 0, plan_of, arrived_of, finished_of, resync_of};
};
extern const pb_component kFakeScheduler;

struct FakeSampler {
    std::function<void(SampleBatch&)> sampled, processed;          // empty: all tokens are 0; logits stay as they are
    std::function<void(const pb_sampling_params&)> accepted;       // throws what it does not accept
    void sample(SampleBatch& b) {
        std::fill_n(b.raw.tokens, b.size(), 0);
        if (sampled) sampled(b);
    }
    void process(SampleBatch& b) {
        if (processed) processed(b);
    }
    void accepts(const pb_sampling_params& p) {
        if (accepted) accepted(p);
    }
};
extern const pb_component kFakeSampler;

struct FakeProposer {
    std::function<void(ProposeBatch&)> proposed; // empty: it proposes nothing
    std::vector<std::array<uint64_t, 3>> observed;  // ids, drafts verified, drafts accepted
    std::vector<uint64_t> ended;
    void propose(ProposeBatch& b) {
        if (proposed) proposed(b);
    }
    void observe(uint64_t id, uint32_t verified, uint32_t accepted) { observed.push_back({id, verified, accepted}); }
    void finished(uint64_t id) { ended.push_back(id); }
};
extern const pb_component kFakeProposer;

template <class T>
struct Played {
    std::unique_ptr<host::Component> component;
    T& policy; // as long as the component lives
};
template <class T>
Played<T> play(const pb_component& type) {
    auto made = host::Component::create(nullptr, type, {}, {});
    if (!made) throw std::runtime_error(made.error());
    T& policy = static_cast<detail::Box<T>*>((*made)->self())->value;
    return {*std::move(made), policy};
}
// The first one in a slot.
template <class T>
T& install(host::Slot& slot, const pb_component& type) {
    Played<T> made = play<T>(type);
    slot.install(std::move(made.component), {.kind = {}, .name = "fake", .version = "1.0.0", .sha256 = {},
                                             .build = {}, .path = {}});
    return made.policy;
}

}  // namespace patchbay::engine::testing
