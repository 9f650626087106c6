#include "host/component.hpp"

#include <spdlog/spdlog.h>

#include <mutex>
#include <vector>

#include "base/printable.hpp"
#include "host/library.hpp"

namespace patchbay::host {

struct Component::Parts {  // what is declared first goes last
    std::shared_ptr<Library> library;
    std::shared_ptr<void> kept;
    std::string kind, name, label;
    Services services;
    ComponentManifest manifest;
    Settings settings; // all of its keys
    pb_host host{};
    pb_metrics metrics{};
    mutable std::mutex mutex;  // of error
    mutable std::string error;
};

namespace {

spdlog::level::level_enum level_of(int32_t level) {
    switch (level) {
        case PB_LOG_DEBUG: return spdlog::level::debug;
        case PB_LOG_INFO: return spdlog::level::info;
        case PB_LOG_WARN: return spdlog::level::warn;
        default: return spdlog::level::err;
    }
}

struct StatusMeaning {
    StatusCode code;
    const char* words; // where the plugin gives no reason
};
StatusMeaning meaning_of(pb_status status) {
    switch (status) {
        case PB_INVALID: return {StatusCode::kInvalid, "invalid argument"};
        case PB_UNSUPPORTED: return {StatusCode::kUnsupported, "not supported"};
        case PB_BAD_STATE: return {StatusCode::kFailed, "bad state"};
        case PB_UNAVAILABLE: return {StatusCode::kUnavailable, "not available on this machine"};
        case PB_EXHAUSTED: return {StatusCode::kExhausted, "a limit is used up"};
        case PB_CANCELLED: return {StatusCode::kCancelled, "cancelled"};
        default: return {StatusCode::kFailed, "failed"};
    }
}

// Settings as create() and configure() get them.
class WireSettings {
  public:
    explicit WireSettings(const Settings& settings) {
        for (const auto& [key, value] : settings)
            items_.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
        config_ = {sizeof(pb_config), static_cast<uint32_t>(items_.size()), items_.data()};
    }
    const pb_config& config() const { return config_; }

