// The policy that chooses which cached page is evicted next: it gets what happens to cached pages in bulk, before it
// chooses. One that fails costs nothing but its choice.
#pragma once
#include <vector>

#include "base/clock.hpp"
#include "engine/loop/step_context.hpp"
#include "host/component.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

class KvPolicyPort final : public kv::Evictor {
  public:
    // policy: empty: the cache keeps its own order.
    KvPolicyPort(host::KvPolicy policy, kv::KvCache&, const Clock&, StepContext&);

    const host::Component* component() const { return policy_.component.get(); } // null: there is none
    // Gives the policy all that is cached, in place of all that it knows. Before its first call, and for a swap.
    Result<> adopt();

    void cached(const kv::CachedPage&) override;
    void used(kv::BlockId) override;
    void removed(kv::BlockId) override;
    size_t choose(std::span<kv::BlockId> out) override;
    void refused(kv::BlockId) override;

  private:
    pb_kv_pages wire(const std::vector<pb_kv_page>&) const;
    void note(const pb_kv_page&);
    void update();                      // what is pending
    void count_fault(const std::string& why);

    host::KvPolicy policy_;
    const kv::KvCache& kv_;
    const Clock& clock_;
    StepContext& context_;
    std::vector<pb_kv_page> pending_; // changes that it has not got yet
    uint64_t faults_ = 0;
};

}  // namespace patchbay::engine
