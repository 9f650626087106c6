// A live object of a plugin, and typed views of it a kind. The code outlives the object by construction.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/result.hpp"
#include "host/component_call.hpp"
#include "host/contract.hpp"
#include "host/schema.hpp"
#include "patchbay/abi.h"
#include "patchbay/abi/services.h"
#include "patchbay/sizes.hpp"

namespace patchbay::host {

class Library;

// Where components' own metrics go. [any thread]
class MetricSink {
  public:
    virtual ~MetricSink() = default;
    virtual void add(const std::string& kind, const std::string& component, const std::string& name, double amount) = 0;
    virtual void set(const std::string& kind, const std::string& component, const std::string& name, double value) = 0;
};

// What components may ask for. Pointers must outlive every component made with them; null: absent.
struct Services {
    const pb_pool* pool = nullptr;
    const pb_clock* clock = nullptr;
    MetricSink* metrics = nullptr;
    const pb_devices* devices = nullptr;
    const pb_runner* runner = nullptr;
};

class Component {
  public:
    // Checks settings against the schema, fills in defaults, constructs. `unavailable`: set if it was refused because
    // the machine lacks what it needs.
    static Result<std::unique_ptr<Component>> create(std::shared_ptr<Library>, const pb_component& type,
                                                     const Settings&, const Services&, bool* unavailable = nullptr);
    ~Component();
    Component(const Component&) = delete;
    Component& operator=(const Component&) = delete;

    const pb_component& type() const { return type_; }
    void* self() const { return self_; }
    const char* label() const; // "scheduler 'fcfs'", for as long as the component lives
    const Library* library() const; // null: its type is the host's own
    CallOwner& calls() const { return calls_; }
    Result<std::string> save() const; // "" of a stateless one
    Result<> load(const std::string& schema, std::string_view bytes);
    // Its hot parameters get these values, between two steps: all of them or none. What is not given stays.
    Result<> configure(const Settings& changes);
    Settings settings() const; // all of the schema's keys

    template <class Table>
    const Table* extension() const { // null: it has none
        return extensions_.get<Table>();
    }
    // Its vtable, or the table of an extension that it has.
    template <class Table>
    const Table* table() const {
        if constexpr (is_extension<Table>) return extension<Table>();
        else return static_cast<const Table*>(type_.vtable);
    }

    // Turns the status of one of its calls into a failure: "scheduler 'fcfs': plan: <why>".
    Result<> check(pb_status, std::string_view call) const;
    std::string why() const; // what it said of its latest failure, which is then forgotten

    void keep(std::shared_ptr<void> what); // until after the object is gone

  private:
    struct Parts;
    Component(std::unique_ptr<Parts>, const pb_component&);
    const pb_component& type_;
    void* self_ = nullptr; // null: it was not made
    mutable CallOwner calls_;
    ExtensionTables extensions_;
    std::unique_ptr<Parts> parts_;
};

// The function that a pointer to a vtable's member names: "plan" of &pb_scheduler::plan.
template <auto Function>
constexpr std::string_view call_name() {
    constexpr std::string_view signature = __PRETTY_FUNCTION__; // "… Function = &pb_scheduler::plan; …"
    constexpr std::string_view from = signature.substr(signature.find("Function = "));
    constexpr std::string_view pointer = from.substr(0, from.find_first_of(";]"));
    return pointer.substr(pointer.rfind(':') + 1);
}
static_assert(call_name<&pb_scheduler::plan>() == "plan");

template <auto Function>
constexpr bool kOnAnyThread = false; // abi.h says of it: [any]
template <>
inline constexpr bool kOnAnyThread<&pb_device_collectives::disconnect> = true;

// Calls a function of a component's tables, noted as what this thread does: call<&pb_scheduler::plan>(c, …).
template <auto Function, class... Args>
auto call(const Component& c, Args&&... args) {
    return [&]<class Table, class F>(F* Table::*) {
        const ComponentCall noted(c.label(), c.calls(), call_name<Function>(), kOnAnyThread<Function>);
        return (c.table<Table>()->*Function)(c.self(), std::forward<Args>(args)...);
    }(Function);
}
// The same of functions that return a status; a failure is what check() makes of it.
template <auto Function, class... Args>
Result<> checked(const Component& c, Args&&... args) {
    return c.check(call<Function>(c, std::forward<Args>(args)...), call_name<Function>());
}

// A component and its vtable, called as `view.call<&pb_scheduler::plan>(…)`.
template <class Table>
struct Typed {
    std::unique_ptr<Component> component;
    const Table* table = nullptr;
    void* self() const { return component->self(); }
    template <auto Function, class... Args>
    auto call(Args&&... args) const {
        return [&]<class Of, class F>(F* Of::*) {
            const Component& c = *component;
            const ComponentCall noted(c.label(), c.calls(), call_name<Function>(), kOnAnyThread<Function>);
            const Of* of = nullptr;
            if constexpr (std::is_same_v<Of, Table>) of = table;
            else of = component->extension<Of>();
            return (of->*Function)(self(), std::forward<Args>(args)...);
        }(Function);
    }
    template <auto Function, class... Args>
    Result<> checked(Args&&... args) const {
        return component->check(call<Function>(std::forward<Args>(args)...), call_name<Function>());
    }
    template <class Extension>
    const Extension* extension() const { // null: it has none
        return component->extension<Extension>();
    }
    explicit operator bool() const { return component != nullptr; }
};

#define PB_VIEW(name, word, Type) using Type = Typed<pb_##word>;
PB_EACH_KIND(PB_VIEW)
#undef PB_VIEW

}  // namespace patchbay::host
