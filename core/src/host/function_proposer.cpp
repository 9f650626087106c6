#include "host/function_proposer.hpp"

namespace patchbay::host {
namespace {

Propose& of(void* self) { return *static_cast<Propose*>(self); }

constexpr pb_proposer kTable{
    sizeof(pb_proposer), 0, [](void* self, pb_propose_batch* batch) { return of(self)(*batch); }, nullptr, nullptr};
constexpr pb_component kComponent{
    sizeof(pb_component),
    0,
    sizeof(pb_param),
    PB_PROPOSER_REVISION,
    PB_PROPOSER,
    "function",
    "1.0.0",
    "a function of the host",
    nullptr,
    nullptr,
    [](const pb_host*, const pb_config*, void** self) {
        *self = new Propose;
        return pb_status{PB_OK};
    },
    [](void* self) { delete &of(self); },
    nullptr,
    nullptr,
    &kTable,
    nullptr,
    0,
    0,
    nullptr,
};

}  // namespace

Result<Proposer> function_proposer(Propose propose) {
    PB_TRY(auto component, Component::create(nullptr, kComponent, {}, {}));
    of(component->self()) = std::move(propose);
    return Proposer{std::move(component), &kTable};
}

}  // namespace patchbay::host
