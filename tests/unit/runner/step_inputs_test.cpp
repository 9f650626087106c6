// A step's arrays on their way to a device.
#include "runner/step_inputs.hpp"

#include <gmock/gmock.h>

#include "fake_device.hpp"

namespace patchbay::runner::step_inputs_test {
namespace {

using testing::PlayedDevice;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
std::vector<T> there(const T* at, size_t count) { // of memory that the device's is
    return {at, at + count};
}

TEST(StepInputs, ArriveTogetherWhereTheyWerePlaced) {
    PlayedDevice device;
    StepInputs part(device.opened.plugin);
    ASSERT_TRUE(part.reserve(1024));
    const std::vector<int32_t> ids = {1, 2, 3};
    const std::vector<int64_t> slots = {-1, 1LL << 40};
    const int32_t* const at_ids = part.place(std::span(ids));
    const int64_t* const at_slots = part.place(std::span(slots));
    ASSERT_TRUE(at_ids && at_slots);
    EXPECT_EQ(there(at_ids, 3), std::vector<int32_t>(3)) << "nothing is sent yet";
    ASSERT_TRUE(part.send());
    EXPECT_THAT(there(at_ids, 3), ElementsAre(1, 2, 3));
    EXPECT_THAT(there(at_slots, 2), ElementsAre(-1, 1LL << 40));
}

TEST(StepInputs, OfTheSameLengthsHaveTheSameAddressesInEveryStep) {
    PlayedDevice device;
    StepInputs part(device.opened.plugin);
    ASSERT_TRUE(part.reserve(1024));
    std::vector<const int32_t*> first, second;
    for (auto* const addresses : {&first, &second}) {
        part.clear();
        for (const int32_t length : {3, 0, 17}) {
            const std::vector<int32_t> values(static_cast<size_t>(length), static_cast<int32_t>(addresses->size()));
            addresses->push_back(part.place(std::span(values)));
        }
        ASSERT_TRUE(part.send());
    }
    EXPECT_EQ(first, second);
    for (const int32_t* const a : first) EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % 4, 0u);
}

TEST(StepInputs, ThatPassWhatWasReservedAreNotSent) {
    PlayedDevice device;
    StepInputs part(device.opened.plugin);
    ASSERT_TRUE(part.reserve(StepInputs::room_for(3, 4) + StepInputs::room_for(4, 4)));
    const std::vector<int32_t> three(3), four(4), one(1);
    EXPECT_NE(part.place(std::span(three)), nullptr);
    EXPECT_NE(part.place(std::span(four)), nullptr) << "room_for() says what they take";
    ASSERT_TRUE(part.send());
    EXPECT_EQ(part.place(std::span(one)), nullptr);
    EXPECT_THAT(part.send().error(), HasSubstr("expected at most " + std::to_string(part.bytes())));
    part.clear();
    EXPECT_NE(part.place(std::span(one)), nullptr);
    EXPECT_TRUE(part.send());
}

}  // namespace
}  // namespace patchbay::runner::step_inputs_test
