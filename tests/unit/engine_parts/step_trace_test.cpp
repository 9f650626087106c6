// What a trace says of steps and requests: as the viewers read it, which is JSON.
#include "engine/trace/step_trace.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/placement/placed.hpp"
#include "engine/step_report.hpp"
#include "unit/engine/temporary_folder.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::step_trace_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

struct Bench {
    Bench() {
        auto file = TraceFile::create(path);
        if (!file) throw std::runtime_error(file.error());
        part = std::make_unique<StepTrace>(*std::move(file), sequences);
    }
    Sequence& add(RequestId id, uint32_t prompt_tokens, uint64_t arrival_ns = 0) {
        auto made = sequence(id, prompt_tokens);
        request_of(*made).arrival_ns = arrival_ns;
        return sequences.add(std::move(made));
    }
    // A step of 10 µs from now, of so many tokens of each.
    void step(const std::vector<std::pair<Sequence*, uint32_t>>& items, StepReport report = {}) {
        std::vector<Placed> placed;
        for (const auto& [s, tokens] : items) placed.push_back({s, tokens, s->confirmed(), 1});
        part->on_placed(placed);
        report.step = ++number;
        report.start_ns = now_ns;
        report.end_ns = now_ns += 10'000;
        part->on_end(report);
    }
    Json all() { // events of the file, which is whole
        EXPECT_TRUE(part->close());
        std::ifstream in(path);
        return Json::parse(in);
    }
    // Spans of a request as "name begin-end", in µs.
    std::vector<std::string> spans(RequestId id) {
        std::vector<std::string> out;
        for (const Json& e : all())
            if (e["ph"] == "X" && e["pid"] == 2 && e["tid"] == id)
                out.push_back(e["name"].get<std::string>() + " " + std::to_string(int(e["ts"].get<double>())) + "-" +
                              std::to_string(int(e["ts"].get<double>() + e["dur"].get<double>())));
        return out;
    }

    std::string so_far() const {
        std::ifstream in(path);
        return {std::istreambuf_iterator<char>(in), {}};
    }

    const std::string path = (temporary_folder() / "trace.json").string();
    Sequences sequences;
    std::unique_ptr<StepTrace> part;
    uint64_t number = 0, now_ns = 100'000;
};

TEST(StepTrace, HasEachStepAsSoonAsItEndsForTheNextMayEndTheProcess) {
    Bench b;
    b.step({{&b.add(1, 4), 4}});
    EXPECT_THAT(b.so_far(), HasSubstr("\"step 1\""));
}

