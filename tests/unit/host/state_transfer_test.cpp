// What of one component's state reaches another, and in which phase a failure is.
#include "host/state_transfer.hpp"

#include <gtest/gtest.h>

#include "patchbay/sdk/scheduler.hpp"

namespace patchbay::host::state_transfer_test {
namespace {

int saved = 0, fields = 1, loaded = 0; // by each of those that follow

struct Stateful {
    void plan(const SchedulerStep&, Plan&) {}
    void save(Writer& w) const {
        for (int i = 0; i < fields; ++i) w.put("count", saved);
    }
    void load(const Reader& r) {
        r.get("count", loaded);
        if (loaded == 13) throw Error(PB_BAD_STATE, "13 is no count");
    }
};
struct Stateless {
    void plan(const SchedulerStep&, Plan&) {}
};

constexpr pb_component kOne = scheduler<Stateful>({.name = "one", .version = "1", .summary = "s", .state = "x/1"});
constexpr pb_component kTwo = scheduler<Stateful>({.name = "two", .version = "1", .summary = "s", .state = "x/2"});
constexpr pb_component kOther = scheduler<Stateful>({.name = "other", .version = "1", .summary = "s", .state = "y/1"});
constexpr pb_component kPlain = scheduler<Stateless>({.name = "plain", .version = "1", .summary = "s"});

// "" or "phase: error".
std::string transfer(const pb_component& from, const pb_component& to, UnreadState unread) {
    loaded = 0;
    const auto a = Component::create(nullptr, from, {}, {}), b = Component::create(nullptr, to, {}, {});
    std::string state, phase;
    const Result<> done = transfer_state(**a, **b, unread, state, phase);
    return done ? "" : phase + ": " + done.error();
}

struct StateTransferTest : ::testing::Test {
    StateTransferTest() { saved = 7, fields = 1; }
};

TEST_F(StateTransferTest, GoesToAnotherVersion) {
    EXPECT_EQ(transfer(kOne, kTwo, UnreadState::kRefuses), "");
    EXPECT_EQ(loaded, 7);
}

TEST_F(StateTransferTest, AnotherKindOfStateIsNotRead) {
    for (const pb_component* to : {&kOther, &kPlain}) {
        EXPECT_EQ(transfer(kOne, *to, UnreadState::kStartsEmpty), "");
        EXPECT_EQ(loaded, 0);
        EXPECT_EQ(transfer(kOne, *to, UnreadState::kRefuses), "load: cannot read state 'x/1'");
    }
}

TEST_F(StateTransferTest, WithoutStateThereIsNothingToRead) {
    EXPECT_EQ(transfer(kPlain, kOne, UnreadState::kRefuses), "");
    EXPECT_EQ(loaded, 0);
}

TEST_F(StateTransferTest, AFailureHasItsPhase) {
    saved = 13;
    const std::string refused = transfer(kOne, kTwo, UnreadState::kStartsEmpty);
    EXPECT_TRUE(refused.starts_with("load: ")) << refused;
    EXPECT_TRUE(refused.ends_with("13 is no count")) << refused;
    fields = kMaxState / 9 + 1; // of 9 bytes: "count 13\n"
    EXPECT_EQ(transfer(kOne, kTwo, UnreadState::kStartsEmpty), "save: more than 1048576 bytes of state");
}

}  // namespace
}  // namespace patchbay::host::state_transfer_test
