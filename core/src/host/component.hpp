// A live object of a plugin, and typed views of it a kind. The code outlives the object by construction.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "host/schema.hpp"
#include "patchbay/abi.h"
#include "patchbay/abi/attention.h"
#include "patchbay/abi/device.h"
#include "patchbay/abi/model.h"
#include "patchbay/abi/proposer.h"
#include "patchbay/abi/sampler.h"
#include "patchbay/abi/scheduler.h"
#include "patchbay/abi/services.h"

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
    const Library& library() const;
    Result<std::string> save() const; // "" of a stateless one
    Result<> load(const std::string& schema, std::string_view bytes);

    // Turns the status of one of its calls into a failure: "scheduler 'fcfs': plan: <why>".
    Result<> check(pb_status, const char* call) const;
    std::string why() const; // what it said of its latest failure, which is then forgotten

    void keep(std::shared_ptr<void> what); // until after the object is gone

  private:
    struct Parts;
    Failure failure(pb_status, const char* call) const;
    Component(std::unique_ptr<Parts>, const pb_component&);
    const pb_component& type_;
    void* self_ = nullptr; // null: it was not made
    std::unique_ptr<Parts> parts_;
};

// A component and its vtable, called as `view.table->plan(view.self(), …)`.
template <class Table>
struct Typed {
    std::unique_ptr<Component> component;
    const Table* table = nullptr;
    void* self() const { return component->self(); }
    explicit operator bool() const { return component != nullptr; }
};

using Scheduler = Typed<pb_scheduler>;
using Sampler = Typed<pb_sampler>;
using Proposer = Typed<pb_proposer>;
using Attention = Typed<pb_attention>;
using Model = Typed<pb_model>;
using Device = Typed<pb_device>;

}  // namespace patchbay::host
