// The quick conformance suites: small named checks of one component each, run by the probe and by tests. A check looks
// at one rule alone, so that a plugin with one fault fails one check.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "conformance/lent_memory.hpp"
#include "conformance/made_up_model.hpp"
#include "host/component.hpp"
#include "host/inner_devices.hpp"
#include "host/library.hpp"
#include "host/registry.hpp"

namespace patchbay::conformance {

// Makes objects of the component under test, with the settings given, else the defaults, and the services that a host
// offers.
class Subject {
  public:
    Subject(std::shared_ptr<host::Library> library, const pb_component& type, host::Settings settings = {})
        : library_(std::move(library)), type_(type), settings_(std::move(settings)) {}

    const pb_component& type() const { return type_; }
    template <class Table>
    const Table& table() const { return *static_cast<const Table*>(type_.vtable); }
    // threads: 1 or 2. `unavailable` as in Component::create.
    Result<std::unique_ptr<host::Component>> make(uint32_t threads = 1, bool* unavailable = nullptr);
    // The model that proposers are offered, one for all objects.
    MadeUpModel& runner() { return runner_; }
    // What is done to each object that make() made, before it is used.
    void prepare_by(std::function<Result<>(host::Component&)> f) { prepare_ = std::move(f); }
    LentMemory& lent() { return lent_; } // goes after all objects of the checks
    // Of that name, with its default settings: from the same library, or else beside it and installed. Null, and why:
    // it cannot be had here.
    const host::Component* device(const std::string& name, std::string& why);
    // Keys that have no default and were not given; they get the least value that the schema allows.
    std::string required_keys() const;

  private:
    Result<std::unique_ptr<host::Component>> make_bare(uint32_t threads, bool* unavailable);
    const Result<host::Registry>& registry() const; // of what lies beside the library and of what is installed
    // Devices may stand before others.
    Result<std::shared_ptr<host::InnerDevices>> inner_devices(const host::Services&) const;

    std::shared_ptr<host::Library> library_;
    const pb_component& type_;
    host::Settings settings_;
    ThreadPool one_{1}, two_{2};
    MadeUpModel runner_;
    LentMemory lent_;
    std::function<Result<>(host::Component&)> prepare_;
    std::unique_ptr<host::Component> device_; // the latest that was asked for
};

struct Outcome {
    enum class What { kOk, kFailed, kSkipped };
    Outcome() = default;
    Outcome(Failure f) : what(What::kFailed), reason(std::move(f.text)) {}
    Outcome(Result<> r) {
        if (!r) *this = r.failure();
    }
    static Outcome skip(std::string why) {
        Outcome o;
        o.what = What::kSkipped;
        o.reason = std::move(why);
        return o;
    }
    What what = What::kOk;
    std::string reason;
};

struct Check {
    const char* name;
    const char* rule; // one line, for `patchbay plugin test` and docs
    Outcome (*run)(Subject&);
};

struct Suite {
    std::span<const Check> checks;
    // Uses an object as a host would, so that it has a state worth saving.
    Result<> (*exercise)(Subject&, const host::Component&);
};

Suite suite_of(std::string_view kind);          // "scheduler"; empty for a kind without one
std::span<const Check> life_checks();           // of every kind: create, destroy, save, load

#define PB_SUITE(name, word, Type) extern const Suite k##Type;
PB_EACH_KIND(PB_SUITE)
#undef PB_SUITE

}  // namespace patchbay::conformance
