// Logits on their way to host memory.
#include "runner/logits_output.hpp"

#include <gmock/gmock.h>

#include "fake_device.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::runner::logits_output_test {
namespace {

using testing::PlayedDevice;
using ::testing::ElementsAre;

TEST(LogitsOutput, CopiesTheFirstRowsFromTheDevice) {
    PlayedDevice device;
    LogitsOutput out(device.opened);
    std::vector<float> logits = {0, 1, 2, 3, 4, 5}; // (3, 2)
    const auto rows = out.fetch(tensor(logits.data(), PB_F32, {3, 2}), 2);
    ASSERT_TRUE(rows) << rows.error();
    EXPECT_THAT(*rows, ElementsAre(0, 1, 2, 3));
    EXPECT_NE(rows->data(), logits.data());
    EXPECT_EQ(device.fake.copied_bytes, 4 * sizeof(float)) << "and nothing else";
}

TEST(LogitsOutput, AreReadWhereTheyLieInHostMemory) {
    PlayedDevice device(true, false);
    LogitsOutput out(device.opened);
    std::vector<float> logits = {0, 1, 2, 3};
    const auto rows = out.fetch(tensor(logits.data(), PB_F32, {2, 2}), 2);
    ASSERT_TRUE(rows) << rows.error();
    EXPECT_EQ(rows->data(), logits.data());
    EXPECT_EQ(device.fake.copied_bytes, 0u);
}

TEST(LogitsOutput, OfNoRowsAreNone) {
    PlayedDevice device;
    LogitsOutput out(device.opened);
    const auto rows = out.fetch(pb_tensor{}, 0);
    ASSERT_TRUE(rows) << rows.error();
    EXPECT_TRUE(rows->empty());
    EXPECT_EQ(device.fake.copied_bytes, 0u);
}

}  // namespace
}  // namespace patchbay::runner::logits_output_test
