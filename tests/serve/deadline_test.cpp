#include "serve/deadline.hpp"

#include <gtest/gtest.h>

namespace patchbay::serve::deadline_test {
namespace {

TEST(Deadlines, AreOverOnceTheirTicksHavePassed) {
    std::atomic<uint64_t> tick = 1;
    Deadline deadline(tick);
    EXPECT_FALSE(deadline.is_over()); // none is set
    deadline.set(2);
    tick += 2 * Deadline::kTicksPerSecond - 1;
    EXPECT_FALSE(deadline.is_over());
    tick += 1;
    EXPECT_TRUE(deadline.is_over());
    deadline.set(1);
    EXPECT_FALSE(deadline.is_over());
    deadline.set(0);
    tick += 1000;
    EXPECT_FALSE(deadline.is_over());
}

}  // namespace
}  // namespace patchbay::serve::deadline_test
