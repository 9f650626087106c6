#include "host/contract.hpp"

#include <algorithm>
#include <iterator>

#include "base/refusals.hpp"
#include "patchbay/abi/services.h"
#include "patchbay/sizes.hpp"

namespace patchbay::host {
namespace {

constexpr bool all(auto... f) { return ((f != nullptr) && ...); }

bool is_complete(std::monostate) { return false; }
bool is_complete(const pb_scheduler& t) { return all(t.plan); }
bool is_complete(const pb_sampler& t) { return t.device || t.sample; }
bool is_complete(const pb_proposer& t) { return all(t.propose); }
bool is_complete(const pb_kv_policy& t) { return all(t.adopt, t.update, t.choose); }
bool is_complete(const pb_attention& t) {
    return all(t.describe, t.bind, t.unbind, t.plan, t.append_kv, t.run);
}
bool is_complete(const pb_model& t) {
    return all(t.architectures, t.load_config, t.weight_count, t.weight, t.fill, t.kv_spec, t.forward);
}
bool is_complete(const pb_device& t) {
    return all(t.info, t.alloc, t.free, t.to_device, t.to_host, t.prepare, t.release, t.weight_bytes, t.ops,
               t.begin_step, t.end_step, t.copy_page);
}

// The names of the functions that a table has.
#define PB_HOOK(name) \
    if (t.name) out.push_back(#name);
void list_hooks(std::vector<std::string>& out, const pb_scheduler& t) {
    PB_HOOK(plan) PB_HOOK(arrived) PB_HOOK(finished) PB_HOOK(resync)
}
void list_hooks(std::vector<std::string>& out, const pb_sampler& t) {
    PB_HOOK(sample) PB_HOOK(process) PB_HOOK(accepts)
}
void list_hooks(std::vector<std::string>& out, const pb_proposer& t) {
    PB_HOOK(propose) PB_HOOK(observe) PB_HOOK(finished)
}
void list_hooks(std::vector<std::string>& out, const pb_kv_policy& t) {
    PB_HOOK(adopt) PB_HOOK(update) PB_HOOK(choose)
}
void list_hooks(std::vector<std::string>& out, const pb_attention& t) {
    PB_HOOK(describe) PB_HOOK(bind) PB_HOOK(unbind) PB_HOOK(plan) PB_HOOK(append_kv) PB_HOOK(run) PB_HOOK(cost)
}
void list_hooks(std::vector<std::string>& out, const pb_model& t) {
    PB_HOOK(load_config) PB_HOOK(weight_count) PB_HOOK(weight) PB_HOOK(fill) PB_HOOK(kv_spec) PB_HOOK(forward)
}
void list_hooks(std::vector<std::string>& out, const pb_device& t) {
    PB_HOOK(info) PB_HOOK(alloc) PB_HOOK(free) PB_HOOK(to_device) PB_HOOK(to_host) PB_HOOK(prepare) PB_HOOK(release)
    PB_HOOK(weight_bytes) PB_HOOK(ops) PB_HOOK(begin_step) PB_HOOK(end_step) PB_HOOK(copy_page) PB_HOOK(queue)
}
#undef PB_HOOK

bool is_complete(const pb_configure& t) { return all(t.configure); }
bool is_complete(const pb_sampler_device& t) { return all(t.plan, t.enqueue); }
bool is_complete(const pb_draft_head& t) { return all(t.max_draft_depth); }
bool is_complete(const pb_model_config_keys& t) { return all(t.each); }
bool is_complete(const pb_device_graphs& t) {
    return all(t.graph_begin, t.graph_end, t.graph_launch, t.graph_free, t.graph_bytes);
}
bool is_complete(const pb_device_async& t) { return all(t.submit_step, t.wait_step); }
bool is_complete(const pb_device_collectives& t) { return all(t.connect, t.disconnect); }
bool is_complete(const pb_device_offload& t) {
    return all(t.host_alloc, t.host_free, t.page_to_host, t.page_to_device);
}
bool is_complete(const pb_device_limits& t) { return all(t.measure); }
bool is_complete(const pb_device_simulation& t) { return all(t.charge, t.charged_ns); }

template <size_t N>
const ContractPart* find(const ContractPart (&parts)[N], std::string_view id) {
    for (const ContractPart& part : parts)
        if (id == part.id) return &part;
    return nullptr;
}

#define PB_ID(name, id) id,
constexpr std::string_view kReleased[] = {PB_EACH_RELEASED(PB_ID)};
#undef PB_ID
constexpr bool is_released(std::string_view id) {
    return std::find(std::begin(kReleased), std::end(kReleased), id) != std::end(kReleased);
}

// What `given` points to, in this host's size; it begins with its struct_size.
template <class Table>
Table own(const void* given) {
    Table out = widened<Table>(given, *static_cast<const uint32_t*>(given));
    out.struct_size = sizeof(Table);
    return out;
}

}  // namespace

#define PB_PART(name, ...) {PB_##name, PB_##name##_REVISION, is_released(PB_##name)},
const ContractPart* find_kind(std::string_view id) {
    static constexpr ContractPart kKinds[] = {PB_EACH_KIND(PB_PART)};
    return find(kKinds, id);
}

const ContractPart* find_extension(std::string_view id) {
    static constexpr ContractPart kExtensions[] = {PB_EACH_EXTENSION(PB_PART)};
    return find(kExtensions, id);
}
#undef PB_PART

OwnComponent::OwnComponent(const pb_component& given) : type_(own<pb_component>(&given)) {
    const std::string_view kind = given.kind ? given.kind : "";
#define PB_OWN(name, word, Type) \
    if (kind == PB_##name && given.vtable) type_.vtable = &vtable_.emplace<pb_##word>(own<pb_##word>(given.vtable));
    PB_EACH_KIND(PB_OWN)
#undef PB_OWN
}

bool OwnComponent::is_complete() const {
    return std::visit([](const auto& table) { return host::is_complete(table); }, vtable_);
}

Result<> ExtensionTables::read(const pb_component& type, void* self) {
    if (!type.extension) return {};
    for (uint32_t i = 0; i < type.extension_count; ++i) {
        const std::string_view id = extension_of(type, i).id;
        const void* const given = find_extension(id) ? type.extension(self, id.data()) : nullptr;
        if (!given) continue;
        bool complete = true;
#define PB_READ(name, table)                                                           \
    if (id == PB_##name)                                                               \
        complete = is_complete(std::get<std::optional<table>>(tables_).emplace(own<table>(given)));
        PB_EACH_EXTENSION(PB_READ)
#undef PB_READ
        if (!complete) return invalid("its table of " + std::string(id) + " lacks a function");
    }
    return {};
}

std::vector<std::string> hooks_of(const pb_component& c) {
    std::vector<std::string> out;
    const std::string_view kind = c.kind;
#define PB_LIST(name, word, Type) \
    if (kind == PB_##name) list_hooks(out, *static_cast<const pb_##word*>(c.vtable));
    PB_EACH_KIND(PB_LIST)
#undef PB_LIST
    return out;
}

pb_param param_of(const pb_component& c, uint32_t i) {
    return widened<pb_param>(reinterpret_cast<const char*>(c.params) + size_t{i} * c.param_stride, c.param_stride);
}

pb_extension extension_of(const pb_component& c, uint32_t i) {
    return widened<pb_extension>(reinterpret_cast<const char*>(c.extensions) + size_t{i} * c.extension_stride,
                                 c.extension_stride);
}

}  // namespace patchbay::host
