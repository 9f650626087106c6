// What a log of decisions says of steps: as its readers read it, which is a line of JSON each.
#include "engine/trace/decision_log.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/placement/placed.hpp"
#include "engine/step_report.hpp"
#include "engine/trace/join_traces.hpp"
#include "unit/engine/temporary_folder.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::decision_log_test {
namespace {

using Json = nlohmann::json;

std::vector<Json> lines_of(const std::string& path) {
    std::vector<Json> out;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
    return out;
}

struct Bench : QueueNeighbours {
    explicit Bench(TraceOf of = {}, World w = {}) : QueueNeighbours(std::move(w)) {
        auto file = DecisionFile::create(path, std::move(of));
        if (!file) throw std::runtime_error(file.error());
        part = std::make_unique<DecisionLog>(*std::move(file), StepSources{sequences, kv.pool(), scheduler});
    }
    // A step of 2 ms from 5 ms on, with room for as many tokens of each item.
    void step(const StepPlan& plan, const std::vector<uint32_t>& room, StepReport r = {}) {
        part->on_planned(plan);
        std::vector<Placed> placed;
        for (size_t i = 0; i < room.size(); ++i)
            if (room[i] > 0) placed.push_back({plan.items[i].sequence, room[i], 0, 1});
        part->on_placed(placed);
        r.step = ++number;
        r.start_ns = 5'000'000;
        r.end_ns = 7'000'000;
        part->on_end(r);
    }
    std::vector<Json> written() {
        EXPECT_TRUE(part->close());
        return lines_of(path);
    }

    const std::string path = (temporary_folder() / "decisions.jsonl").string();
    std::unique_ptr<DecisionLog> part;
    uint64_t number = 0;
};

TEST(DecisionLog, SaysWhatWasPlannedAndHowMuchOfItHadRoom) {
    Bench b;
    Sequence &runs = b.run(6, 6), &other = b.run(4, 4), &first = b.wait(9), &second = b.wait(8);
    runs.tokens.push_back(1);
    const uint32_t free = b.kv.pool().free();
    b.step({{{&runs, 1}, {&first, 9}, {&second, 8}}, {{&other, other.id, PB_PREEMPT_SWAP}}}, {1, 5, 0});
    const std::vector<Json> lines = b.written();
    ASSERT_EQ(lines.size(), 1u);
    const Json expected = {
        {"step", 1}, {"start_ms", 0.0}, {"end_ms", 2.0}, {"scheduler", "fake"}, {"running", 2}, {"waiting", 2},
        {"free_pages", free}, {"finished", 0}, {"preempt", {{{"id", other.id}, {"how", "swap"}}}},
        {"plan", {{{"id", runs.id}, {"tokens", 1}, {"computed", 6}, {"known", 7}},
                  {{"id", first.id}, {"tokens", 9}, {"computed", 0}, {"known", 9}, {"from", "waiting"}, {"placed", 5}},
                  {{"id", second.id}, {"tokens", 8}, {"computed", 0}, {"known", 8}, {"from", "waiting"},
                   {"placed", 0}}}}};
    EXPECT_EQ(lines[0], expected) << lines[0].dump(2);
}

TEST(DecisionLog, SaysWhatElseTouchedTheStep) {
    Bench b;
    Sequence& runs = b.run(4, 4);
    runs.tokens.insert(runs.tokens.end(), {1, 2, 3}); // one token and two drafts
    runs.drafts = 2;
    StepReport r;
    r.sync_reason = "preemption";
    r.calls.plan_faults = 1;
    r.kv.evicted_pages = 5;
    r.kv.chosen_evictions = 2;
    r.drafts.drafted_tokens = 2;
    r.drafts.accepted_tokens = 1;
    r.preemption.swapped_out = 1;
    r.work.finished = 3;
    b.step({{{&runs, 3}}, {}}, {3}, r);
    b.step({}, {}); // of which nothing of the step before is left
    const std::vector<Json> lines = b.written();
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0]["plan"][0]["drafts"], 2);
    EXPECT_EQ(lines[0]["plan"][0]["known"], 5);
    EXPECT_EQ(lines[0]["waited_for_step_before"], "preemption");
    EXPECT_EQ(lines[0]["refused_plans"], 1);
    EXPECT_EQ(lines[0]["evicted_pages"], Json({{"all", 5}, {"chosen_by_kv_policy", 2}}));
    EXPECT_EQ(lines[0]["drafts"], Json({{"verified", 2}, {"accepted", 1}}));
    EXPECT_EQ(lines[0]["swapped_out"], 1);
    EXPECT_EQ(lines[0]["finished"], 3);
    EXPECT_TRUE(lines[1]["plan"].empty());
    for (const char* key : {"waited_for_step_before", "refused_plans", "evicted_pages", "drafts", "swapped_out",
                            "preempt"})
        EXPECT_FALSE(lines[1].contains(key)) << key;
}

TEST(DecisionLog, AnEngineWithoutSequencesDecidesNothing) {
    Bench b;
    b.step({}, {});
    EXPECT_TRUE(b.written().empty());
}

TEST(DecisionLog, AnOutputOfSeveralSaysWhichRequestItIsOf) {
    Bench b;
    const std::vector<Sequence*> both = b.add_siblings(2, 4);
    b.step({{{both[0], 4}, {both[1], 1}}, {}}, {4, 1});
    const Json plan = b.written().at(0)["plan"];
    EXPECT_FALSE(plan[0].contains("request"));
    EXPECT_EQ(plan[1]["id"], both[1]->id);
    EXPECT_EQ(plan[1]["request"], both[0]->id);
}

TEST(DecisionLog, OfSeveralEnginesEachLineSaysWhoseItIsAndTimesBeginWithTheRun) {
    Bench b(TraceOf{"sjf", 1, 4'000'000});
    b.wait(4);
    b.step({}, {});
    const Json line = b.written().at(0);
    EXPECT_EQ(line["variant"], "sjf");
    EXPECT_EQ(line["start_ms"], 1.0);
}

TEST(DecisionLog, HasEachStepAsSoonAsItEndsForTheNextMayEndTheProcess) {
    Bench b;
    Sequence& runs = b.run(6, 6);
    b.step({{{&runs, 1}}, {}}, {1});
    EXPECT_EQ(lines_of(b.path).size(), 1u);
}

TEST(DecisionFile, OneThatCannotBeWrittenIsRefusedWithItsName) {
    const auto file = DecisionFile::create("/nonexistent/decisions.jsonl");
    ASSERT_FALSE(file);
    EXPECT_THAT(file.error(), ::testing::HasSubstr("/nonexistent/decisions.jsonl"));
}

TEST(DecisionFile, JoiningLeavesOutWhatWasNotWrittenWhole) {
    const auto folder = temporary_folder();
    std::ofstream(folder / "a") << "{\"step\":1}\n{\"step\":2}\n{\"st";
    std::ofstream(folder / "b") << "{\"step\":3}\n";
    const std::string joined = (folder / "joined").string();
    ASSERT_TRUE(join_lines({folder / "a", folder / "b"}, joined));
    std::vector<int> steps;
    for (const Json& line : lines_of(joined)) steps.push_back(line["step"]);
    EXPECT_THAT(steps, ::testing::ElementsAre(1, 2, 3));
    EXPECT_FALSE(join_lines({folder / "missing"}, joined));
}

}  // namespace
}  // namespace patchbay::engine::testing::decision_log_test
