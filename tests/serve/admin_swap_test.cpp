// POST /swap: under load, on an idle engine, of several slots, rolled back, refused.
#include <atomic>
#include <thread>

#include "serve/admin_fixture.hpp"

namespace patchbay::serve::testing::admin_swap_test {
namespace {

using ::testing::HasSubstr;

const std::string kDemo = engine::testing::repository("models/demo-draft");

// How a swap ended. Its answer comes early where all clients are between two requests; they go on, so it ends.
Json settled(const Controlled& engine, const Said& answer) {
    Json status;
    if (answer.status != 202) return answer.body;
    do status = engine.status();
    while (!status["swaps"]["pending"].empty());
    return status["swaps"]["last"][0];
}
struct SwappedPair { // components of one slot that take each other's place
    std::string kind, first, second;
    int swaps;
};

void PrintTo(const SwappedPair& slot, std::ostream* out) { *out << slot.kind; }

class SwapsUnderLoad : public ::testing::TestWithParam<SwappedPair> {};

TEST_P(SwapsUnderLoad, ChangeNoTokenOfAnyStream) {
    const SwappedPair& pair = GetParam();
    config::EngineConfig config = Running::demo_model();
    config.engine.max_num_seqs = 8; // so that others wait
    if (pair.kind == "proposer") {
        config.proposer = config::PluginChoice{pair.first, {}};
        config.engine.num_speculative_tokens = 3;
    }
    if (pair.kind == "kv_policy") config.kv_policy = config::PluginChoice{pair.first, {}};
    config.swap.probation_steps = 2;
    const Controlled engine(config);
    constexpr int kStreams = 16;
    const int kSwaps = pair.swaps;
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
        const std::string &from = i % 2 ? pair.second : pair.first, &to = i % 2 ? pair.first : pair.second;
        const Said answer = engine.swap({{"kind", pair.kind}, {"plugin", to}});
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
    EXPECT_GT(streamed, kStreams) << "none has begun after a swap";
    EXPECT_EQ(engine.server.pages_in_use_when_idle(), 0u);
    const Json status = engine.status();
    EXPECT_EQ(slot(status, pair.kind)["generation"], kSwaps + 1);
    EXPECT_EQ(status["swaps"]["last"].size(), std::min<size_t>(kSwaps, SlotJournal::kMaxSwaps));
    EXPECT_THAT(get(engine.server.port(), "/metrics").body,
                HasSubstr("patchbay_plugin_swaps_total{kind=\"" + pair.kind + "\",outcome=\"committed\"} " +
                          std::to_string(kSwaps) + "\n"));
    if (pair.kind == "model") {
        EXPECT_EQ(status["model"]["path"], pair.first);
        EXPECT_EQ(slot(status, "model")["plugin"], "llama");
    }
}
INSTANTIATE_TEST_SUITE_P(AdminSwap, SwapsUnderLoad,
                         ::testing::Values(SwappedPair{"scheduler", "fcfs", "sjf", 50},
                                           SwappedPair{"sampler", "standard", "standard", 20},
                                           SwappedPair{"proposer", "ngram", "suffix", 20},
                                           SwappedPair{"kv_policy", "lru", "lfu", 20},
                                           SwappedPair{"attention", "paged", "paged", 20},
                                           SwappedPair{"model", kDemo, kDemo, 6}),
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
    EXPECT_EQ(got["code"], "failed");
    EXPECT_THAT(got["reason"].get<std::string>(), HasSubstr("max_num_batched_tokens"));
    const Json status = engine.status();
    EXPECT_EQ(slot(status, "scheduler")["plugin"], "fcfs");
    EXPECT_EQ(slot(status, "scheduler")["generation"], 1); // the one that was there before
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
        EXPECT_EQ(swap["code"], nullptr);
    }
    const Said refused = engine.swap(both("static", "gready"));
    EXPECT_EQ(refused.status, 409u) << refused.body;
    EXPECT_EQ(refused.body["outcome"], "refused");
    EXPECT_EQ(refused.body["swaps"][0]["phase"], "together");
    EXPECT_EQ(refused.body["swaps"][1]["phase"], "find");
    for (const Json& swap : refused.body["swaps"]) EXPECT_EQ(swap["code"], "not_found") << swap;
    EXPECT_EQ(slot(engine.status(), "scheduler")["plugin"], "sjf");
    const std::string metrics = get(engine.server.port(), "/metrics").body;
    EXPECT_THAT(metrics, HasSubstr("patchbay_plugin_swap_transactions_total{outcome=\"committed\"} 1\n"));
}

TEST(AdminSwap, ThatWaitsForATransactionOnAnIdleEngineIsPosted) {
    config::EngineConfig config = Running::demo_model();
    config.swap.probation_steps = 4;
    const Controlled engine(config);
    EXPECT_EQ(engine.swap({{"kind", "scheduler"}, {"plugin", "sjf"}}).body["outcome"], "on probation");
    EXPECT_EQ(engine.swap(both("fcfs", "greedy")).body["outcome"], "posted"); // waits for the scheduler
    EXPECT_EQ(engine.swap({{"kind", "sampler"}, {"plugin", "standard"}}).body["outcome"], "posted"); // for these
    EXPECT_EQ(engine.swap({{"kind", "attention"}, {"plugin", "paged"}}).body["outcome"], "on probation"); // for none
    for (int i = 0; i < 4; ++i) engine.server.complete(greedy("The king", 20));
    engine.server.pages_in_use_when_idle();
    const Json status = engine.status();
    EXPECT_EQ(status["swaps"]["pending"], Json::array());
    EXPECT_EQ(slot(status, "scheduler")["plugin"], "fcfs");
    EXPECT_EQ(slot(status, "sampler")["plugin"], "standard");
}

TEST(AdminSwap, IsRefusedWithPhaseAndReason) {
    const Controlled engine;
    struct Case {
        Json body;
        const char *phase, *reason, *code;
    };
    const Case cases[] = {
        {{{"kind", "scheduler"}, {"plugin", "sfj"}}, "find", "no scheduler 'sfj' (did you mean 'sjf'?)", "not_found"},
        {{{"kind", "sampler"}, {"plugin", "fcfs"}}, "find", "no sampler 'fcfs'", "not_found"},
        {{{"kind", "scheduler"}, {"plugin", "../../etc/passwd"}}, "find", "no scheduler '../../etc/passwd'",
         "not_found"},
        {{{"kind", "model"}, {"plugin", std::string(300, 'x')}}, "find", "name too long", "failed"},
        {{{"kind", "model"}, {"plugin", "/nowhere"}}, "find", "no such folder", "not_found"},
        {{{"kind", "proposer"}, {"plugin", "ngram"}}, "find", "num_speculative_tokens", "unsupported"},
        {{{"kind", "scheduler"}, {"plugin", "sjf"}, {"params", {{"agein", 1}}}}, "create", "did you mean 'ageing'",
         "invalid"},
        {{{"kind", "scheduler"}, {"plugin", "sjf"}, {"params", {{"ageing", "soon"}}}}, "create", "ageing", "invalid"},
        {{{"kind", "scheduler"}, {"plugin", "faulty"}, {"params", {{"fault", "throws"}}}}, "probe", "fails on purpose",
         "invalid"},
    };
    for (const Case& c : cases) {
        const Said got = engine.swap(c.body);
        EXPECT_EQ(got.status, 409u) << got.body;
        EXPECT_EQ(got.body["outcome"], "refused");
        EXPECT_EQ(got.body["phase"], c.phase) << got.body;
        EXPECT_THAT(got.body["reason"].get<std::string>(), HasSubstr(c.reason));
        EXPECT_EQ(got.body["code"], c.code) << got.body;
    }
    EXPECT_EQ(slot(engine.status(), "scheduler")["generation"], 1);
}

}  // namespace
}  // namespace patchbay::serve::testing::admin_swap_test