  private:
    std::vector<pb_setting> items_;
    pb_config config_{};
};

}  // namespace

Component::Component(std::unique_ptr<Parts> parts, const pb_component& type) : type_(type), parts_(std::move(parts)) {}

Component::~Component() {
    if (!self_) return;
    const ComponentCall noted(label(), calls_, "destroy");
    type_.destroy(self_);
}

Result<std::unique_ptr<Component>> Component::create(std::shared_ptr<Library> library, const pb_component& type,
                                                     const Settings& settings, const Services& services,
                                                     bool* unavailable) {
    const ComponentManifest manifest = describe(type);
    if (const auto faults = check_settings(manifest, settings); !faults.empty())
        return fail(StatusCode::kInvalid, faults[0].text);
    auto parts = std::make_unique<Parts>();
    parts->library = std::move(library);
    parts->kind = manifest.kind;
    parts->name = type.name;
    parts->label = parts->kind + " '" + parts->name + "'";
    parts->services = services;
    parts->settings = with_defaults(manifest, settings);
    parts->manifest = manifest;
    parts->host = {sizeof(pb_host),
                   0,
                   parts.get(),
                   [](void* ctx, int32_t level, pb_str text) {
                       const auto* p = static_cast<const Component::Parts*>(ctx);
                       spdlog::log(level_of(level), "{} {}: {}", p->kind, p->name,
                                   std::string_view(text.data, text.size));
                   },
                   [](void* ctx, pb_str text) {
                       const auto* p = static_cast<const Component::Parts*>(ctx);
                       const std::lock_guard lock(p->mutex);
                       p->error.assign(text.data, text.size);
                   },
                   [](void* ctx, const char* id) -> const void* {
                       const auto* p = static_cast<const Component::Parts*>(ctx);
                       const std::string_view name = id;
                       if (name == PB_SERVICE_POOL) return p->services.pool;
                       if (name == PB_SERVICE_CLOCK) return p->services.clock;
                       if (name == PB_SERVICE_METRICS) return p->services.metrics ? &p->metrics : nullptr;
                       if (name == PB_SERVICE_DEVICES) return p->services.devices;
                       if (name == PB_SERVICE_RUNNER) return p->services.runner;
                       return nullptr;
                   }};
    parts->metrics = {sizeof(pb_metrics), PB_METRICS_REVISION, parts.get(),
                      [](void* ctx, const char* name, double amount) {
                          const auto* p = static_cast<const Component::Parts*>(ctx);
                          p->services.metrics->add(p->kind, p->name, name, amount);
                      },
                      [](void* ctx, const char* name, double value) {
                          const auto* p = static_cast<const Component::Parts*>(ctx);
                          p->services.metrics->set(p->kind, p->name, name, value);
                      }};
    std::unique_ptr<Component> component(new Component(std::move(parts), type));
    const Parts& p = *component->parts_;
    const WireSettings wire(p.settings);
    void* self = nullptr;
    const pb_status status = [&] {
        const ComponentCall noted(component->label(), component->calls(), "create");
        return type.create(&p.host, &wire.config(), &self);
    }();
    if (unavailable) *unavailable = status == PB_UNAVAILABLE;
    PB_CHECK(component->check(status, "create"));
    if (!self) return fail(p.label + ": create: gave no object");
    component->self_ = self;
    const ComponentCall noted(component->label(), component->calls(), "extension");
    if (auto read = component->extensions_.read(component->type_, self); !read)
        return prefixed(p.label, read.failure());
    return component;
}

const char* Component::label() const { return parts_->label.c_str(); }

const Library* Component::library() const { return parts_->library.get(); }

Result<> Component::check(pb_status status, std::string_view call) const {
    if (status == PB_OK) return {};
    const StatusMeaning meaning = meaning_of(status);
    const std::string reason = printable_message(why());
    return fail(meaning.code,
                parts_->label + ": " + std::string(call) + ": " + (reason.empty() ? meaning.words : reason));
}

std::string Component::why() const {
    const std::lock_guard lock(parts_->mutex);
    return std::exchange(parts_->error, {});
}

void Component::keep(std::shared_ptr<void> what) { parts_->kept = std::move(what); }

Result<std::string> Component::save() const {
    std::string bytes;
    if (!type_.save) return bytes;
    const pb_sink sink{sizeof(pb_sink), 0, &bytes, [](void* ctx, const void* data, size_t size) {
                           static_cast<std::string*>(ctx)->append(static_cast<const char*>(data), size);
                       }};
    const ComponentCall noted(label(), calls_, "save");
    PB_CHECK(check(type_.save(self_, &sink), "save"));
    return bytes;
}

Result<> Component::load(const std::string& schema, std::string_view bytes) {
    if (!type_.load) return {};
    const ComponentCall noted(label(), calls_, "load");
    return check(type_.load(self_, schema.c_str(), {bytes.data(), bytes.size()}), "load");
}

Settings Component::settings() const { return parts_->settings; }

Result<> Component::configure(const Settings& changes) {
    const auto refuse = [&](StatusCode code, const std::string& why) {
        return fail(code, parts_->label + ": configure: " + why);
    };
    Settings wanted = parts_->settings;
    for (const auto& [key, value] : changes) wanted.insert_or_assign(key, value);
    if (const auto faults = check_settings(parts_->manifest, wanted); !faults.empty())
        return refuse(StatusCode::kInvalid, faults[0].text);
    wanted = with_defaults(parts_->manifest, wanted);
    for (const ParamManifest& p : parts_->manifest.params)
        if (!p.hot && wanted.at(p.name) != parts_->settings.at(p.name))
            return refuse(StatusCode::kUnsupported, "'" + p.name + "' takes another value with a swap only");
    if (!extension<pb_configure>()) // of a component whose parameters are all cold
        return wanted == parts_->settings ? Result<>() : refuse(StatusCode::kUnsupported, "it has no hot parameters");
    const WireSettings wire(wanted);
    PB_CHECK(checked<&pb_configure::configure>(*this, &wire.config()));
    parts_->settings = std::move(wanted);
    return {};
}

}  // namespace patchbay::host
