// Live control over the admin address: what it says, swaps under load, what it refuses, and how it ends.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "paths.hpp"
#include "serve/admin_client.hpp"
#include "serve/load_client.hpp"
#include "serve/server_fixture.hpp"
#include "serve/temporary_folder.hpp"

namespace patchbay::serve::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<host::Registry> find_plugins() {
    const std::string build = kBuildDir;
    return host::Registry::open({build + "/lib/patchbay/plugins", build + "/tests/swap_plugins"});
}

const std::string kDemo = engine::testing::repository("models/demo-draft");

struct Said {
    unsigned status = 0;
    Json body;
};

class Controlled { // a server of the demo model with an admin address in a folder of its own
  public:
    explicit Controlled(config::EngineConfig config = Running::demo_model(), AdminAddress address = {},
                        std::function<Result<host::Registry>()> plugins = find_plugins)
        : server(options(folder, config, std::move(address), std::move(plugins)), config) {}

    AdminAddress address() const { return server.server->admin()->address(); }
    Said ask(const std::string& method, const std::string& path, const std::string& body = {}) const {
        const auto answer = ask_admin(address(), method, path, body);
        if (!answer) throw std::runtime_error(answer.error());
        return {answer->status, Json::parse(answer->body)};
    }
    Json status() const { return ask("GET", "/status").body; }
    Said swap(const Json& body) const { return ask("POST", "/swap", body.dump()); }

    const TemporaryFolder folder;
    const Running server;

  private:
    static ServerOptions options(const TemporaryFolder& folder, const config::EngineConfig& config,
                                 AdminAddress address, std::function<Result<host::Registry>()> plugins) {
        if (address.host.empty()) address.socket = folder.path() / "admin.sock";
        ServerOptions out;
        out.admin = AdminOptions{std::move(address), std::move(plugins), config};
        return out;
    }
};

Json slot(const Json& status, const std::string& kind) {
    for (const Json& s : status["slots"])
        if (s["kind"] == kind) return s;
    return {};
}

Json greedy(const std::string& prompt, int max_tokens) {
    return {{"prompt", prompt},       {"temperature", 0}, {"max_tokens", max_tokens},
            {"ignore_eos", true}, {"return_token_ids", true}};
}

// How a swap ended. Its answer comes early where all clients are between two requests; they go on, so it ends.
Json settled(const Controlled& engine, const Said& answer) {
    Json status;
    if (answer.status != 202) return answer.body;
    do status = engine.status();
    while (!status["swaps"]["pending"].empty());
    return status["swaps"]["last"][0];
}

std::vector<int> streamed_ids(uint16_t port, Json body) {
    body["stream"] = true;
    HttpClient client(port);
    client.post("/v1/completions", body.dump());
    EXPECT_EQ(client.read_head().status, 200);
    std::vector<int> ids;
    while (const auto event = client.read_event()) {
        if (*event == "[DONE]") continue;
        const Json chunk = Json::parse(*event);
        for (const Json& id : chunk["choices"][0]["token_ids"]) ids.push_back(id);
    }
    return ids;
}

TEST(AdminStatus, SaysWhatTheEngineIsAndDoes) {
    config::EngineConfig config = Running::demo_model();
    config.engine.async_scheduling = config::AsyncScheduling::kAuto;
    const Controlled engine(config);
    const Json first = engine.status();
    EXPECT_EQ(first["state"], "running");
    EXPECT_EQ(first["reason"], nullptr);
    EXPECT_EQ(first["version"], "1.2.3");
    EXPECT_EQ(first["pid"], getpid());
    EXPECT_EQ(first["model"]["name"], "demo");
    EXPECT_EQ(first["steps"], 0);
    EXPECT_EQ(first["pages"], Json({{"used", 0}, {"cached", 0}, {"free", 2048}, {"total", 2048}}));
    EXPECT_EQ(first["queues"], Json({{"running", 0}, {"waiting", 0}, {"inbox", 0}}));
    EXPECT_EQ(first["swaps"], Json({{"pending", Json::array()}, {"last", Json::array()}}));
    const Json scheduler = slot(first, "scheduler");
    EXPECT_EQ(scheduler["plugin"], "fcfs");
    EXPECT_EQ(scheduler["generation"], 1);
    EXPECT_EQ(scheduler["sha256"].get<std::string>().size(), 64u);
    EXPECT_EQ(slot(first, "model")["plugin"], "llama");

    engine.server.complete(greedy("Once upon a time", 20));
    engine.server.pages_in_use_when_idle();
    const Json after = engine.status();
    EXPECT_GE(after["steps"], 20);
    EXPECT_GT(after["pages"]["cached"], 0);
    std::map<std::string, std::string> effective;
    for (const Json& s : after["configuration"]) effective[s["key"]] = s["effective"];
    EXPECT_EQ(effective.at("engine.max_model_len"), "2048");
    EXPECT_EQ(effective.at("engine.async_scheduling"), "off");
    EXPECT_FALSE(effective.contains("engine.num_blocks")); // was requested as it is
    EXPECT_FALSE(effective.contains("scheduler"));
    for (const Json& s : after["configuration"]) EXPECT_NE(s["reason"], "") << s;
}

