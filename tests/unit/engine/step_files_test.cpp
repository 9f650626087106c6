// What an engine writes of its steps is one file of each kind, also where another engine takes over.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/trace/step_files.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "unit/engine/temporary_folder.hpp"

namespace patchbay::engine::step_files_test {
namespace {

using namespace testing;
using Json = nlohmann::json;

void run_one(Engine& engine) {
    Request r;
    r.prompt = {5, 6, 7};
    r.sampling = greedy(4);
    ASSERT_TRUE(engine.add_request(std::move(r)));
    while (engine.has_unfinished()) ASSERT_TRUE(engine.step());
}

TEST(StepFiles, AreNotOneFile) {
    const std::filesystem::path folder = temporary_folder();
    RealClock clock;
    auto engine = Engine::create(tiny_model(), registry(), clock);
    ASSERT_TRUE(engine);
    const auto written =
        (*engine)->files().write({(folder / "both").string(), (folder / "." / "both").string()});
    ASSERT_FALSE(written);
    EXPECT_NE(written.error().find("the trace and the log of decisions have the same file"), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(folder / "both"));
    EXPECT_FALSE(check({.trace = "both", .kv_events = "./both"}));
    EXPECT_FALSE(check({.decisions = "both", .kv_events = "both"}));
    EXPECT_TRUE(check({"one", "two", "three"}));
}

// What a router has of a cache that is gone would send it prompts in vain.
TEST(StepFiles, OfKvEventsSayThatTheCacheIsAnotherWithTheNextEngine) {
    const std::filesystem::path path = temporary_folder() / "kv_events_go_on.jsonl";
    config::EngineConfig config = tiny_model();
    config.engine.enable_prefix_caching = true;
    config.engine.block_size = 2;
    RealClock clock;
    auto first = Engine::create(config, registry(), clock);
    config.engine.block_size = 4;
    auto next = Engine::create(config, registry(), clock);
    ASSERT_TRUE(first && next);
    ASSERT_TRUE((*first)->files().write({.kv_events = path.string()}));
    run_one(**first);
    (*next)->files().go_on_with((*first)->files());
    run_one(**next);
    run_one(**first); // of which nothing is written any more
    ASSERT_TRUE((*next)->files().close());
    std::vector<std::string> types;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        const Json e = Json::parse(line);
        types.push_back(e["type"].get<std::string>());
        if (e.contains("block_size")) types.back() += " " + e["block_size"].dump();
    }
    const std::vector<std::string> expected = {"BlockStored 2", "BlockStored 2", "BlockStored 2", "AllBlocksCleared",
                                               "BlockStored 4"};
    EXPECT_EQ(types, expected); // of 3 tokens of the prompt and 3 of the output
    std::filesystem::remove(path);
}

TEST(StepFiles, GoOnWithTheEngineThatTakesOver) {
    const std::filesystem::path trace = temporary_folder() / "goes_on.json";
    const std::filesystem::path decisions = temporary_folder() / "goes_on.jsonl";
    RealClock clock;
    auto first = Engine::create(tiny_model(), registry(), clock);
    auto next = Engine::create(tiny_model(), registry(), clock);
    ASSERT_TRUE(first && next);
    ASSERT_TRUE((*first)->files().write({trace.string(), decisions.string()}));
    EXPECT_FALSE((*first)->files().write({.trace = trace.string(), .decisions = {}}));
    EXPECT_FALSE((*first)->files().write({.trace = {}, .decisions = decisions.string()}));
    run_one(**first);
    (*next)->files().go_on_with((*first)->files());
    run_one(**next);
    ASSERT_TRUE((*first)->files().close()); // which has none any more
    ASSERT_TRUE((*next)->files().close());
    run_one(**next); // of which nothing is written
    const Json events = Json::parse(std::ifstream(trace));
    size_t steps = 0, prefills = 0;
    for (const Json& e : events) {
        steps += e["ph"] == "X" && e["pid"] == 1 && e["tid"] == 1;
        prefills += e["name"] == "prefill";
    }
    EXPECT_EQ(steps, 8u);
    EXPECT_EQ(prefills, 2u);
    size_t planned = 0, admitted = 0;
    std::ifstream in(decisions);
    for (std::string line; std::getline(in, line);) {
        const Json step = Json::parse(line);
        for (const Json& item : step["plan"]) {
            planned += item["tokens"].get<size_t>();
            admitted += item.contains("from");
        }
    }
    EXPECT_EQ(planned, 2u * (3 + 3)); // prompts, and tokens but the last of each
    EXPECT_EQ(admitted, 2u);
    for (const auto& path : {trace, decisions}) std::filesystem::remove(path);
}

}  // namespace
}  // namespace patchbay::engine::step_files_test
