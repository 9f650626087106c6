// A trace is one file, also where another engine takes over.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "unit/engine/engine_fixture.hpp"
#include "unit/engine/temporary_folder.hpp"

namespace patchbay::engine {
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

TEST(Trace, GoesOnInTheSameFileWithTheEngineThatTakesOver) {
    const std::filesystem::path path = temporary_folder() / "goes_on.json";
    RealClock clock;
    auto first = Engine::create(tiny_model(), registry(), clock);
    auto next = Engine::create(tiny_model(), registry(), clock);
    ASSERT_TRUE(first && next);
    ASSERT_TRUE((*first)->write_trace(path.string()));
    run_one(**first);
    (*next)->go_on_with_trace_of(**first);
    run_one(**next);
    ASSERT_TRUE((*first)->end_trace()); // which has none any more
    ASSERT_TRUE((*next)->end_trace());
    const Json events = Json::parse(std::ifstream(path));
    size_t steps = 0, prefills = 0;
    for (const Json& e : events) {
        steps += e["ph"] == "X" && e["pid"] == 1 && e["tid"] == 1;
        prefills += e["name"] == "prefill";
    }
    EXPECT_EQ(steps, 8u);
    EXPECT_EQ(prefills, 2u);
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace patchbay::engine
