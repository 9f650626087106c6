// Who is kept during a probation, and what comes out of it.
#include "host/probation.hpp"

#include <gtest/gtest.h>

#include "patchbay/sdk/scheduler.hpp"

namespace patchbay::host::probation_test {
namespace {

struct Idle {
    void plan(const SchedulerStep&, Plan&) {}
};
constexpr pb_component kOld = scheduler<Idle>({.name = "old", .version = "1", .summary = "s"});
constexpr pb_component kNew = scheduler<Idle>({.name = "new", .version = "1", .summary = "s"});

std::unique_ptr<Component> make(const pb_component& type) {
    auto made = Component::create(nullptr, type, {}, {});
    if (!made) throw std::runtime_error(made.error());
    return *std::move(made);
}

Identity named(const char* name) {
    Identity id;
    id.name = name;
    return id;
}

struct ProbationTest : ::testing::Test {
    void replace() { probation.replace(current, make(kNew), named("old")); }
    static std::string name_of(const Component* c) { return c ? c->type().name : "none"; }

    std::unique_ptr<Component> current = make(kOld);
    Probation probation;
};

TEST_F(ProbationTest, KeepsThePredecessorOfTheNewOne) {
    EXPECT_EQ(name_of(probation.predecessor()), "none");
    replace();
    EXPECT_EQ(name_of(current.get()), "new");
    EXPECT_EQ(name_of(probation.predecessor()), "old");
    EXPECT_EQ(probation.identity().name, "old");
}

TEST_F(ProbationTest, ItsStepsAreCountedDownToNone) {
    replace();
    probation.begin(2);
    probation.count_step();
    EXPECT_EQ(probation.steps_left(), 1u);
    probation.count_step();
    probation.count_step();
    EXPECT_EQ(probation.steps_left(), 0u);
}

TEST_F(ProbationTest, ACommitReturnsThePredecessor) {
    replace();
    EXPECT_EQ(name_of(probation.commit().get()), "old");
    EXPECT_EQ(name_of(current.get()), "new");
    EXPECT_EQ(name_of(probation.predecessor()), "none");
}

TEST_F(ProbationTest, ARollbackReturnsTheNewOne) {
    replace();
    Identity holder = named("new");
    EXPECT_EQ(name_of(probation.roll_back(current, holder).get()), "new");
    EXPECT_EQ(name_of(current.get()), "old");
    EXPECT_EQ(holder.name, "old");
    EXPECT_EQ(name_of(probation.predecessor()), "none");
}

}  // namespace
}  // namespace patchbay::host::probation_test
