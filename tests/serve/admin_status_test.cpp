// What GET /status of the admin address says.
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/json_file.hpp"
#include "serve/admin_fixture.hpp"

namespace patchbay::serve::testing::admin_status_test {
namespace {

using ::testing::HasSubstr;

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

TEST(AdminStatus, NamesTheDtypeOfWhatIsNotQuantised) {
    config::EngineConfig config = Running::demo_model();
    config.model.quantization = config::Quantization::kInt8;
    const Controlled engine(config);
    const Json status = engine.status();
    std::map<std::string, std::string> effective;
    for (const Json& s : status["configuration"]) effective[s["key"]] = s["effective"];
    EXPECT_EQ(effective.at("model.dtype"), "bfloat16");
}

TEST(AdminStatus, NamesThePluginOfTheWeightsThatWereSwappedIn) {
    const TemporaryFolder folder;
    const std::string path = folder.path() / "smollm3"; // the same layers, by another plugin
    std::filesystem::copy(engine::testing::repository("models/demo-draft"), path,
                          std::filesystem::copy_options::recursive);
    Json config = *read_json_file(path + "/config.json");
    config["architectures"] = Json::array({"SmolLM3ForCausalLM"});
    config["model_type"] = "smollm3";
    std::ofstream(path + "/config.json") << config.dump();
    const Controlled engine;
    EXPECT_EQ(engine.status()["model"]["architecture"], "LlamaForCausalLM");
    const Said swapped = engine.swap({{"kind", "model"}, {"plugin", path}});
    ASSERT_EQ(swapped.status, 202u) << swapped.body; // it is idle
    const Json status = engine.status();
    EXPECT_EQ(status["model"]["path"], path);
    EXPECT_EQ(status["model"]["architecture"], nullptr);
    EXPECT_EQ(slot(status, "model")["plugin"], "smollm3");
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

}  // namespace
}  // namespace patchbay::serve::testing::admin_status_test
