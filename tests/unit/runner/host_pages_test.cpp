// Pages that go out to host memory and come back.
#include "runner/host_pages.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "fake_device.hpp"

namespace patchbay::runner::host_pages_test {
namespace {

using testing::PlayedDevice;
using ::testing::HasSubstr;

constexpr uint64_t kPage = 48;

struct Bench {
    std::vector<uint8_t> page(uint8_t first) const {
        std::vector<uint8_t> out(kPage);
        std::iota(out.begin(), out.end(), first);
        return out;
    }
    PlayedDevice device;
    VirtualClock clock;
    HostPages part{device.opened.plugin, device.opened.info, clock};
};

TEST(HostPages, EachSlotGivesBackWhatWentThere) {
    Bench b;
    auto on_device = b.page(1);
    ASSERT_TRUE(b.part.allocate(3, kPage, on_device.data()));
    EXPECT_EQ(on_device, b.page(1)) << "the page that copies were timed with is as it was";
    EXPECT_EQ(b.part.slots(), 3u);
    for (const kv::BlockId slot : {2, 0, 1}) {
        on_device = b.page(static_cast<uint8_t>(50 * slot));
        ASSERT_TRUE(b.part.copy(kv::Way::kToHost, slot, on_device.data()));
    }
    for (const kv::BlockId slot : {0, 1, 2}) {
        std::ranges::fill(on_device, 0xFF);
        ASSERT_TRUE(b.part.copy(kv::Way::kToDevice, slot, on_device.data()));
        EXPECT_EQ(on_device, b.page(static_cast<uint8_t>(50 * slot))) << slot;
    }
}

TEST(HostPages, OfADeviceThatComputesNothingTakeTheTimeThatItCharges) {
    Bench b;
    b.device.fake.computes = false;
    b.device.opened.info.computes = 0;
    b.device.fake.charged = 8000; // for the copies there and back that are timed
    ASSERT_TRUE(b.part.allocate(1000, kPage, nullptr));
    EXPECT_GT(b.part.ns_a_page(), 0);
    EXPECT_LE(b.part.ns_a_page(), 4000) << "a copy is one way";
}

TEST(HostPages, MoreThanCanBeCountedAreRefused) {
    Bench b;
    EXPECT_THAT(b.part.allocate(UINT32_MAX, UINT64_MAX / 2, nullptr).error(), HasSubstr("more than can be counted"));
}

TEST(HostPages, WithoutSlotsNothingIsCopied) {
    Bench b;
    b.device.fake.calls.clear();
    ASSERT_TRUE(b.part.allocate(0, kPage, nullptr));
    EXPECT_TRUE(b.device.fake.calls.empty());
    EXPECT_EQ(b.part.ns_a_page(), 0);
}

}  // namespace
}  // namespace patchbay::runner::host_pages_test
