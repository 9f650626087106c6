#include "cli/admin_flags.hpp"

namespace patchbay::cli {

void add_admin_flags(CLI::App& app, const std::shared_ptr<AdminFlags>& o) {
    auto* const address =
        app.add_option("--admin", o->address,
                       "address for live control: path of a Unix socket, HOST:PORT, or none (default: a "
                       "socket in $XDG_RUNTIME_DIR/patchbay, else in /tmp/patchbay-UID)");
    app.add_option("--admin-token-file", o->token_file, "file with the token that --admin HOST:PORT needs")
        ->needs(address);
}

void check(const AdminFlags& o) {
    if (!o.named()) return;
    if (const auto address = serve::admin_address(o.address, o.token_file); !address)
        throw CLI::ValidationError(address.error());
}

Result<serve::AdminOptions> admin_options(const AdminFlags& o, const std::vector<std::string>& plugin_dirs,
                                          const config::EngineConfig& config) {
    PB_TRY(auto address,
           o.named() ? serve::admin_address(o.address, o.token_file) : serve::default_admin_address());
    const auto find_plugins = [dirs = plugin_dirs, only = config.allowed_plugins]() -> Result<host::Registry> {
        PB_TRY(auto all, host::Registry::open({dirs.begin(), dirs.end()}));
        return only ? all.restricted_to(*only) : std::move(all);
    };
    serve::AdminOptions out{std::move(address), find_plugins, config};
    out.required = o.named();
    return out;
}

Result<std::unique_ptr<serve::LoopControl>> start_control(
    const AdminFlags& o, const std::vector<std::string>& plugin_dirs, const config::EngineConfig& config,
    const std::string& task, const std::function<void()>& drain, engine::Engine& engine, metrics::Metrics& metrics) {
    using Control = std::unique_ptr<serve::LoopControl>;
    if (o.none()) return Control();
    auto control = [&]() -> Result<Control> {
        PB_TRY(auto options, admin_options(o, plugin_dirs, config));
        return serve::LoopControl::start({std::move(options), task, PATCHBAY_VERSION, drain}, engine, metrics);
    }();
    return control || o.named() ? std::move(control) : Control();
}

}  // namespace patchbay::cli