TEST(StepTrace, ARequestWaitsIsPrefilledInChunksAndDecodes) {
    Bench b;
    Sequence& s = b.add(7, 30, 40'000);
    b.step({{&s, 20}});
    b.step({{&s, 10}});
    s.tokens.push_back(1);
    b.step({{&s, 1}});
    b.step({{&s, 1}});
    EXPECT_THAT(b.spans(7), ElementsAre("queue 40-100", "prefill 100-110", "prefill 110-120", "decode 120-140"));
}

TEST(StepTrace, WhatEndedIsForgottenAndOthersGoOn) {
    Bench b;
    Sequence &ends = b.add(1, 4, 100'000), &stays = b.add(2, 4, 100'000);
    for (Sequence* s : {&ends, &stays}) s->tokens.push_back(1);
    b.step({{&ends, 1}, {&stays, 1}});
    static_cast<void>(b.sequences.remove(1));
    b.step({{&stays, 1}});
    EXPECT_THAT(b.spans(1), ElementsAre("queue 100-100", "decode 100-110"));
    EXPECT_THAT(b.spans(2), ElementsAre("queue 100-100", "decode 100-120"));
}

TEST(StepTrace, APreemptionIsASpanOfItsOwn) {
    Bench b;
    Sequence &s = b.add(1, 4, 100'000), &other = b.add(2, 4, 100'000);
    s.tokens.push_back(1);
    b.step({{&s, 1}});
    b.step({{&other, 4}});
    s.record.preemptions = 1;
    b.step({{&s, 5}});
    EXPECT_THAT(b.spans(1), ElementsAre("queue 100-100", "decode 100-110", "preempted 110-120", "prefill 120-130"));
}

TEST(StepTrace, AStepHasItsPhasesInOrderAndThePluginCallsInThem) {
    Bench b;
    Sequence& s = b.add(1, 4);
    StepReport r;
    r.phase_ns[static_cast<size_t>(Phase::kPlan)] = 2000;
    r.phase_ns[static_cast<size_t>(Phase::kRun)] = 6000;
    r.calls.plan_ns = 1000;
    r.calls.forward.attention_plan = 500;
    r.calls.forward.model_forward = 3000;
    r.work.prefill_tokens = 4;
    r.swaps.push_back({.kind = "sampler", .from = {}, .to = {}, .state = host::SwapState::kCommitted});
    b.step({{&s, 4}}, r);
    std::vector<std::string> phases, calls, marks;
    Json step;
    for (const Json& e : b.all()) {
        if (e["pid"] != 1) continue;
        const auto at = e.contains("ts") ? " " + std::to_string(e["ts"].get<double>()).substr(0, 5) : "";
        if (e["ph"] == "X" && e["tid"] == 1) step = e;
        if (e["ph"] == "X" && e["tid"] == 2) phases.push_back(e["name"].get<std::string>() + at);
        if (e["ph"] == "X" && e["tid"] == 3) calls.push_back(e["name"].get<std::string>() + at);
        if (e["ph"] == "i") marks.push_back(e["args"]["swap"]);
    }
    EXPECT_EQ(step["name"], "step 1");
    EXPECT_EQ(step["args"]["prefill"], 4);
    EXPECT_EQ(step["args"]["no graph"], "device");
    EXPECT_THAT(phases, ElementsAre("plan 100.0", "run 102.0"));
    EXPECT_THAT(calls, ElementsAre("scheduler: plan 100.0", "attention: plan 102.0", "model: forward 102.5"));
    EXPECT_THAT(marks, ElementsAre(HasSubstr("swap sampler")));
}

TEST(StepTrace, AReplayedGraphShowsItsSizeAndPadding) {
    Bench b;
    Sequence& s = b.add(1, 3);
    StepReport r;
    r.phase_ns[static_cast<size_t>(Phase::kRun)] = 6000;
    r.graph.replayed = true;
    r.graph.size = 4;
    r.graph.padded_tokens = 1;
    r.calls.forward.device_launch = 500;
    b.step({{&s, 3}}, r);
    Json args;
    std::vector<std::string> calls;
    for (const Json& e : b.all()) {
        if (e["pid"] != 1 || e["ph"] != "X") continue;
        if (e["tid"] == 1) args = e["args"];
        if (e["tid"] == 3) calls.push_back(e["name"]);
    }
    EXPECT_EQ(args["graph"], (Json{{"tokens", 4}, {"padding", 1}}));
    EXPECT_FALSE(args.contains("no graph"));
    EXPECT_THAT(calls, ElementsAre("device: launch of a graph"));
}

TEST(StepTrace, AStepWithoutTokensLeavesNothingButTheFileIsWhole) {
    Bench b;
    b.step({});
    for (const Json& e : b.all()) EXPECT_EQ(e["ph"], "M");
}

// The last one of those in flight: its results come back in a step that has none of its own.
TEST(StepTrace, AStepThatOnlyCollectsEndsRequestsAndSetsCounters) {
    Bench b;
    Sequence& s = b.add(1, 4, 100'000);
    s.tokens.push_back(1);
    s.in_flight.tokens = 1;
    StepReport submits, collects;
    submits.queues.running_requests = 1;
    b.step({{&s, 1}}, submits);
    static_cast<void>(b.sequences.remove(1));
    collects.work.finished = 1;
    collects.phase_ns[static_cast<size_t>(Phase::kRun)] = 6000;
    b.step({}, collects);
    EXPECT_THAT(b.spans(1), ElementsAre("queue 100-100", "decode 100-120"));
    std::vector<std::string> steps, phases;
    std::vector<int> running;
    Json args;
    for (const Json& e : b.all()) {
        if (e["pid"] != 1) continue;
        if (e["ph"] == "X" && e["tid"] == 1) steps.push_back(e["name"]), args = e["args"];
        if (e["ph"] == "X" && e["tid"] == 2) phases.push_back(e["name"]);
        if (e["ph"] == "C" && e["name"] == "requests") running.push_back(e["args"]["running"]);
    }
    EXPECT_THAT(steps, ElementsAre("step 1", "step 2"));
    EXPECT_THAT(phases, ElementsAre("run"));
    EXPECT_THAT(running, ElementsAre(1, 0));
    EXPECT_EQ(args["sequences"], 0);
    EXPECT_FALSE(args.contains("no graph"));
}

// The same while others go on.
TEST(StepTrace, ARequestEndsInTheStepInWhichItsLastTokenComesBack) {
    Bench b;
    Sequence &ends = b.add(1, 4, 100'000), &stays = b.add(2, 4, 100'000);
    for (Sequence* s : {&ends, &stays}) {
        s->tokens.push_back(1);
        s->in_flight.tokens = 1;
    }
    b.step({{&ends, 1}, {&stays, 1}});
    static_cast<void>(b.sequences.remove(1));
    b.step({{&stays, 1}});
    EXPECT_THAT(b.spans(1), ElementsAre("queue 100-100", "decode 100-120"));
    EXPECT_THAT(b.spans(2), ElementsAre("queue 100-100", "decode 100-120"));
}

TEST(TraceFile, ThatCannotBeWrittenIsRefused) {
    const auto file = TraceFile::create("/nowhere/trace.json");
    ASSERT_FALSE(file);
    EXPECT_THAT(file.error(), HasSubstr("cannot write /nowhere/trace.json: "));
}

}  // namespace
}  // namespace patchbay::engine::testing::step_trace_test
