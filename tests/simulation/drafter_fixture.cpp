#include "simulation/drafter_fixture.hpp"

#include "patchbay/sdk/proposer.hpp"

namespace patchbay::engine::testing {
namespace {

class Drafter {
  public:
    void follow(Drafting& drafting) { drafting_ = &drafting; }

    pb_status propose(pb_propose_batch& batch) {
        ProposeBatch b(batch);
        if (drafting_->below(50) == 0) return PB_FAILED;
        for (uint32_t i = 0; i < b.size(); ++i) {
            const pb_propose_row& row = b.row(i);
            b.propose(i, {});
            for (uint32_t paths = b.max_paths(i); paths > 0; --paths) {
                std::vector<int32_t> drafts;
                for (uint32_t n = drafting_->below(row.max_drafts + 1); drafts.size() < n;) {
                    const int32_t token = drafting_->what_comes(row.id, row.token_count + drafts.size());
                    drafts.push_back(drafting_->below(4) == 0 ? token ^ 1 : token);
                }
                b.add_path(i, drafts);
            }
            if (b.max_paths(i) > 1 && drafting_->below(50) == 0) spoil_parents(b, i);
        }
        return PB_OK;
    }

  private:
    // A draft hangs on none that is before it.
    void spoil_parents(ProposeBatch& b, uint32_t i) {
        const uint32_t count = b.raw.counts[i], at = drafting_->below(count);
        const auto to = static_cast<int32_t>(at + drafting_->below(9));
        if (count > 0) b.raw.parents[size_t{i} * b.raw.max_drafts + at] = to;
    }

    Drafting* drafting_ = nullptr;
};

Drafter& of(void* self) { return *static_cast<Drafter*>(self); }

constexpr pb_proposer kTable{sizeof(pb_proposer), 0,
                             [](void* self, pb_propose_batch* batch) { return of(self).propose(*batch); }, nullptr,
                             nullptr};
constexpr pb_component kComponent{
    sizeof(pb_component),
    0,
    PB_PROPOSER,
    PB_PROPOSER_DIGEST,
    "drafter",
    "1.0.0",
    "for simulations",
    nullptr,
    nullptr,
    [](const pb_host*, const pb_config*, void** self) {
        *self = new Drafter;
        return pb_status{PB_OK};
    },
    [](void* self) { delete &of(self); },
    nullptr,
    nullptr,
    &kTable,
};

}  // namespace

Result<host::Proposer> drafter(Drafting& drafting) {
    PB_TRY(auto component, host::Component::create(nullptr, kComponent, {}, {}));
    of(component->self()).follow(drafting);
    return host::Proposer{std::move(component), &kTable};
}

}  // namespace patchbay::engine::testing
