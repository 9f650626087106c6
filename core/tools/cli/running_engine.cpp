#include "cli/running_engine.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/refusals.hpp"
#include "serve/admin_client.hpp"

namespace patchbay::cli {
namespace {

using serve::Json;

std::string listed_engines(const std::vector<std::filesystem::path>& sockets) {
    std::string out;
    for (const auto& socket : sockets) {
        serve::AdminAddress address;
        address.socket = socket;
        const auto answer = serve::ask_admin(address, "GET", "/status");
        const auto status = answer ? serve::parse_body(answer->body) : Result<Json>(answer.failure());
        out += "\n  --admin " + socket.string();
        if (status && status->contains("model"))
            out += "  " + (*status)["model"].value("name", "") + ", " + status->value("state", "") + ", " +
                   status->value("task", "");
    }
    return out;
}

}  // namespace

Result<serve::AdminAddress> running_engine(const RunningEngineFlags& o) {
    if (!o.address.empty()) return serve::admin_address(o.address, o.token_file);
    PB_TRY(const auto sockets, serve::live_admin_sockets());
    if (sockets.empty())
        return fail(StatusCode::kUnavailable, "no engine runs whose admin address is in " +
                                                  serve::admin_folder().string() +
                                                  " (start one: patchbay serve; or name its address: --admin)");
    if (sockets.size() > 1)
        return invalid(std::to_string(sockets.size()) + " engines run, say which:" + listed_engines(sockets));
    serve::AdminAddress out;
    out.socket = sockets[0];
    return out;
}

std::string params_text(const Json& params) {
    std::string out;
    for (const auto& [name, value] : params.items())
        out += (out.empty() ? "" : " ") + name + "=" + value.get<std::string>();
    return out;
}

void add_flags_of_running_engine(CLI::App& app, const std::shared_ptr<RunningEngineFlags>& o) {
    auto* const address =
        app.add_option("--admin", o->address, "path of its socket, or HOST:PORT (default: the running engine's)");
    app.add_option("--admin-token-file", o->token_file, "file with the token that HOST:PORT needs")->needs(address);
}

void check(const RunningEngineFlags& o) {
    if (o.address.empty()) return;
    if (const auto address = serve::admin_address(o.address, o.token_file); !address)
        throw CLI::ValidationError(address.error());
}

}  // namespace patchbay::cli
