// Where a head finds what it goes on from.
#include "runner/hidden_states.hpp"

#include <gtest/gtest.h>

#include "fake_device.hpp"

namespace patchbay::runner::hidden_states_test {
namespace {

using testing::PlayedDevice;

constexpr HiddenStates::Shape kShape{.target_rows = 5, .passes = 3, .pass_rows = 2, .width = 4, .dtype = PB_BF16,
                                     .device = 1, .computes = true};

TEST(HiddenStates, RowsOfTheHeadsPassesLieAfterTheTargetsAndDoNotOverlap) {
    PlayedDevice device;
    HiddenStates part(device.opened.plugin);
    ASSERT_TRUE(part.allocate(kShape));
    EXPECT_EQ(part.all().shape[0], 5 + 3 * 2);
    EXPECT_EQ(part.all().shape[1], 4);
    EXPECT_GE(part.row_of_pass(0), part.target_rows());
    for (uint32_t pass = 1; pass < part.passes(); ++pass)
        EXPECT_GE(part.row_of_pass(pass), part.row_of_pass(pass - 1) + kShape.pass_rows);
    EXPECT_LE(part.row_of_pass(2) + kShape.pass_rows, part.all().shape[0]);
}

TEST(HiddenStates, ARangeOfRowsIsPartOfTheWhole) {
    PlayedDevice device;
    HiddenStates part(device.opened.plugin);
    ASSERT_TRUE(part.allocate(kShape));
    const pb_tensor all = part.all(), some = part.rows(3, 2);
    EXPECT_EQ(static_cast<std::byte*>(some.data) - static_cast<std::byte*>(all.data), 3 * 4 * 2) << "bytes";
    EXPECT_EQ(some.shape[0], 2);
    EXPECT_EQ(some.dtype, PB_BF16);
    EXPECT_EQ(some.device, 1);
}

TEST(HiddenStates, HaveNoMemoryWhereNothingIsComputed) {
    PlayedDevice device(false);
    HiddenStates part(device.opened.plugin);
    HiddenStates::Shape shape = kShape;
    shape.computes = false;
    ASSERT_TRUE(part.allocate(shape));
    EXPECT_EQ(part.rows(1, 1).data, nullptr);
}

}  // namespace
}  // namespace patchbay::runner::hidden_states_test
