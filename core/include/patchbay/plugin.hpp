// patchbay/plugin.hpp - C++20 over abi.h, compiled into the plugin, so that no C++ type of the host is ever needed.
// Write a class, name it in PATCHBAY_PLUGIN(...), build it with add_plugin(). Kinds: patchbay/sdk/<kind>.hpp.
#pragma once
#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "patchbay/abi.h"
#include "patchbay/abi/services.h"
#include "patchbay/plugin_names.h"
#include "patchbay/sizes.hpp"

namespace patchbay {

inline std::string_view view(pb_str s) { return {s.data, s.size}; }
inline pb_str str(std::string_view s) { return {s.data(), s.size()}; }

// An error with a status. Anything else that is thrown becomes PB_FAILED with its what().
struct Error : std::runtime_error {
    Error(pb_status status, const std::string& text) : std::runtime_error(text), code(status) {}
    pb_status code;
};

// ---- parameters ------------------------------------------------------------------------------

namespace param {

// `default_value` is YAML text; nullptr makes the key required.
constexpr pb_param boolean(const char* name, const char* default_value, const char* description, uint32_t flags = 0) {
    return {name, PB_PARAM_BOOL, flags, default_value, 0, 0, nullptr, nullptr, description};
}
constexpr pb_param integer(const char* name, const char* default_value, double min, double max, const char* unit,
                           const char* description, uint32_t flags = 0) {
    return {name, PB_PARAM_INT, flags | PB_PARAM_HAS_MIN | PB_PARAM_HAS_MAX, default_value, min, max, nullptr,
            unit, description};
}
constexpr pb_param real(const char* name, const char* default_value, double min, double max, const char* unit,
                        const char* description, uint32_t flags = 0) {
    return {name, PB_PARAM_FLOAT, flags | PB_PARAM_HAS_MIN | PB_PARAM_HAS_MAX, default_value, min, max, nullptr,
            unit, description};
}
constexpr pb_param text(const char* name, const char* default_value, const char* description, uint32_t flags = 0) {
    return {name, PB_PARAM_STRING, flags, default_value, 0, 0, nullptr, nullptr, description};
}
template <size_t N>
constexpr pb_param choice(const char* name, const char* default_value, const char* const (&choices)[N],
                          const char* description, uint32_t flags = 0) {
    if (choices[N - 1]) throw "the choices of a parameter end with nullptr";
    return {name, PB_PARAM_ENUM, flags, default_value, 0, 0, choices, nullptr, description};
}

}  // namespace param

namespace detail {

template <class T>
T parse_setting(std::string_view key, std::string_view text) {
    if constexpr (std::same_as<T, std::string>) {
        return T(text);
    } else if constexpr (std::same_as<T, bool>) {
        if (text == "true") return true;
        if (text == "false") return false;
    } else {
        T out{};
        const char* last = text.data() + text.size();
        if (auto [end, ec] = std::from_chars(text.data(), last, out); ec == std::errc{} && end == last) return out;
    }
    throw Error(PB_INVALID, std::string(key) + ": cannot read '" + std::string(text) + "'");
}

}  // namespace detail

// What the constructor and configure() get: the component's settings, already checked against its schema, and the host.
class Context {
  public:
    Context(const pb_host& host, const pb_config& config) : host_(&host), config_(config) {}

    template <class T>
    T get(std::string_view key) const { // valid in the constructor and in configure() only
        for (uint32_t i = 0; i < config_.count; ++i)
            if (view(config_.items[i].key) == key) return detail::parse_setting<T>(key, view(config_.items[i].value));
        throw Error(PB_INVALID, "no parameter '" + std::string(key) + "' in the component's schema");
    }

    const pb_host& host() const { return *host_; }

  private:
    const pb_host* host_;
    pb_config config_;
};

inline void log(const pb_host& host, int32_t level, std::string_view text) { host.log(host.ctx, level, str(text)); }

// A table of the host's services, as this plugin knows it; none where the host has none of this revision.
template <class T>
std::optional<T> service(const pb_host& host, const char* id, uint32_t revision) {
    const auto* const table = static_cast<const T*>(host.service(host.ctx, id));
    if (!table || table->revision != revision) return {};
    return widened<T>(table, table->struct_size);
}

// The thread pool of the host, copied out of a context. Runs on the calling thread where the host offers none.
class Pool {
  public:
    explicit Pool(const pb_host& host) : pool_(service<pb_pool>(host, PB_SERVICE_POOL, PB_POOL_REVISION)) {}
    uint32_t threads() const { return pool_ ? pool_->threads : 1; }