TEST(AdminStatus, IsSaidWhileAStepTakesLong) {
    const Controlled engine;
    std::atomic<bool> in_step = false, go_on = false;
    std::thread busy([&] {
        engine.server.server->engine().call([&](engine::Engine&) {
            in_step = true;
            in_step.notify_all();
            go_on.wait(false);
        });
    });
    in_step.wait(false);
    HttpClient client(engine.server.port());
    client.post("/v1/completions", greedy("The king", 5).dump());
    Json status;
    do status = engine.status();
    while (status["queues"]["inbox"] != 1); // which the engine's thread has not seen yet
    EXPECT_EQ(status["state"], "running");
    std::thread swapper([&] { EXPECT_NE(engine.swap({{"kind", "sampler"}, {"plugin", "greedy"}}).status, 409u); });
    do status = engine.status();
    while (status["swaps"]["pending"].empty() || status["swaps"]["pending"][0]["state"] != "posted");
    EXPECT_EQ(status["swaps"]["pending"],
              Json::parse(R"([{"kind": "sampler", "from": "standard", "plugin": "greedy", "state": "posted"}])"));
    EXPECT_EQ(slot(status, "sampler")["plugin"], "standard");
    go_on = true;
    go_on.notify_all();
    busy.join();
    swapper.join();
    EXPECT_EQ(client.read_answer().status, 200);
    EXPECT_EQ(slot(engine.status(), "sampler")["plugin"], "greedy");
}

struct InTurn { // components of one slot that take each other's place
    std::string kind, first, second;
    int swaps;
};

void PrintTo(const InTurn& slot, std::ostream* out) { *out << slot.kind; }

class SwapsUnderLoad : public ::testing::TestWithParam<InTurn> {};

