// The flags --admin and --admin-token-file of commands that run an engine: where it is controlled meanwhile.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "serve/admin.hpp"
#include "serve/loop_control.hpp"

namespace patchbay::cli {

struct AdminFlags {
    std::string address, token_file; // empty: the default address

    bool none() const { return address == "none"; }
    bool named() const { return !address.empty() && !none(); }
};

void add_admin_flags(CLI::App&, const std::shared_ptr<AdminFlags>&);
void check(const AdminFlags&); // throws a fault of usage
// Plugins are looked for again in the folders; only those that the configuration allows are found. Not of none().
// The failure: the address cannot be had, which ends a command only where it was named.
Result<serve::AdminOptions> admin_options(const AdminFlags&, const std::vector<std::string>& plugin_dirs,
                                          const config::EngineConfig&);
// Control of a loop of the command's own. Null: none is wanted, or the default address cannot be had, which is no
// reason not to run. drain: what POST /drain does.
Result<std::unique_ptr<serve::LoopControl>> start_control(
    const AdminFlags&, const std::vector<std::string>& plugin_dirs, const config::EngineConfig&,
    const std::string& task, const std::function<void()>& drain, engine::Engine&, metrics::Metrics&);

}  // namespace patchbay::cli