    // Calls f(i) for each i in [0, count); f must not throw.
    template <class F>
    void run(uint32_t count, F&& f) const {
        auto task = [](void* arg, uint32_t i) { (*static_cast<std::remove_reference_t<F>*>(arg))(i); };
        if (pool_ && count > 1) {
            pool_->run(pool_->ctx, count, task, const_cast<void*>(static_cast<const void*>(&f)));
        } else {
            for (uint32_t i = 0; i < count; ++i) f(i);
        }
    }

  private:
    std::optional<pb_pool> pool_;
};

// The host's clock, copied out of a context: real, or virtual in a simulation.
class HostClock {
  public:
    explicit HostClock(const pb_host& host)
        : clock_(service<pb_clock>(host, PB_SERVICE_CLOCK, PB_CLOCK_REVISION)) {}
    explicit operator bool() const { return clock_.has_value(); } // false: the host has none
    uint64_t now_ns() const { return clock_->now_ns(clock_->ctx); }

  private:
    std::optional<pb_clock> clock_;
};

// A component's own metrics, copied out of a context: patchbay_plugin_<name>{kind,plugin}. Does nothing where the host
// collects none. Names: a-z, 0-9 and _. [any]
class Metrics {
  public:
    explicit Metrics(const pb_host& host)
        : metrics_(service<pb_metrics>(host, PB_SERVICE_METRICS, PB_METRICS_REVISION)) {}
    void add(const char* counter, double amount = 1) const { // amount ≥ 0; exported as <counter>_total
        if (metrics_) metrics_->add(metrics_->ctx, counter, amount);
    }
    void set(const char* gauge, double value) const {
        if (metrics_) metrics_->set(metrics_->ctx, gauge, value);
    }

  private:
    std::optional<pb_metrics> metrics_;
};

// ---- saved state -----------------------------------------------------------------------------

// Named fields as text lines "name value\n", so that a newer version may add one and an older one be missed.
class Writer {
  public:
    explicit Writer(const pb_sink& sink) : sink_(&sink) {}

    template <class T>
        requires std::is_arithmetic_v<T>
    void put(std::string_view name, T value) {
        if constexpr (std::is_same_v<T, bool>) {
            line(name, value ? "true" : "false");
        } else {
            char digits[64];
            const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
            line(name, {digits, static_cast<size_t>(end - digits)});
        }
    }

  private:
    void line(std::string_view name, std::string_view value) {
        for (const std::string_view s : {name, std::string_view(" "), value, std::string_view("\n")})
            sink_->put(sink_->ctx, s.data(), s.size());
    }
    const pb_sink* sink_;
};

class Reader {
  public:
    Reader(std::string_view schema, std::string_view bytes) : schema_(schema) {
        while (!bytes.empty()) {
            const size_t end = bytes.find('\n');
            const std::string_view line = bytes.substr(0, end);
            const size_t space = line.find(' ');
            if (end == std::string_view::npos || space == std::string_view::npos)
                throw Error(PB_BAD_STATE, "saved state is torn");
            fields_.emplace(line.substr(0, space), line.substr(space + 1));
            bytes.remove_prefix(end + 1);
        }
    }

    std::string_view schema() const { return schema_; } // "fcfs/1": who wrote it

    // Leaves `value` as it is and returns false if the field is missing.
    template <class T>
    bool get(std::string_view name, T& value) const {
        const auto at = fields_.find(name);
        if (at == fields_.end()) return false;
        value = detail::parse_setting<T>(name, at->second);
        return true;
    }

