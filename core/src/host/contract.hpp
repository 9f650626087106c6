// The kinds and extensions that this host knows: ids, revisions, and plugins' tables in this host's size. A new
// kind is a line of abi/kinds.h, a new extension one of the list below; each has a missing().
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "patchbay/abi/kinds.h"

// X(NAME, table): ids PB_NAME, revisions PB_NAME_REVISION.
#define PB_EACH_EXTENSION(X)                      \
    X(CONFIGURE, pb_configure)                    \
    X(SAMPLER_DEVICE, pb_sampler_device)          \
    X(MODEL_DRAFT_HEAD, pb_draft_head)            \
    X(MODEL_CONFIG_KEYS, pb_model_config_keys)    \
    X(DEVICE_GRAPHS, pb_device_graphs)            \
    X(DEVICE_ASYNC, pb_device_async)              \
    X(DEVICE_COLLECTIVES, pb_device_collectives)  \
    X(DEVICE_OFFLOAD, pb_device_offload)          \
    X(DEVICE_LIMITS, pb_device_limits)            \
    X(DEVICE_SIMULATION, pb_device_simulation)

namespace patchbay::host {

struct ContractPart {
    const char* id;
    uint32_t revision;
    bool is_released; // its revision stays; else it is a draft
};
const ContractPart* find_kind(std::string_view id);      // null: this host does not know it
const ContractPart* find_extension(std::string_view id); // likewise

// A component's table and its vtable as this host knows them: what a shorter one lacks is null. Stays where it is.
class OwnComponent {
  public:
    explicit OwnComponent(const pb_component&); // whose struct_size covers its kind and vtable
    OwnComponent(const OwnComponent&) = delete;
    OwnComponent& operator=(const OwnComponent&) = delete;
    const pb_component& type() const { return type_; }
    // What its vtable lacks: "lacks propose"; empty: every function that the host calls without a check is there.
    const std::string& vtable_fault() const { return vtable_fault_; }

  private:
#define PB_TABLE(name, word, Type) , pb_##word
    std::variant<std::monostate PB_EACH_KIND(PB_TABLE)> vtable_; // monostate: of an unknown kind
#undef PB_TABLE
    pb_component type_;
    std::string vtable_fault_;
};

// The tables of an instance's extensions, likewise.
class ExtensionTables {
  public:
    Result<> read(const pb_component&, void* self);
    template <class Table>
    const Table* get() const { // null: it has none
        const auto& table = std::get<std::optional<Table>>(tables_);
        return table ? &*table : nullptr;
    }

  private:
#define PB_TABLE(name, table) std::optional<table>,
    std::tuple<PB_EACH_EXTENSION(PB_TABLE) std::monostate> tables_;
#undef PB_TABLE
};

std::vector<std::string> hooks_of(const pb_component&); // the functions of its vtable, which is of this host's size

// Entry i of a component's lists, whatever stride they were built with.
pb_param param_of(const pb_component&, uint32_t i);
pb_extension extension_of(const pb_component&, uint32_t i);

template <class Table>
inline constexpr bool is_extension = false;
#define PB_IS_EXTENSION(name, table) \
    template <>                      \
    inline constexpr bool is_extension<table> = true;
PB_EACH_EXTENSION(PB_IS_EXTENSION)
#undef PB_IS_EXTENSION

}  // namespace patchbay::host