TEST_P(SwapsUnderLoad, ChangeNoTokenOfAnyStream) {
    const InTurn& in_turn = GetParam();
    config::EngineConfig config = Running::demo_model();
    config.engine.max_num_seqs = 8; // so that others wait
    if (in_turn.kind == "proposer") {
        config.proposer = config::PluginChoice{in_turn.first, {}};
        config.engine.num_speculative_tokens = 3;
    }
    if (in_turn.kind == "kv_policy") config.kv_policy = config::PluginChoice{in_turn.first, {}};
    config.swap.probation_steps = 2;
    const Controlled engine(config);
    constexpr int kStreams = 16;
    const int kSwaps = in_turn.swaps;
    std::vector<Json> bodies;
    std::vector<std::vector<int>> expected;
    for (int i = 0; i < kStreams; ++i) {
        bodies.push_back(greedy("The king said to child " + std::to_string(i), 20 + 3 * i));
        expected.push_back(engine.server.complete(bodies.back())["choices"][0]["token_ids"]);
        ASSERT_EQ(expected.back().size(), 20u + 3 * i);
    }
    std::atomic<bool> swapping = true;
    std::atomic<int> begun = 0, streamed = 0;
    std::vector<std::thread> clients;
    for (size_t i = 0; i < kStreams; ++i)
        clients.emplace_back([&, i] {
            begun += 1;
            begun.notify_all();
            do {
                EXPECT_EQ(streamed_ids(engine.server.port(), bodies[i]), expected[i]) << bodies[i];
                streamed += 1;
            } while (swapping);
        });
    for (int now = begun; now < kStreams; now = begun) begun.wait(now);
    for (int i = 0; i < kSwaps; ++i) {
        const std::string &from = i % 2 ? in_turn.second : in_turn.first, &to = i % 2 ? in_turn.first : in_turn.second;
        const Said answer = engine.swap({{"kind", in_turn.kind}, {"plugin", to}});
        EXPECT_TRUE(answer.status == 200 || answer.status == 202) << answer.body;
        const Json got = settled(engine, answer);
        EXPECT_EQ(got["outcome"], "committed") << got;
        EXPECT_EQ(got["from"]["plugin"], from);
        EXPECT_EQ(got["to"]["plugin"], to);
        EXPECT_GT(got["pause_us"], 0);
        EXPECT_GE(got["end_step"].get<int>(), got["step"].get<int>() + 1);
    }
    swapping = false;
    for (std::thread& client : clients) client.join();
    EXPECT_GE(streamed, kStreams);
    EXPECT_EQ(engine.server.pages_in_use_when_idle(), 0u);
    const Json status = engine.status();
    EXPECT_EQ(slot(status, in_turn.kind)["generation"], kSwaps + 1);
    EXPECT_EQ(status["swaps"]["last"].size(), std::min<size_t>(kSwaps, SlotJournal::kMaxSwaps));
    EXPECT_THAT(get(engine.server.port(), "/metrics").body,
                HasSubstr("patchbay_plugin_swaps_total{kind=\"" + in_turn.kind + "\",outcome=\"committed\"} " +
                          std::to_string(kSwaps) + "\n"));
    if (in_turn.kind == "model") {
        EXPECT_EQ(status["model"]["path"], in_turn.first);
    }
}
INSTANTIATE_TEST_SUITE_P(AdminSwap, SwapsUnderLoad,
                         ::testing::Values(InTurn{"scheduler", "fcfs", "sjf", 50},
                                           InTurn{"sampler", "standard", "standard", 20},
                                           InTurn{"proposer", "ngram", "suffix", 20},
                                           InTurn{"kv_policy", "lru", "lfu", 20},
                                           InTurn{"attention", "paged", "paged", 20},
                                           InTurn{"model", kDemo, kDemo, 6}),
                         [](const auto& p) { return p.param.kind; });

TEST(AdminSwap, OnAnIdleEngineIsOnProbationUntilThereIsWork) {
    config::EngineConfig config = Running::demo_model();
    config.swap.probation_steps = 4;
    const Controlled engine(config);
    const Said first = engine.swap({{"kind", "scheduler"}, {"plugin", "sjf"}, {"params", {{"ageing", 10}}}});
    EXPECT_EQ(first.status, 202u) << first.body;
    EXPECT_EQ(first.body["outcome"], "on probation");
    const Said second = engine.swap({{"kind", "scheduler"}, {"plugin", "fcfs"}}); // once the first one is settled
    EXPECT_EQ(second.status, 202u) << second.body;
    EXPECT_EQ(second.body["outcome"], "posted");
    Json status = engine.status();
    EXPECT_EQ(slot(status, "scheduler")["plugin"], "sjf");
    EXPECT_EQ(slot(status, "scheduler")["on_probation"], true);
    EXPECT_EQ(status["swaps"]["pending"],
              Json::parse(R"([{"kind": "scheduler", "from": "fcfs", "plugin": "sjf", "state": "on probation"},
                              {"kind": "scheduler", "from": "sjf", "plugin": "fcfs", "state": "posted"}])"));
    EXPECT_EQ(status["configuration"].back()["key"], "scheduler");
    engine.server.complete(greedy("The king", 20));
    engine.server.pages_in_use_when_idle();
    status = engine.status();
    EXPECT_EQ(status["swaps"]["pending"], Json::array());
    ASSERT_EQ(status["swaps"]["last"].size(), 2u);
    for (const Json& swap : status["swaps"]["last"]) EXPECT_EQ(swap["outcome"], "committed") << swap;
    EXPECT_EQ(slot(status, "scheduler")["plugin"], "fcfs");
    EXPECT_EQ(slot(status, "scheduler")["generation"], 3);
    EXPECT_EQ(slot(status, "scheduler")["on_probation"], false);
}

