#include "conformance/run.hpp"

#include <exception>

#include "base/refusals.hpp"
#include "host/private_copy.hpp"

namespace patchbay::conformance {
namespace {

using What = Outcome::What;

// What Library::open() looked at when it refuses nothing.
constexpr const char* kTableChecks[] = {"abi.entry", "abi.magic", "abi.version", "abi.complete"};
constexpr const char* kComponentTableChecks[] = {"component.complete", "component.kind",   "component.revision",
                                                 "component.name",     "component.vtable", "component.state_functions",
                                                 "component.extensions",      "component.schema"};

// A C function that throws has broken the contract: nothing may be thrown through the wall.
template <class F>
Outcome caught(F&& f) {
    try {
        return f();
    } catch (const std::exception& e) {
        return fail(std::string("an exception came out of a C function: ") + e.what());
    } catch (...) {
        return fail("an exception came out of a C function");
    }
}

class Run {
  public:
    Run(const Listener& listener, const std::string& only) : listener_(listener), only_(only) {}

    template <class F>
    Outcome check(const std::string& component, const std::string& name, F&& f) {
        listener_.begin(component, name);
        const Outcome outcome = caught(f);
        listener_.end(outcome);
        failed_ |= outcome.what == What::kFailed;
        return outcome;
    }
    bool failed() const { return failed_; }

    // sha256: of its bytes; empty: any.
    std::shared_ptr<host::Library> open(const std::filesystem::path& path, const std::string& sha256) {
        const auto readable = [&]() -> Outcome {
            PB_CHECK(host::file_sha256(path));
            return {};
        };
        if (check("", "file.readable", readable).what != What::kOk) return nullptr;
        host::LoadFault fault;
        std::shared_ptr<host::Library> library;
        check("", "file.loads", [&]() -> Outcome { // initialisers run now
            auto opened = host::Library::open(path, sha256, &fault);
            if (opened) library = *std::move(opened);
            else if (fault.check == "file.loads") return fail(fault.reason);
            return {};
        });
        if (!library && !failed_) check("", fault.check, [&]() -> Outcome { return fail(fault.reason); });
        return library;
    }

    // Why it cannot run on this machine; empty: it can.
    std::string component(Subject& subject) {
        const std::string kind = host::kind_word(subject.type().kind), who = kind + "/" + subject.type().name;
        for (const char* name : kComponentTableChecks) check(who, name, [] { return Outcome(); });
        bool unavailable = false;
        const Outcome made = check(who, "component.create", [&]() -> Outcome {
            auto component = subject.make(1, &unavailable);
            if (component) return {};
            if (unavailable) return Outcome::skip(component.error());
            const std::string keys = subject.required_keys();
            if (!keys.empty()) return Outcome::skip("it needs settings for " + keys + ": " + component.error());
            return component.failure();
        });
        if (unavailable) return made.reason;
        if (made.what != What::kOk) return "";
        for (const Check& c : life_checks())
            if (wants(c)) check(who, c.name, [&] { return c.run(subject); });
        bool answers = true; // the first check of a suite is the ground of the others
        for (const Check& c : suite_of(kind).checks) {
            if (!wants(c)) continue;
            const Outcome o = check(
                who, c.name, [&] { return answers ? c.run(subject) : Outcome::skip("the checks before it failed"); });
            if (&c == suite_of(kind).checks.data()) answers = o.what != What::kFailed;
        }
        return "";
    }

  private:
    bool wants(const Check& c) const { return only_.empty() || only_ == c.name; }

    const Listener& listener_;
    const std::string only_; // a check's name
    bool failed_ = false;
};

}  // namespace

std::optional<host::Manifest> run_all(const std::filesystem::path& path,
                                      const std::optional<host::ProbedComponent>& only, const Listener& listener,
                                      const std::string& check) {
    Run run(listener, check);
    const auto library = run.open(path, only ? only->sha256 : "");
    if (!library) return std::nullopt;
    for (const char* name : kTableChecks) run.check("", name, [] { return Outcome(); });
    const pb_plugin& plugin = library->plugin();
    host::Manifest manifest;
    manifest.library = path;
    manifest.name = plugin.name;
    manifest.version = plugin.version;
    manifest.build = plugin.build;
    manifest.sha256 = library->sha256();
    manifest.abi_major = plugin.abi_major;
    manifest.abi_minor = plugin.abi_minor;
    for (const host::OwnComponent& own : (*library).components()) {
        const pb_component& type = own.type();
        if (only && (only->kind != host::kind_word(type.kind) || only->name != type.name)) continue;
        Subject subject(library, type, only ? only->settings : host::Settings{});
        manifest.components.push_back(host::describe(type));
        manifest.components.back().unavailable = run.component(subject);
    }
    if (only && manifest.components.empty())
        run.check("", "component.found", [&]() -> Outcome {
            return not_found("it holds no " + only->kind + " '" + only->name + "'");
        });
    if (run.failed()) return std::nullopt;
    return manifest;
}

std::vector<std::string> check_names() {
    std::vector<std::string> out{"file.readable", "file.loads", "component.create"};
    out.insert(out.end(), std::begin(kTableChecks), std::end(kTableChecks));
    out.insert(out.end(), std::begin(kComponentTableChecks), std::end(kComponentTableChecks));
    const auto add = [&](std::span<const Check> checks) {
        for (const Check& c : checks) out.emplace_back(c.name);
    };
    add(life_checks());
#define PB_NAMES(name, word, Type) add(suite_of(#word).checks);
    PB_EACH_KIND(PB_NAMES)
#undef PB_NAMES
    return out;
}

}  // namespace patchbay::conformance
