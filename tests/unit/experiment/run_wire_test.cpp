#include "experiment/run_wire.hpp"

#include <gmock/gmock.h>

namespace patchbay::experiment::run_wire_test {
namespace {

using ::testing::ElementsAre;

// A member that fields() leaves out would be lost on the way: then these sizes change first.
static_assert(sizeof(engine::StepReport) == 808 && sizeof(RequestRecord) == 200);
static_assert(sizeof(engine::ScheduledWork) == 36 && sizeof(engine::QueueReport) == 24);
static_assert(sizeof(engine::KvReport) == 104 && sizeof(engine::PreemptionReport) == 72);
static_assert(sizeof(engine::DraftReport) == 184 && sizeof(engine::GrammarReport) == 48);
static_assert(sizeof(engine::CallReport) == 136 && sizeof(engine::GraphReport) == 56);
static_assert(sizeof(engine::ModelFacts) == 224 && sizeof(engine::KvFacts) == 176);
static_assert(sizeof(engine::EngineFacts) == 600);

RunRecord record() {
    RunRecord run;
    run.variant = 3;
    run.started = "2026-01-02T03:04:05Z";
    run.faults = {"one", "two"};
    run.end = RunEnd::kInterrupted;
    run.numbers = {{"kv_max", 0.5}, {"plugin.scheduler.depth", 3}};
    RequestRecord request;
    request.token_ns = {1, 2, 1ull << 60};
    request.output = {7, -1};
    request.others = {{}, {5}};
    request.priority = -4;
    request.label = "chat";
    request.finish = engine::FinishReason::kLength;
    run.requests = {request, {}};
    engine::StepReport step;
    step.step = 9;
    step.phase_ns[7] = 70;
    step.kv.residencies_ns = {4, 5};
    step.drafts.accepted_at[15] = 3;
    step.kv.watermark = 0.25;
    step.graph.replayed = true;
    step.graph.miss = "a reason";
    step.graph.bytes = 11;
    run.steps = {step};
    run.swaps.emplace_back().record.reason = "because";
    return run;
}

TEST(RunWire, BringsARecordAcrossAsItIs) {
    const std::string sent = frame_of(Word::kDone, record());
    Frames frames;
    for (const char byte : sent) { // in whatever parts it comes
        EXPECT_FALSE(frames.next());
        frames.add({&byte, 1});
    }
    const auto frame = frames.next();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->word, Word::kDone);
    RunRecord got;
    ASSERT_TRUE(unpack(frame->body, got));
    EXPECT_EQ(frame_of(Word::kDone, got), sent);
    EXPECT_EQ(got.steps[0].graph.miss, "a reason");
    EXPECT_THAT(got.requests[0].token_ns, ElementsAre(1, 2, 1ull << 60));
    ASSERT_EQ(got.numbers.size(), 2u);
    EXPECT_EQ(got.numbers[1].name, "plugin.scheduler.depth");
    EXPECT_EQ(got.numbers[1].value, 3);
    EXPECT_FALSE(frames.next());
}

TEST(RunWire, RefusesWhatIsCutOffOrTooLong) {
    Packer packer;
    packer(record());
    const std::string bytes = packer.take();
    RunRecord got;
    ASSERT_TRUE(unpack(bytes, got));
    for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(unpack(std::string_view(bytes).substr(0, n), got)) << n;
    EXPECT_FALSE(unpack(bytes + "x", got));
}

TEST(RunWire, SurvivesBytesOfAnyKind) {
    Packer packer;
    packer(record());
    const std::string bytes = packer.take();
    for (size_t n = 0; n < bytes.size(); ++n) {
        std::string broken = bytes;
        broken[n] = static_cast<char>(0xFF);
        RunRecord got;
        (void)unpack(broken, got); // whatever comes of it, within the bytes and with no more memory than they justify
    }
    Frames frames;
    frames.add(std::string(64, '\xFF'));
    EXPECT_FALSE(frames.next());
    EXPECT_TRUE(frames.broken());
}

}  // namespace
}  // namespace patchbay::experiment::run_wire_test
