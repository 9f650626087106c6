// Hidden states on their way to host memory.
#include "runner/hidden_output.hpp"

#include <gmock/gmock.h>

#include "fake_device.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::runner::hidden_output_test {
namespace {

using testing::PlayedDevice;
using ::testing::ElementsAre;

TEST(HiddenOutput, CopiesTheRangesThatAreWantedOneAfterTheOther) {
    PlayedDevice device;
    HiddenOutput out(device.opened);
    std::vector<float> states = {0, 1, 2, 3, 4, 5, 6, 7}; // (4, 2)
    const TokenRange wanted[] = {{2, 1}, {0, 2}};
    ASSERT_TRUE(out.append(tensor(states.data(), PB_F32, {4, 2}, 1), wanted));
    EXPECT_THAT(out.states(), ElementsAre(4, 5, 0, 1, 2, 3));
    EXPECT_EQ(device.fake.copied_bytes, 6 * sizeof(float)) << "and nothing else";
    out.clear();
    EXPECT_TRUE(out.states().empty());
}

TEST(HiddenOutput, WidensBf16) {
    PlayedDevice device(true, false); // whose memory is the host's
    HiddenOutput out(device.opened);
    std::vector<uint16_t> states = {0x3F80, 0xC000}; // (1, 2)
    const TokenRange wanted[] = {{0, 1}};
    ASSERT_TRUE(out.append(tensor(states.data(), PB_BF16, {1, 2}), wanted));
    EXPECT_THAT(out.states(), ElementsAre(1, -2));
    EXPECT_EQ(device.fake.copied_bytes, 0u);
}

TEST(HiddenOutput, HasNoWidthWhereTheModelGivesNone) {
    PlayedDevice device;
    const HiddenOutput out(device.opened);
    pb_model_facts facts = sized<pb_model_facts>();
    facts.hidden_size = 32;
    EXPECT_EQ(out.width(facts), 0u);
    facts.flags = PB_MODEL_GIVES_HIDDEN;
    EXPECT_EQ(out.width(facts), 32u);
    device.opened.info.activation_dtype = PB_I8;
    EXPECT_EQ(out.width(facts), 0u);
}

}  // namespace
}  // namespace patchbay::runner::hidden_output_test