TEST(AdminSwap, ThatBreaksItsContractIsRolledBackAndSaysWhere) {
    const Controlled engine;
    const std::vector<int> expected = engine.server.complete(greedy("The wolf", 60))["choices"][0]["token_ids"];
    std::atomic<bool> swapping = true;
    std::thread client([&] {
        while (swapping) EXPECT_EQ(streamed_ids(engine.server.port(), greedy("The wolf", 60)), expected);
    });
    const Json faulty{{"kind", "scheduler"},
                      {"plugin", "faulty"},
                      {"params", {{"fault", "over_budget"}, {"at", 3}, {"blocks", 2048}}}};
    const Said answer = engine.swap(faulty);
    EXPECT_TRUE(answer.status == 409 || answer.status == 202) << answer.body;
    const Json got = settled(engine, answer);
    swapping = false;
    client.join();
    EXPECT_EQ(got["outcome"], "rolled back") << got;
    EXPECT_EQ(got["phase"], "plan");
    EXPECT_THAT(got["reason"].get<std::string>(), HasSubstr("max_num_batched_tokens"));
    const Json status = engine.status();
    EXPECT_EQ(slot(status, "scheduler")["plugin"], "fcfs");
    EXPECT_EQ(slot(status, "scheduler")["generation"], 1); // the one that was there before
}

Json both(const Json& scheduler, const Json& sampler) {
    return {{"swaps", {{{"kind", "scheduler"}, {"plugin", scheduler}}, {{"kind", "sampler"}, {"plugin", sampler}}}}};
}

TEST(AdminSwap, OfSeveralSlotsIsOneTransaction) {
    config::EngineConfig config = Running::demo_model();
    config.swap.probation_steps = 4;
    const Controlled engine(config);
    const Said idle = engine.swap(both("sjf", "greedy"));
    EXPECT_EQ(idle.status, 202u) << idle.body;
    EXPECT_EQ(idle.body["outcome"], "on probation");
    EXPECT_EQ(idle.body["swaps"].size(), 2u);
    EXPECT_EQ(engine.status()["swaps"]["pending"],
              Json::parse(R"([{"kind": "scheduler", "from": "fcfs", "plugin": "sjf", "state": "on probation"},
                              {"kind": "sampler", "from": "standard", "plugin": "greedy", "state": "on probation"}])"));
    engine.server.complete(greedy("The king", 20));
    engine.server.pages_in_use_when_idle();
    const Json last = engine.status()["swaps"]["last"];
    ASSERT_EQ(last.size(), 2u);
    for (const Json& swap : last) {
        EXPECT_EQ(swap["outcome"], "committed") << swap;
        EXPECT_EQ(swap["transaction"], idle.body["transaction"]);
        EXPECT_EQ(swap["step"], last[0]["step"]);
    }
    const Said refused = engine.swap(both("static", "gready"));
    EXPECT_EQ(refused.status, 409u) << refused.body;
    EXPECT_EQ(refused.body["outcome"], "refused");
    EXPECT_EQ(refused.body["swaps"][0]["phase"], "together");
    EXPECT_EQ(refused.body["swaps"][1]["phase"], "find");
    EXPECT_EQ(slot(engine.status(), "scheduler")["plugin"], "sjf");
    const std::string metrics = get(engine.server.port(), "/metrics").body;
    EXPECT_THAT(metrics, HasSubstr("patchbay_plugin_swap_transactions_total{outcome=\"committed\"} 1\n"));
}

TEST(AdminSwap, IsRefusedWithPhaseAndReason) {
    const Controlled engine;
    struct Case {
        Json body;
        const char *phase, *reason;
    };
    const Case cases[] = {
        {{{"kind", "scheduler"}, {"plugin", "sfj"}}, "find", "no scheduler 'sfj' (did you mean 'sjf'?)"},
        {{{"kind", "sampler"}, {"plugin", "fcfs"}}, "find", "no sampler 'fcfs'"},
        {{{"kind", "scheduler"}, {"plugin", "../../etc/passwd"}}, "find", "no scheduler '../../etc/passwd'"},
        {{{"kind", "model"}, {"plugin", std::string(300, 'x')}}, "find", "name too long"},
        {{{"kind", "scheduler"}, {"plugin", "sjf"}, {"params", {{"agein", 1}}}}, "create", "did you mean 'ageing'"},
        {{{"kind", "scheduler"}, {"plugin", "sjf"}, {"params", {{"ageing", "soon"}}}}, "create", "ageing"},
        {{{"kind", "scheduler"}, {"plugin", "faulty"}, {"params", {{"fault", "throws"}}}}, "probe", "fails on purpose"},
    };
    for (const Case& c : cases) {
        const Said got = engine.swap(c.body);
        EXPECT_EQ(got.status, 409u) << got.body;
        EXPECT_EQ(got.body["outcome"], "refused");
        EXPECT_EQ(got.body["phase"], c.phase) << got.body;
        EXPECT_THAT(got.body["reason"].get<std::string>(), HasSubstr(c.reason));
    }
    EXPECT_EQ(slot(engine.status(), "scheduler")["generation"], 1);
}