  private:
    std::string_view schema_;
    std::map<std::string_view, std::string_view> fields_;
};

// ---- from class to component -----------------------------------------------------------------

struct About { // what a component says of itself
    const char* name;
    const char* version;
    const char* summary;
    const char* state = nullptr; // "fcfs/1" when the class has save and load
};

namespace detail {

template <class T>
struct Box { // what `self` points to
    Box(const pb_host* h, const pb_config& c)
        : known(widened<pb_host>(h, h->struct_size)), host(&known), value(make(*host, c)) {}
    static T make(const pb_host& h, const pb_config& c) {
        if constexpr (std::constructible_from<T, const Context&>) return T(Context(h, c));
        else return T();
    }
    const pb_host known; // the host as this plugin knows it
    const pb_host* const host;
    T value;
};

// The plugin's side of the wall: on this line C++ ends, nothing is thrown through it. Functions of the tables that can
// report nothing are noexcept: what they throw ends the process.
template <class F>
pb_status guard(const pb_host* host, F&& f) noexcept {
    const auto say = [&](std::string_view text) {
        if (host) host->error(host->ctx, str(text));
    };
    try {
        f();
        return PB_OK;
    } catch (const Error& e) {
        say(e.what());
        return e.code;
    } catch (const std::exception& e) {
        say(e.what());
        return PB_FAILED;
    } catch (...) {
        say("unknown exception");
        return PB_FAILED;
    }
}

// Calls f(component) inside the guard.
template <class T, class F>
pb_status enter(void* self, F&& f) noexcept {
    auto* box = static_cast<Box<T>*>(self);
    return guard(box->host, [&] { f(box->value); });
}

// The same for a call that has no status to return: what it throws is logged.
template <class T, class F>
void notify(void* self, std::string_view call, F&& f) noexcept {
    auto* box = static_cast<Box<T>*>(self);
    const auto say = [&](std::string_view what) {
        log(*box->host, PB_LOG_ERROR, std::string(call) + ": " + std::string(what));
    };
    try {
        f(box->value);
    } catch (const std::exception& e) {
        say(e.what());
    } catch (...) {
        say("unknown exception");
    }
}

template <class T>
concept HasState = requires(T t, const T ct, Writer& w, const Reader& r) {
    ct.save(w);
    t.load(r);
};

template <class T>
constexpr std::span<const pb_param> params_of() {
    if constexpr (requires { std::span<const pb_param>(T::kParams); }) return T::kParams;
    else return {};
}

template <class T>
struct Life {
    static pb_status create(const pb_host* host, const pb_config* config, void** self) {
        return guard(host, [&] { *self = new Box<T>(host, *Whole(config)); });
    }
    static void destroy(void* self) noexcept { delete static_cast<Box<T>*>(self); }
    static pb_status save(void* self, const pb_sink* sink) {
        return enter<T>(self, [&](T& value) {
            if constexpr (HasState<T>) {
                Writer writer(*sink);
                std::as_const(value).save(writer);
            }
        });
    }
    static pb_status load(void* self, const char* schema, pb_str bytes) {
        return enter<T>(self, [&](T& value) {
            if constexpr (HasState<T>) value.load(Reader(schema, view(bytes)));
        });
    }
};

// ---- hot parameters --------------------------------------------------------------------------

template <class T>
concept HasConfigure = requires(T t, const Context& c) { t.configure(c); };

template <class T>
struct ConfigureTable {
    static pb_status configure(void* self, const pb_config* config) {
        auto* box = static_cast<Box<T>*>(self);
        return guard(box->host, [&] { box->value.configure(Context(*box->host, *Whole(config))); });
    }
    static constexpr pb_configure table{sizeof(pb_configure), 0, configure};
};

template <class T>
constexpr bool has_hot_params() {
    for (const pb_param& p : params_of<T>())
        if (p.flags & PB_PARAM_HOT) return true;
    return false;
}

// ---- extensions ------------------------------------------------------------------------------

struct Extension {
    pb_extension about{}; // first: their array is pb_component.extensions
    const void* table = nullptr;
};

template <size_t N>
struct ExtensionList { // those that the class has
    std::array<Extension, N> all{};
    uint32_t count = 0;
    constexpr void add(bool has, const char* id, uint32_t revision, const void* table) {
        if (has) all[count++] = {{id, revision, 0}, table};
    }
};

// Those of every kind; each kind's table lists its own in add_extensions(list).
template <class T, class Table>
constexpr ExtensionList<8> extensions_of() {
    ExtensionList<8> out;
    if constexpr (HasConfigure<T>) out.add(true, PB_CONFIGURE, PB_CONFIGURE_REVISION, &ConfigureTable<T>::table);
    if constexpr (requires { Table::add_extensions(out); }) Table::add_extensions(out);
    return out;
}

template <class T, class Table>
struct Extensions {
    static constexpr ExtensionList<8> list = extensions_of<T, Table>();
    static const void* find(void* self, const char* id) noexcept {
        if constexpr (requires(const T& t) { t.has_extension(std::string_view(id)); })
            if (!static_cast<Box<T>*>(self)->value.has_extension(std::string_view(id))) return nullptr;
        for (uint32_t i = 0; i < list.count; ++i)
            if (std::strcmp(list.all[i].about.id, id) == 0) return list.all[i].table;
        return nullptr;
    }
};

// ---- slips of the pen ------------------------------------------------------------------------

// A member function of this name, whatever its arguments.
#define PB_HAS_MEMBER(T, name) (requires { requires std::is_member_function_pointer_v<decltype(&T::name)>; })

template <class T>
constexpr void check_members() {
    static_assert(HasState<T> || (!PB_HAS_MEMBER(T, save) && !PB_HAS_MEMBER(T, load)),
                  "a class with state has both: save(patchbay::Writer&) const, load(const patchbay::Reader&)");
    static_assert(HasConfigure<T> || !PB_HAS_MEMBER(T, configure),
                  "configure is: void configure(const patchbay::Context&)");
    static_assert(HasConfigure<T> == has_hot_params<T>(),
                  "parameters with PB_PARAM_HOT and void configure(const patchbay::Context&) need each other");
    static_assert(!PB_HAS_MEMBER(T, reconfigure) && !PB_HAS_MEMBER(T, on_configure), "it is called configure");
    static_assert(!PB_HAS_MEMBER(T, store) && !PB_HAS_MEMBER(T, restore), "they are called save and load");
}

template <class T, class Table>
constexpr pb_component component(const char* kind, uint32_t revision, const About& about) {
    check_members<T>();
    if (!HasState<T> && about.state) throw "a component with .state needs save(patchbay::Writer&) const and load()";
    if (HasState<T> && !about.state) throw "a component with save() and load() needs .state = \"name/1\"";
    using L = Life<T>;
    using E = Extensions<T, Table>;
    constexpr auto params = params_of<T>();
    return {sizeof(pb_component), static_cast<uint32_t>(params.size()), sizeof(pb_param), revision, kind,
            about.name, about.version, about.summary, about.state, params.data(),
            L::create, L::destroy, HasState<T> ? L::save : nullptr, HasState<T> ? L::load : nullptr, &Table::table,
            &E::list.all[0].about, E::list.count, sizeof(Extension), E::list.count > 0 ? E::find : nullptr};
}

}  // namespace detail
}  // namespace patchbay

// PATCHBAY_PLUGIN(patchbay::scheduler<Fcfs>({.name = "fcfs", …}), …): once in a plugin.
#define PATCHBAY_PLUGIN(...)                                                                                   \
    namespace {                                                                                                \
    constexpr pb_component pb_components_[] = {__VA_ARGS__};                                                   \
    template <size_t... I>                                                                                     \
    constexpr auto pb_pointers_(std::index_sequence<I...>) {                                                   \
        return std::array<const pb_component*, sizeof...(I)>{&pb_components_[I]...};                           \
    }                                                                                                          \
    constexpr auto pb_list_ = pb_pointers_(std::make_index_sequence<std::size(pb_components_)>{});             \
    }                                                                                                          \
    extern "C" __attribute__((visibility("default"))) constexpr pb_plugin pb_plugin_v1{                        \
        PB_MAGIC, PB_ABI_MAJOR, PB_ABI_MINOR, sizeof(pb_plugin), static_cast<uint32_t>(std::size(pb_components_)), \
        PATCHBAY_PLUGIN_NAME, PATCHBAY_PLUGIN_VERSION, PATCHBAY_PLUGIN_BUILD, pb_list_.data()};
