#include "conformance/check.hpp"

#include <atomic>
#include <cmath>

#include "base/numbers.hpp"
#include "host/schema.hpp"

namespace patchbay::conformance {
namespace {

uint64_t count_ns(void* ctx) { return *static_cast<std::atomic<uint64_t>*>(ctx) += 1000; } // ranks are threads

// Time that only moves when it is looked at: what a component does must not hang on how busy the machine is.
const pb_clock& test_clock() {
    thread_local std::atomic<uint64_t> now = 0;
    thread_local const pb_clock clock{sizeof(pb_clock), PB_CLOCK_REVISION, &now, count_ns};
    return clock;
}

class Nowhere final : public host::MetricSink {
    void add(const std::string&, const std::string&, const std::string&, double) override {}
    void set(const std::string&, const std::string&, const std::string&, double) override {}
};

std::string least_value(const host::ParamManifest& p) {
    if (p.type == "bool") return "false";
    if (p.type == "enum") return p.choices.empty() ? "" : p.choices[0];
    if (p.type == "string") return "";
    return number_text(p.min.value_or(0));
}

}  // namespace

Result<std::unique_ptr<host::Component>> Subject::make(uint32_t threads, bool* unavailable) {
    PB_TRY(auto component, make_bare(threads, unavailable));
    if (prepare_) PB_CHECK(prepare_(*component));
    return component;
}

Result<std::unique_ptr<host::Component>> Subject::make_bare(uint32_t threads, bool* unavailable) {
    host::Settings settings = settings_;
    for (const host::ParamManifest& p : host::describe(type_).params)
        if (!p.default_value) settings.emplace(p.name, least_value(p));
    static Nowhere nowhere;
    host::Services services{threads > 1 ? &two_.service() : &one_.service(), &test_clock(), &nowhere};
    const std::string kind = host::kind_word(type_.kind);
    if (kind == "proposer") services.runner = &runner_.service();
    if (kind != "device") {
        runner_.enter(MadeUpModel::Call::kCreate);
        auto made = host::Component::create(library_, type_, settings, services, unavailable);
        runner_.leave();
        return made;
    }
    PB_TRY(const auto inner, inner_devices(services));
    services.devices = &inner->service();
    PB_TRY(auto device, host::Component::create(library_, type_, settings, services, unavailable));
    device->keep(inner);
    return device;
}

const Result<host::Registry>& Subject::registry() const {
    static const Result<host::Registry> all =
        host::Registry::open({library_->path().parent_path()}, host::Unusable::kIsLeftOut);
    return all;
}

Result<std::shared_ptr<host::InnerDevices>> Subject::inner_devices(const host::Services& services) const {
    if (!registry()) return registry().failure();
    return std::make_shared<host::InnerDevices>(*registry(), services);
}

const host::Component* Subject::device(const std::string& name, std::string& why) {
    if (device_ && device_->type().name == name) return device_.get();
    static Nowhere nowhere;
    const host::Services services{&one_.service(), &test_clock(), &nowhere};
    const auto open = [&]() -> Result<std::unique_ptr<host::Component>> {
        if (const pb_component* const own = library_->find("device", name))
            return host::Component::create(library_, *own, {}, services);
        if (!registry()) return registry().failure();
        PB_TRY(auto device, registry()->device(name, {}, services));
        return std::move(device.component);
    };
    auto opened = open();
    if (!opened) {
        why = opened.error();
        return nullptr;
    }
    device_ = *std::move(opened);
    return device_.get();
}

std::string Subject::required_keys() const {
    std::string list;
    for (const host::ParamManifest& p : host::describe(type_).params)
        if (!p.default_value && !settings_.contains(p.name)) list += (list.empty() ? "" : ", ") + p.name;
    return list;
}

Suite suite_of(std::string_view kind) {
#define PB_SUITE(name, word, Type) \
    if (kind == #word) return k##Type;
    PB_EACH_KIND(PB_SUITE)
#undef PB_SUITE
    return {};
}

// ---- every kind ------------------------------------------------------------------------------

namespace {

Outcome lives_beside_another(Subject& subject) {
    PB_TRY(auto first, subject.make());
    PB_TRY(auto second, subject.make(2));
    if (first->self() == second->self()) return fail("create gave the same object twice");
    first.reset();
    PB_TRY(auto third, subject.make());
    second.reset();
    return {};
}

// Of an object that was used as a host would.
Result<std::string> saved_state(Subject& subject) {
    PB_TRY(auto component, subject.make());
    if (const auto exercise = suite_of(host::kind_word(subject.type().kind)).exercise)
        PB_CHECK(exercise(subject, *component));
    return component->save();
}

Outcome keeps_its_state(Subject& subject) {
    if (!subject.type().state) return Outcome::skip("it is stateless");
    PB_TRY(const std::string saved, saved_state(subject));
    PB_TRY(auto second, subject.make());
    PB_CHECK(second->load(subject.type().state, saved));
    PB_TRY(const std::string again, second->save());
    if (saved != again)
        return fail("what it saves after load differs from what was loaded: " + std::to_string(saved.size()) +
                    " bytes '" + saved.substr(0, 40) + "', then " + std::to_string(again.size()) + " bytes '" +
                    again.substr(0, 40) + "'");
    return {};
}

// Any status will do; a crash will not.
Outcome survives_torn_state(Subject& subject) {
    if (!subject.type().state) return Outcome::skip("it is stateless");
    PB_TRY(const std::string saved, saved_state(subject));
    const std::string noise("\xff\x00\x01 -1\n\n\x7f", 9);
    for (const std::string& bytes : {saved.substr(0, saved.size() / 2), saved + noise, noise, std::string()}) {
        PB_TRY(auto second, subject.make());
        (void)second->load(subject.type().state, bytes);
        (void)second->load("another/999", bytes);
    }
    return {};
}

struct HotValue {
    std::string key, first, other; // the value of a fresh object, and one more that the schema allows
};

// Near the first value, so that what costs time or memory stays affordable.
std::vector<std::string> candidates(const host::ParamManifest& p, const std::string& first) {
    if (p.type == "bool") return {"true", "false"};
    if (p.type == "enum") return p.choices;
    if (p.type == "string") return {};
    const double x = parse_number<double>(first).value_or(0);
    std::vector<std::string> out = {number_text(x + 1), number_text(x - 1)};
    if (p.type == "float") out.insert(out.end(), {number_text(x / 2), number_text(x + 0.125), number_text(x - 0.125)});
    else out.insert(out.end(), {number_text(2 * x), number_text(std::floor(x / 2)), number_text(x + 16)}); // 2^n, 16 n
    return out;
}

// Of each hot parameter that has more than one value; not of texts, which only their plugin can read.
std::vector<HotValue> hot_values(Subject& subject) {
    std::vector<HotValue> out;
    const auto component = subject.make();
    if (!component) return out;
    const host::Settings settings = (*component)->settings();
    for (const host::ParamManifest& p : host::describe(subject.type()).params) {
        if (!p.hot) continue;
        const std::string& first = settings.at(p.name);
        for (const std::string& other : candidates(p, first)) {
            if (other == first || host::check_value(p, other)) continue;
            out.push_back({p.name, first, other});
            break;
        }
    }
    return out;
}

// Why no hot parameter takes any of the values tried; empty: one does. Some may be refused, where values do not go
// together.
Result<std::string> refusal_of_all(Subject& subject) {
    PB_TRY(const auto first, subject.make());
    const host::Settings settings = first->settings();
    std::string why;
    for (const host::ParamManifest& p : host::describe(subject.type()).params) {
        if (!p.hot) continue;
        if (!first->extension<pb_configure>()) return std::string("it does not list " PB_CONFIGURE);
        for (const std::string& value : candidates(p, settings.at(p.name))) {
            if (value == settings.at(p.name) || host::check_value(p, value)) continue;
            PB_TRY(const auto component, subject.make());
            const auto done = component->configure({{p.name, value}});
            if (done) return std::string();
            why = done.error();
        }
    }
    return why;
}

Outcome configures(Subject& subject) {
    PB_TRY(const std::string why, refusal_of_all(subject));
    const std::vector<HotValue> values = hot_values(subject);
    if (values.empty() && !why.empty()) return fail("its hot parameters cannot be set: " + why);
    if (values.empty()) return Outcome::skip("it has no hot parameters");
    const Suite suite = suite_of(host::kind_word(subject.type().kind));
    Outcome outcome;
    for (const HotValue& v : values) {
        for (const bool back : {false, true}) {
            bool refused = false; // as it may where values do not go together; it then works as before
            subject.prepare_by([&](host::Component& c) -> Result<> {
                refused = !c.configure({{v.key, v.other}});
                if (back && !refused) PB_CHECK(c.configure({{v.key, v.first}}));
                return {};
            });
            outcome = suite.checks.front().run(subject);
            subject.prepare_by(nullptr);
            if (outcome.what == Outcome::What::kFailed)
                return fail("once '" + v.key + "' was " + (refused ? "refused as " : "set to ") + v.other +
                            (back && !refused ? " and back" : "") + ": " + outcome.reason);
        }
    }
    if (!why.empty()) return fail("none of its hot parameters takes another value: " + why);
    return {};
}

constexpr Check kLife[] = {
    {"component.twice", "two objects live side by side and end in any order", lives_beside_another},
    {"component.state", "a fresh object that loads what another saved, saves the same", keeps_its_state},
    {"component.torn_state", "bytes that were never saved are refused or ignored, and crash nothing",
     survives_torn_state},
    {"component.configure", "works on with other values of its hot parameters, and with the first ones again",
     configures},
};

}  // namespace

std::span<const Check> life_checks() { return kLife; }

}  // namespace patchbay::conformance
