// Files of steps: from the next step on, one file of each kind, and on with the steps of another engine.
#include "engine/trace/step_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/loop/step_observer.hpp"
#include "engine/placement/placed.hpp"
#include "engine/step_report.hpp"
#include "engine/trace/kv_event_feed.hpp"
#include "unit/engine/temporary_folder.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::step_files_test {
namespace {

size_t lines_of(const std::string& path) {
    std::ifstream in(path);
    return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}

struct Bench : QueueNeighbours {
    void step() { // of one token
        StepReport r;
        r.step = ++number;
        for (StepObserver* o : observers) {
            o->on_planned({{{&sequence, 1}}, {}});
            o->on_placed({{&sequence, 1, 0, 1}});
            o->on_end(r);
        }
    }
    size_t observing() const { return static_cast<size_t>(std::distance(observers.begin(), observers.end())); }

    const std::string trace = (temporary_folder() / "steps.json").string();
    const std::string decisions = (temporary_folder() / "steps.jsonl").string();
    const std::string events = (temporary_folder() / "kv_events.jsonl").string();
    Sequence& sequence = run(4, 3);
    StepObservers observers;
    KvEventFeed kv_events{kv, clock};
    StepFiles part{observers, kv_events, {sequences, kv.pool(), scheduler}};
    uint64_t number = 0;
};

TEST(StepFiles, AreWrittenUntilTheyAreClosed) {
    Bench b;
    ASSERT_TRUE(b.part.write({.trace = {}, .decisions = b.decisions}));
    EXPECT_EQ(b.observing(), 1u);
    b.step();
    b.step();
    ASSERT_TRUE(b.part.close());
    EXPECT_EQ(b.observing(), 0u);
    b.step();
    EXPECT_EQ(lines_of(b.decisions), 2u);
    EXPECT_TRUE(b.part.close()) << "there is none";
}

TEST(StepFiles, AreOneOfEachKind) {
    Bench b;
    ASSERT_TRUE(b.part.write({b.trace, b.decisions, b.events}));
    EXPECT_EQ(b.observing(), 2u) << "the KV events are written by their feed";
    EXPECT_EQ(b.part.write({.trace = b.trace, .decisions = {}}).code(), StatusCode::kInvalid);
    EXPECT_EQ(b.part.write({.trace = {}, .decisions = b.decisions}).code(), StatusCode::kInvalid);
    EXPECT_EQ(b.part.write({.kv_events = b.events}).code(), StatusCode::kInvalid);
    ASSERT_TRUE(b.part.close());
    EXPECT_TRUE(b.part.write({.decisions = b.decisions, .kv_events = b.events})) << "those before are closed";
}

TEST(StepFiles, OfAFolderThatIsNotThereAreRefused) {
    Bench b;
    const std::string nowhere = b.decisions + "/none/steps.jsonl";
    EXPECT_EQ(b.part.write({.trace = {}, .decisions = nowhere}).code(), StatusCode::kNotFound);
    EXPECT_EQ(b.observing(), 0u);
}

TEST(StepFiles, GoOnWithTheStepsOfAnotherEngine) {
    Bench first, next;
    ASSERT_TRUE(first.part.write({.trace = {}, .decisions = first.decisions}));
    first.step();
    next.part.go_on_with(first.part);
    EXPECT_EQ(first.observing(), 0u);
    EXPECT_EQ(next.observing(), 1u);
    first.step();
    next.step();
    ASSERT_TRUE(next.part.close());
    EXPECT_EQ(lines_of(first.decisions), 2u);
}

}  // namespace
}  // namespace patchbay::engine::testing::step_files_test