TEST(AdminSet, OfHotParametersUnderLoadChangesNoTokenOfAnyStream) {
    config::EngineConfig config = Running::demo_model();
    config.scheduler.plugin = "sarathi";
    const Controlled engine(config);
    constexpr int kStreams = 16, kSets = 300;
    std::vector<Json> bodies;
    std::vector<std::vector<int>> expected;
    for (int i = 0; i < kStreams; ++i) {
        bodies.push_back(greedy("The king said to child " + std::to_string(i), 20 + 3 * i));
        expected.push_back(engine.server.complete(bodies.back())["choices"][0]["token_ids"]);
    }
    std::atomic<bool> setting = true;
    std::vector<std::thread> clients;
    for (size_t i = 0; i < kStreams; ++i)
        clients.emplace_back([&, i] {
            do EXPECT_EQ(streamed_ids(engine.server.port(), bodies[i]), expected[i]) << bodies[i];
            while (setting);
        });
    for (int i = 0; i < kSets; ++i) {
        const std::string chunk = std::to_string(1 + i % 40);
        const Json wanted{{"kind", "scheduler"}, {"params", {{"chunk", chunk}}}};
        const Said answer = engine.ask("POST", "/set", wanted.dump());
        EXPECT_EQ(answer.status, 200u) << answer.body;
        EXPECT_EQ(answer.body, wanted);
    }
    setting = false;
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(engine.server.pages_in_use_when_idle(), 0u);
    EXPECT_EQ(slot(engine.status(), "scheduler")["generation"], 1) << "the component stays";
}

// All of it at once: 64 streams, one client that swaps again and again, and one that sets. PATCHBAY_SWAPS_AND_SETTINGS:
// how often each; 1,000 times in the nightly tier.
TEST(AdminSwap, BesideAsManySettingsLosesAndDoublesNothing) {
    config::EngineConfig config = Running::demo_model();
    config.scheduler = {"sjf", {}};
    config.engine.max_num_seqs = 16; // so that others wait, in the order of the scheduler
    config.swap.probation_steps = 1;
    const Controlled engine(config);
    constexpr size_t kStreams = 64;
    const char* const asked = std::getenv("PATCHBAY_SWAPS_AND_SETTINGS");
    const int kTimes = asked ? std::atoi(asked) : kIsSanitized ? 20 : 100;
    allow_open_files(4 * kStreams);
    std::vector<LoadRequest> requests;
    std::vector<std::vector<int>> expected;
    for (size_t i = 0; i < 2 * kStreams; ++i) {
        Json body = greedy("The king said to child " + std::to_string(i), 20 + static_cast<int>(i % 50));
        expected.push_back(engine.server.complete(body)["choices"][0]["token_ids"]);
        body["stream"] = true;
        requests.push_back({body.dump(), SIZE_MAX});
    }
    std::atomic<int> under_way = 2;
    std::thread swapping([&] {
        for (int i = 0; i < kTimes; ++i) { // each time another configuration of a component in another place
            const Json body = i % 3 == 2 ? Json{{"kind", "sampler"}, {"plugin", "standard"}}
                                         : Json{{"kind", "scheduler"}, {"plugin", "sjf"}, {"params", {{"ageing", i}}}};
            const Said answer = engine.swap(body);
            EXPECT_TRUE(answer.status == 200 || answer.status == 202) << answer.body;
        }
        under_way -= 1;
    });
    std::thread setting([&] {
        for (int i = 0; i < kTimes; ++i) {
            const Json body{{"kind", "scheduler"}, {"params", {{"ageing", std::to_string(i)}}}};
            const Said answer = engine.ask("POST", "/set", body.dump());
            EXPECT_EQ(answer.status, 200u) << answer.body;
        }
        under_way -= 1;
    });
    size_t streams = 0;
    do {
        const std::vector<LoadAnswer> answers = run_load(engine.server.port(), requests, kStreams);
        for (size_t i = 0; i < answers.size(); ++i) ASSERT_EQ(streamed_tokens(answers[i].stream), expected[i]) << i;
        streams += answers.size();
    } while (under_way > 0);
    swapping.join();
    setting.join();
    engine.server.complete(greedy("The king", 20)); // for the steps of the last one's probation
    EXPECT_EQ(engine.server.pages_in_use_when_idle(), 0u);
    const Json status = engine.status();
    EXPECT_EQ(status["swaps"]["pending"], Json::array());
    EXPECT_EQ(slot(status, "scheduler")["generation"].get<int>() + slot(status, "sampler")["generation"].get<int>(),
              kTimes + 2);
    std::printf("%zu streams beside %d swaps and as many settings\n", streams, kTimes);
}

