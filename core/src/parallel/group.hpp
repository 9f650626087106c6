// Rank 0's part in serving one engine with several ranks. They load what it sends, agree, and compute each batch
// that this rank computes. Made before the model is loaded; its end is theirs.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "parallel/hub.hpp"
#include "parallel/session.hpp"
#include "runner/ranks.hpp"

namespace patchbay::parallel {

// Where the store has a rank's answer to a RankSwap.
std::string swap_key(uint64_t number, uint32_t rank);

// Where the devices' keys are in the store.
std::string device_key(uint64_t connection, const char* key);

struct Broadcast { // of one step
    uint64_t bytes = 0, ns = 0;
};

class Group final : public runner::Ranks {
  public:
    // Sends the ranks what to load.
    static Result<std::unique_ptr<Group>> begin(std::shared_ptr<Hub>, const Begin&);
    ~Group() override;

    const pb_group& wire() const override { return wire_; }
    void watch(std::function<void()> disconnect) override { hub_->watch(std::move(disconnect)); }
    Result<uint32_t> agree_blocks(uint32_t ours) override; // the minimum over all ranks
    // Refuses ranks that would not compute the same, and names the difference.
    Result<> check_equal(const std::vector<Fact>& ours);
    Result<> loaded(); // waits until every rank is ready for steps
    Result<> check() const override { return hub_->check(); }
    // The failure of another rank that explains one of this rank's own, if there is one or may still be one.
    Failure known_cause(const Failure& fault) const;
    // The same for a step. If the fault is this rank's alone, the other ranks may be one step ahead or late afterwards:
    // no further step is taken.
    Failure cause(const Failure& fault);

    Result<> broadcast(const std::vector<runner::BatchRow>&, std::span<const kv::PageCopy>, Hub::IfItFails,
                       const Clock&);
    // Of a step that is redone if it fails: waits until all ranks have computed it, or for the first that fails in it.
    Result<> wait_for_step() { return hub_->wait_for_step(); }
    // It failed, here or on another rank: all ranks give it up and connect their devices anew; `device` does it here.
    // `fault` becomes why it failed. A failure: the ranks cannot continue.
    Result<> reconnect(Failure& fault, const std::function<Result<>()>& device);
    // What the other ranks do for a swap, in its turn between steps. done(): of kPrepare and kUse, waits for all of
    // them, as long as loading or a step may take; the failure is the first one's. [any thread]
    Result<uint64_t> order(RankSwap);
    Result<> done(uint64_t order, RankSwap::Verb);
    const Broadcast& latest() const { return latest_; }
    std::vector<RankInfo> ranks() const { return hub_->ranks(); }

  private:
    explicit Group(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}

    static pb_status set(void* self, const char* key, const void* value, uint64_t bytes);
    static pb_status get(void* self, const char* key, void* out, uint64_t* bytes);

    std::shared_ptr<Hub> hub_;
    bool began_ = false; // else the ranks serve another engine, or none
    std::string address_;
    uint64_t connection_ = 0; // of the devices: how often they have connected anew
    pb_group wire_{};
    Broadcast latest_;
    std::atomic<uint64_t> orders_ = 0;
    std::string out_of_step_; // since this fault; empty: all ranks are at the same step
};

}  // namespace patchbay::parallel
