#include "host/contract.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "base/refusals.hpp"
#include "base/words.hpp"
#include "patchbay/abi/services.h"
#include "patchbay/sizes.hpp"

namespace patchbay::host {
namespace {

// The functions that the host calls without a check and that are not there: "propose".
using Names = std::vector<std::string>;
struct Needed {
    const char* name;
    bool is_there;
};
Names missing_of(std::initializer_list<Needed> all) {
    Names out;
    for (const Needed& f : all)
        if (!f.is_there) out.emplace_back(f.name);
    return out;
}
#define PB_NEED(name) \
    Needed { #name, t.name != nullptr }
Names missing(const pb_scheduler& t) { return missing_of({PB_NEED(plan)}); }
Names missing(const pb_sampler& t) { return t.device ? Names{} : missing_of({PB_NEED(sample)}); }
Names missing(const pb_proposer& t) { return missing_of({PB_NEED(propose)}); }
Names missing(const pb_kv_policy& t) { return missing_of({PB_NEED(adopt), PB_NEED(update), PB_NEED(choose)}); }
Names missing(const pb_attention& t) {
    return missing_of({PB_NEED(describe), PB_NEED(bind), PB_NEED(unbind), PB_NEED(plan), PB_NEED(append_kv),
                       PB_NEED(run)});
}
Names missing(const pb_model& t) {
    return missing_of({PB_NEED(architectures), PB_NEED(load_config), PB_NEED(weight_count), PB_NEED(weight),
                       PB_NEED(fill), PB_NEED(kv_spec), PB_NEED(forward)});
}
Names missing(const pb_device& t) {
    return missing_of({PB_NEED(info), PB_NEED(alloc), PB_NEED(free), PB_NEED(to_device), PB_NEED(to_host),
                       PB_NEED(prepare), PB_NEED(release), PB_NEED(weight_bytes), PB_NEED(ops), PB_NEED(begin_step),
                       PB_NEED(end_step), PB_NEED(copy_page)});
}
Names missing(const pb_configure& t) { return missing_of({PB_NEED(configure)}); }
Names missing(const pb_sampler_device& t) { return missing_of({PB_NEED(plan), PB_NEED(enqueue)}); }
Names missing(const pb_draft_head& t) { return missing_of({PB_NEED(max_draft_depth)}); }
Names missing(const pb_model_config_keys& t) { return missing_of({PB_NEED(each)}); }
Names missing(const pb_device_graphs& t) {
    return missing_of({PB_NEED(graph_begin), PB_NEED(graph_end), PB_NEED(graph_launch), PB_NEED(graph_free),
                       PB_NEED(graph_bytes)});
}
Names missing(const pb_device_async& t) { return missing_of({PB_NEED(submit_step), PB_NEED(wait_step)}); }
Names missing(const pb_device_collectives& t) { return missing_of({PB_NEED(connect), PB_NEED(disconnect)}); }
Names missing(const pb_device_offload& t) {
    return missing_of({PB_NEED(host_alloc), PB_NEED(host_free), PB_NEED(page_to_host), PB_NEED(page_to_device)});
}
Names missing(const pb_device_limits& t) { return missing_of({PB_NEED(measure)}); }
Names missing(const pb_device_simulation& t) { return missing_of({PB_NEED(charge), PB_NEED(charged_ns)}); }
#undef PB_NEED

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

// What `given`, which the host knows as `table`, a `type`, lacks; empty: nothing.
template <class Table>
std::string fault_of(const Table& table, const void* given, std::string_view type) {
    const Names names = missing(table);
    if (names.empty()) return "";
    const uint32_t size = *static_cast<const uint32_t*>(given);
    if (size < sizeof(Table))
        return "says struct_size " + std::to_string(size) + ", expected sizeof(" + std::string(type) + "), " +
               std::to_string(sizeof(Table)) + ", and so lacks " + joined(names);
    return "lacks " + joined(names);
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
#define PB_OWN(name, word, Type)                                                  \
    if (kind == PB_##name && given.vtable) {                                      \
        const auto& table = vtable_.emplace<pb_##word>(own<pb_##word>(given.vtable)); \
        vtable_fault_ = fault_of(table, given.vtable, "pb_" #word);               \
        type_.vtable = &table;                                                    \
    }
    PB_EACH_KIND(PB_OWN)
#undef PB_OWN
}

Result<> ExtensionTables::read(const pb_component& type, void* self) {
    if (!type.extension) return {};
    for (uint32_t i = 0; i < type.extension_count; ++i) {
        const std::string_view id = extension_of(type, i).id;
        const void* const given = find_extension(id) ? type.extension(self, id.data()) : nullptr;
        if (!given) continue;
        std::string fault;
#define PB_READ(name, table) \
    if (id == PB_##name) \
        fault = fault_of(std::get<std::optional<table>>(tables_).emplace(own<table>(given)), given, #table);
        PB_EACH_EXTENSION(PB_READ)
#undef PB_READ
        if (!fault.empty()) return invalid("its table of " + std::string(id) + " " + fault);
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
