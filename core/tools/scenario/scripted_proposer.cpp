#include "scenario/scripted_proposer.hpp"

#include "patchbay/sdk/proposer.hpp"

namespace patchbay::scenario {
namespace {

class Scripted {
  public:
    void follow(DraftsById& drafts) { drafts_ = &drafts; }

    pb_status propose(pb_propose_batch& batch) {
        ProposeBatch b(batch);
        for (uint32_t i = 0; i < b.size(); ++i) {
            b.propose(i, {});
            const auto drafts = drafts_->extract(b.row(i).id);
            if (drafts.empty()) continue;
            for (const Tokens& path : drafts.mapped()) b.add_path(i, path);
        }
        return PB_OK;
    }

  private:
    DraftsById* drafts_ = nullptr;
};

Scripted& of(void* self) { return *static_cast<Scripted*>(self); }

constexpr pb_proposer kTable{sizeof(pb_proposer), 0,
                             [](void* self, pb_propose_batch* batch) { return of(self).propose(*batch); }, nullptr,
                             nullptr};
constexpr pb_component kComponent{
    sizeof(pb_component),
    0,
    PB_PROPOSER,
    PB_PROPOSER_DIGEST,
    "scripted",
    "1.0.0",
    "drafts as a scenario says",
    nullptr,
    nullptr,
    [](const pb_host*, const pb_config*, void** self) {
        *self = new Scripted;
        return pb_status{PB_OK};
    },
    [](void* self) { delete &of(self); },
    nullptr,
    nullptr,
    &kTable,
};

}  // namespace

Result<host::Proposer> scripted_proposer(DraftsById& drafts) {
    PB_TRY(auto component, host::Component::create(nullptr, kComponent, {}, {}));
    of(component->self()).follow(drafts);
    return host::Proposer{std::move(component), &kTable};
}

}  // namespace patchbay::scenario
