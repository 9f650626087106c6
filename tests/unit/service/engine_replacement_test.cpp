#include "service/engine_replacement.hpp"

#include <gtest/gtest.h>

#include "unit/service/fake_engine.hpp"

namespace patchbay::service::testing::engine_replacement_test {
namespace {

class EngineReplacements : public ::testing::Test {
  protected:
    EngineReplacement::Engine old_ = std::make_shared<FakeEngine>(), next_ = std::make_shared<FakeEngine>();
    EngineReplacement engines_{old_};
};

TEST_F(EngineReplacements, SwitchOverOnce) {
    uint64_t step = 0;
    EXPECT_FALSE(engines_.is_pending());
    engines_.begin(next_, [&](uint64_t s) { step = s; });
    EXPECT_TRUE(engines_.is_pending());
    EXPECT_EQ(engines_.current(), old_);
    const EngineReplacement::First first = engines_.switch_over();
    EXPECT_EQ(engines_.current(), next_);
    EXPECT_TRUE(engines_.is_pending()); // until the first one was called
    first(8);
    EXPECT_EQ(step, 8u);
    engines_.finish();
    EXPECT_FALSE(engines_.is_pending());
    EXPECT_EQ(engines_.current(), next_);
}

TEST_F(EngineReplacements, KeepTheOldEngineUntilItIsReleased) {
    const std::weak_ptr<engine::SteppingEngine> old = old_;
    old_.reset();
    EXPECT_FALSE(engines_.release_replaced());
    engines_.begin(next_, nullptr);
    engines_.switch_over();
    engines_.finish();
    EXPECT_FALSE(old.expired());
    EXPECT_TRUE(engines_.release_replaced());
    EXPECT_TRUE(old.expired());
    EXPECT_FALSE(engines_.release_replaced());
}

TEST_F(EngineReplacements, LeaveTheEngineWhereTheyAreCancelled) {
    engines_.begin(next_, nullptr);
    engines_.cancel();
    EXPECT_FALSE(engines_.is_pending());
    EXPECT_EQ(engines_.current(), old_);
    EXPECT_FALSE(engines_.release_replaced());
    EXPECT_EQ(next_.use_count(), 1);
}

}  // namespace
}  // namespace patchbay::service::testing::engine_replacement_test
