#include "serve/admin_fixture.hpp"

#include "paths.hpp"

namespace patchbay::serve::testing {
namespace {

ServerOptions options(const TemporaryFolder& folder, const config::EngineConfig& config, AdminAddress address,
                      std::function<Result<host::Registry>()> plugins) {
    if (address.host.empty()) address.socket = folder.path() / "admin.sock";
    ServerOptions out;
    out.admin = AdminOptions{std::move(address), std::move(plugins), config};
    return out;
}

}  // namespace

Result<host::Registry> find_plugins() {
    const std::string build = kBuildDir;
    return host::Registry::open({build + "/lib/patchbay/plugins", build + "/tests/swap_plugins"});
}

Controlled::Controlled(config::EngineConfig config, AdminAddress address,
                       std::function<Result<host::Registry>()> plugins)
    : server(options(folder, config, std::move(address), std::move(plugins)), config) {}

Said Controlled::ask(const std::string& method, const std::string& path, const std::string& body) const {
    const auto answer = ask_admin(address(), method, path, body);
    if (!answer) throw std::runtime_error(answer.error());
    return {answer->status, Json::parse(answer->body)};
}

Json slot(const Json& status, const std::string& kind) {
    for (const Json& s : status["slots"])
        if (s["kind"] == kind) return s;
    return {};
}
Json both(const Json& scheduler, const Json& sampler) {
    return {{"swaps", {{{"kind", "scheduler"}, {"plugin", scheduler}}, {{"kind", "sampler"}, {"plugin", sampler}}}}};
}

Json greedy(const std::string& prompt, int max_tokens) {
    return {{"prompt", prompt},       {"temperature", 0}, {"max_tokens", max_tokens},
            {"ignore_eos", true}, {"return_token_ids", true}};
}
std::vector<int> streamed_ids(uint16_t port, Json body) {
    body["stream"] = true;
    HttpClient client(port);
    client.post("/v1/completions", body.dump());
    EXPECT_EQ(client.read_head().status, 200);
    return rest_of_ids(client);
}
}  // namespace patchbay::serve::testing