TEST(AdminRequests, ThatAreMalformedAreRefusedByName) {
    const Controlled engine;
    struct Case {
        const char *method, *path;
        std::string body;
        unsigned status;
        const char* text;
    };
    const Case cases[] = {
        {"POST", "/swap", "", 400, "no JSON"},
        {"POST", "/swap", "[]", 400, "a list, expected an object"},
        {"POST", "/swap", "{", 400, "no JSON"},
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
        {"POST", "/swap", "{\"kind\": \"scheduler\", \"plugin\": \"\xff\"}", 400, "no JSON"},
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

TEST(AdminAddress, OnTcpNeedsItsToken) {
    AdminAddress address;
    address.host = "127.0.0.1";
    address.token = "0123456789abcdef";
    const Controlled engine(Running::demo_model(), address);
    EXPECT_EQ(engine.status()["state"], "running");
    const uint16_t port = engine.address().port;
    for (const char* header : {"", "Authorization: Bearer 0123456789abcdeg\r\n", "Authorization: 0123456789abcdef\r\n",
                               "Authorization: Bearer 0123456789abcdef0\r\n"})
        for (const char* path : {"/swap", "/drain", "/reload"})
            EXPECT_EQ(post(port, path, "{}", header).status, 401) << header << path;
    EXPECT_EQ(get(port, "/status").status, 401);
    EXPECT_EQ(get(port, "/plugins").status, 401);
    EXPECT_EQ(engine.status()["state"], "running"); // none of them drained it
}

TEST(AdminAddress, IsForItsUserAloneAndGoneWithTheServer) {
    fs::path socket;
    const TemporaryFolder folder;
    {
        const Controlled engine;
        socket = engine.address().socket;
        struct stat info {};
        ASSERT_EQ(lstat(socket.c_str(), &info), 0);
        EXPECT_TRUE(S_ISSOCK(info.st_mode));
        EXPECT_EQ(info.st_mode & 07777, 0600u);
        engine.server.server->stop();
        EXPECT_FALSE(fs::exists(fs::symlink_status(socket)));
    }
    AdminAddress gone;
    gone.socket = socket;
    const auto answer = ask_admin(gone, "GET", "/status");
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error(), HasSubstr("no engine listens on"));
}

TEST(AdminDrain, LetsStreamsEndAndThenTheServer) {
    const Controlled engine;
    const std::vector<int> expected = engine.server.complete(greedy("The king", 200))["choices"][0]["token_ids"];
    HttpClient client(engine.server.port());
    Json body = greedy("The king", 200);
    body["stream"] = true;
    client.post("/v1/completions", body.dump());
    ASSERT_EQ(client.read_head().status, 200);
    ASSERT_TRUE(client.read_event());
    const Said drained = engine.ask("POST", "/drain");
    EXPECT_EQ(drained.status, 202u);
    EXPECT_EQ(drained.body["state"], "draining");
    size_t tokens = 0;
    std::string last;
    while (const auto event = client.read_event()) {
        last = *event;
        if (*event != "[DONE]") tokens += Json::parse(*event)["choices"][0]["token_ids"].size();
    }
    EXPECT_EQ(last, "[DONE]");
    EXPECT_GE(tokens, expected.size() - 10); // less those of the event that was read before
    client.read_rest();
    engine.server.server->wait();
    EXPECT_EQ(engine.server.server->engine().status().state, service::ServiceState::kStopped);
}

}  // namespace
}  // namespace patchbay::serve::testing
