// POST /set, under load and beside swaps.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "serve/admin_fixture.hpp"
#include "serve/load_client.hpp"

namespace patchbay::serve::testing::admin_set_test {
namespace {

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

// What a slot's component was configured with is shown at once, and goes and comes with it.
TEST(AdminSet, ParametersOfASlotAreShownInTheStatus) {
    config::EngineConfig config = Running::demo_model();
    config.scheduler = {"sjf", {{"ageing", "3"}}};
    config.swap.probation_steps = 1000;
    const Controlled engine(config);
    const auto ageing = [&] { return slot(engine.status(), "scheduler")["params"].value("ageing", "none"); };
    EXPECT_EQ(ageing(), "3");
    EXPECT_EQ(slot(engine.status(), "sampler")["params"], Json::object());
    EXPECT_EQ(engine.ask("POST", "/set", R"({"kind": "scheduler", "params": {"ageing": 55}})").status, 200u);
    EXPECT_EQ(ageing(), "55");
    const Json faulty{{"kind", "scheduler"},
                      {"plugin", "faulty"},
                      {"params", {{"fault", "throws"}, {"at", 4}, {"blocks", 2048}}}};
    EXPECT_EQ(engine.swap(faulty).status, 202u);
    const Json params = slot(engine.status(), "scheduler")["params"];
    EXPECT_EQ(params["fault"], "throws");
    EXPECT_EQ(params["at"], "4");
    engine.server.complete(greedy("Once upon a time", 20)); // in which it fails, and is rolled back
    engine.server.pages_in_use_when_idle();
    EXPECT_EQ(slot(engine.status(), "scheduler")["plugin"], "sjf");
    EXPECT_EQ(ageing(), "55");
    const Json other{{"kind", "scheduler"}, {"plugin", "sjf"}};
    EXPECT_EQ(engine.swap(other).status, 202u);
    EXPECT_NE(ageing(), "55") << "defaults are shown, too";
    EXPECT_NE(ageing(), "none");
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

}  // namespace
}  // namespace patchbay::serve::testing::admin_set_test
