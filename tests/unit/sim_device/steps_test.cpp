// A simulated step: its time, its fault, and what ops and copies of pages are charged.
#include <gmock/gmock.h>

#include "ops.hpp"
#include "page_copies.hpp"
#include "patchbay/plugin.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::steps_test {
namespace {

Hardware two_bytes_per_ns() { return {.name = "test", .bf16_per_ns = 1, .f32_per_ns = 1, .bytes_per_ns = 2}; }

TEST(StepTime, ChargesTheLongerOfFlopAndBytesAndThenWhatPassesBetweenRanks) {
    StepTime time(two_bytes_per_ns());
    time.charge(Work{.flop = 30, .flop_per_ns = 1, .bytes = 40});
    EXPECT_EQ(time.charged_ns(), 30u);
    time.charge(Work{.flop = 30, .flop_per_ns = 3, .bytes = 40, .wire_ns = 5});
    EXPECT_EQ(time.charged_ns(), 30u + 25);
    time.restart();
    EXPECT_EQ(time.charged_ns(), 0u);
}

TEST(StepTime, GivesUpARecordingWhenTheNextStepBegins) {
    StepTime time(two_bytes_per_ns());
    time.start_recording();
    time.charge(Work{.bytes = 40});
    EXPECT_EQ(time.charged_ns(), 0u);
    time.restart();
    EXPECT_FALSE(time.is_recording());
    time.charge(Work{.bytes = 40});
    EXPECT_EQ(time.charged_ns(), 20u);
}

TEST(StepFaults, EachSubmittedStepHasItsOwn) {
    StepFaults faults;
    faults.set_fault("the first one's");
    faults.submit_step();
    EXPECT_FALSE(faults.faulty());
    faults.submit_step();
    EXPECT_THROW(faults.wait_step(), Error);
    faults.wait_step();
    EXPECT_THROW(faults.wait_step(), Error) << "no step is left";
}

TEST(PageCopies, GoByTheHostsBandwidthWhereTheMemoryIsAnother) {
    Hardware apart = two_bytes_per_ns();
    apart.host_bytes_per_ns = 0.5;
    for (const auto& [hardware, across] : {std::pair{two_bytes_per_ns(), 100u}, std::pair{apart, 200u}}) {
        StepTime time(hardware);
        PageCopies pages(time);
        pages.copy_page(nullptr, nullptr, 100); // read and written
        EXPECT_EQ(time.charged_ns(), 100u);
        time.restart();
        pages.page_to_host(nullptr, nullptr, 100);
        EXPECT_EQ(time.charged_ns(), across);
        pages.page_to_device(nullptr, nullptr, 100);
        EXPECT_EQ(time.charged_ns(), 2 * across);
    }
}

TEST(OpContext, AnOpIsChargedUnlessAnEarlierOneOfItsStepFailed) {
    StepTime time(two_bytes_per_ns());
    StepFaults faults;
    OpContext context(time, faults, PB_BF16);
    const pb_ops ops = sim_ops(context);
    const pb_tensor x = tensor(nullptr, PB_BF16, {2, 10}), y = tensor(nullptr, PB_BF16, {2, 9});
    ops.add(ops.ctx, &x, &x); // 3 · 40 bytes
    EXPECT_EQ(time.charged_ns(), 60u);
    ops.add(ops.ctx, &x, &y);
    EXPECT_TRUE(faults.faulty());
    ops.add(ops.ctx, &x, &x);
    EXPECT_EQ(time.charged_ns(), 60u);
}

TEST(OpContext, ASumOverRanksGoesRoundTheRingTwice) {
    Hardware hardware = two_bytes_per_ns();
    hardware.alpha_ns = 7;
    hardware.beta_per_ns = 1;
    StepTime time(hardware);
    StepFaults faults;
    OpContext context(time, faults, PB_BF16);
    pb_ops ops = sim_ops(context);
    EXPECT_FALSE(ops.all_reduce);
    context.set_ranks(4);
    add_collectives(ops);
    const pb_tensor x = tensor(nullptr, PB_BF16, {2, 10});
    ops.all_reduce(ops.ctx, &x); // in each of 2 · 3 messages a quarter of 40 bytes
    EXPECT_EQ(time.charged_ns(), 6u * (7 + 10));
    EXPECT_EQ(context.op_checks().ranks, 4u);
}

}  // namespace
}  // namespace patchbay::steps_test
