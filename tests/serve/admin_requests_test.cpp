// What the admin address refuses, and which plugins it lists.
#include <filesystem>
#include <fstream>

#include "metrics/scrape.hpp"
#include "paths.hpp"
#include "serve/admin_fixture.hpp"

namespace patchbay::serve::testing::admin_requests_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(AdminRequests, ThatAreMalformedAreRefusedByName) {
    const Controlled engine;
    struct Case {
        const char *method, *path;
        std::string body;
        unsigned status;
        const char* text;
    };
    const Case cases[] = {
        {"POST", "/swap", "", 400, "not JSON"},
        {"POST", "/swap", "[]", 400, "a list, expected an object"},
        {"POST", "/swap", "{", 400, "not JSON"},
        {"POST", "/swap", std::string(1000, '['), 400, "64 deep"},
        {"POST", "/swap", "{}", 400, "kind: is missing"},
        {"POST", "/swap", R"({"kind": "scheduler"})", 400, "plugin: is missing"},
        {"POST", "/swap", R"({"kind": "schedulr", "plugin": "sjf"})", 400, "(did you mean 'scheduler'?)"},
        {"POST", "/swap", R"({"kind": "device", "plugin": "cpu"})", 400, "which can be swapped"},
        {"POST", "/swap", R"({"kind": 3, "plugin": "sjf"})", 400, "kind: got 3, expected a string"},
        {"POST", "/swap", R"({"kind": "scheduler", "plugin": "sjf", "parms": {}})", 400, "(did you mean 'params'?)"},
        {"POST", "/swap", R"({"kind": "scheduler", "plugin": "sjf", "params": []})", 400, "params: got a list"},
        {"POST", "/swap", R"({"kind": "scheduler", "plugin": "sjf", "params": {"ageing": [1]}})", 400,
         "params.ageing: got array"},
        {"POST", "/swap", "{\"kind\": \"scheduler\", \"plugin\": \"\xff\"}", 400, "not JSON"},
        {"POST", "/swap", std::string(70'000, ' '), 413, "65536 bytes"},
        {"POST", "/swap", R"({"swaps": []})", 400, "swaps: expected a list of {kind, plugin, params}"},
        {"POST", "/swap", R"({"swaps": [3]})", 400, "swaps[0]: expected an object"},
        {"POST", "/swap", R"({"swaps": [{"kind": "sampler"}]})", 400, "swaps[0].plugin: is missing"},
        {"POST", "/swap", R"({"kind": "sampler", "swaps": []})", 400, "kind: there is no such field beside swaps"},
        {"POST", "/swap", both("sjf", 3).dump(), 400, "swaps[1].plugin: got 3, expected a string"},
        {"POST", "/swap",
         R"({"swaps": [{"kind": "sampler", "plugin": "a"}, {"kind": "sampler", "plugin": "b"}]})", 400,
         "swaps[1].kind: the slot sampler is named twice"},
        {"POST", "/set", R"({"kind": "scheduler"})", 400, "params: is missing"},
        {"POST", "/set", R"({"kind": "scheduler", "plugin": "sjf", "params": {}})", 400, "there is no such field"},
        {"POST", "/set", R"({"kind": "scheduler", "params": {"ageing": "3"}})", 400, "unknown key 'ageing'"},
        {"GET", "/swap", "", 405, "expected POST"},
        {"POST", "/status", "", 405, "expected GET"},
        {"GET", "/nothing", "", 404, "there is no /nothing"},
        {"POST", "/v1/completions", "{}", 404, "there is no"},
    };
    for (const Case& c : cases) {
        const Said got = engine.ask(c.method, c.path, c.body);
        EXPECT_EQ(got.status, c.status) << c.body << got.body;
        EXPECT_THAT(got.body["error"]["message"].get<std::string>(), HasSubstr(c.text));
    }
    EXPECT_EQ(engine.status()["state"], "running");
}

TEST(AdminMetrics, AreOfTheRequestsOfTheServer) {
    const Controlled engine;
    const auto in_flight = [&] {
        const auto answer = ask_admin(engine.address(), "GET", "/metrics");
        return answer ? metrics::Scrape(answer->body).sum("patchbay_http_requests_in_flight") : -1;
    };
    EXPECT_EQ(in_flight(), 0) << "the one that asks is not among them";
    HttpClient client(engine.server.port());
    const HeldEngine held(engine.server); // so that the request lasts
    client.post("/v1/completions", greedy("The king", 2).dump());
    wait_until("request", [&] { return engine.server.server->engine().status().inbox == 1; });
    EXPECT_EQ(in_flight(), 1);
}

TEST(AdminPlugins, SayWhichCanBeUsedAndWhyNot) {
    const TemporaryFolder own;
    const fs::path built = fs::path(kBuildDir) / "tests/swap_plugins";
    const Controlled engine(Running::demo_model(), {}, [&] { return host::Registry::open({own.path()}); });
    const auto state_of = [&](const std::string& name) -> Json {
        const Said all = engine.ask("GET", "/plugins");
        for (const Json& p : all.body["plugins"])
            if (p["kind"] == "scheduler" && p["name"] == name) return p;
        return {};
    };
    EXPECT_EQ(state_of("faulty"), Json());
    for (const char* file : {"faulty.so", "faulty.plugin.json"}) fs::copy_file(built / file, own.path() / file);
    EXPECT_EQ(state_of("faulty"), Json()); // until folders are scanned again
    const Said added = engine.ask("POST", "/reload");
    EXPECT_EQ(added.status, 200u);
    EXPECT_THAT(added.body["added"], ElementsAre("kv_policy/faulty", "proposer/faulty", "sampler/faulty",
                                                     "scheduler/faulty"));
    EXPECT_EQ(state_of("faulty")["state"], "usable");
    EXPECT_EQ(state_of("faulty")["reason"], nullptr);
    EXPECT_EQ(engine.swap({{"kind", "scheduler"}, {"plugin", "faulty"}}).status, 202u);

    std::ofstream(own.path() / "faulty.so", std::ios::app) << "changed";
    EXPECT_EQ(state_of("faulty")["state"], "refused");
    EXPECT_THAT(state_of("faulty")["reason"].get<std::string>(), HasSubstr("changed since it was probed"));
    fs::remove(own.path() / "faulty.plugin.json");
    const Json removed = engine.ask("POST", "/reload").body;
    EXPECT_THAT(removed["removed"], ElementsAre("kv_policy/faulty", "proposer/faulty", "sampler/faulty",
                                                     "scheduler/faulty"));
    EXPECT_THAT(removed["left_out"][0].get<std::string>(), HasSubstr("not probed yet"));

    fs::remove_all(own.path()); // what was found last goes on counting
    const Said gone = engine.ask("POST", "/reload");
    EXPECT_EQ(gone.status, 404u);
    EXPECT_THAT(gone.body["error"]["message"].get<std::string>(), HasSubstr("is not a folder"));
    EXPECT_EQ(state_of("sjf")["state"], "usable");
}

}  // namespace
}  // namespace patchbay::serve::testing::admin_requests_test
