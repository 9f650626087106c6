// The states of a slot, with components made in the test: who is in it, what crosses, and where things are destroyed.
#include "host/slot.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/refusals.hpp"
#include "patchbay/sdk/scheduler.hpp"
#include "unit/host/slot_steps.hpp"

namespace patchbay::host::slot_test {
namespace {

std::mutex notes;                                 // of both below
std::multiset<std::string> alive;                 // names of the objects that exist
std::map<std::string, std::thread::id> destroyed; // who destroyed the last of a name

template <char kName>
struct Noted {
    Noted() {
        const std::lock_guard lock(notes);
        alive.insert({kName});
    }
    ~Noted() {
        const std::lock_guard lock(notes);
        alive.erase(alive.find({kName}));
        destroyed[{kName}] = std::this_thread::get_id();
    }
    void plan(const SchedulerStep&, Plan&) {}
};

template <char kName>
struct Stateful : Noted<kName> {
    int count = 0;
    void save(Writer& w) const { w.put("count", count); }
    void load(const Reader& r) {
        r.get("count", count);
        if (count == 13) throw Error(PB_BAD_STATE, "13 is no count");
    }
};

// Not movable, as boxes make them in place.
constexpr pb_component kPlain = scheduler<Noted<'p'>>({.name = "plain", .version = "1", .summary = "s"});
constexpr pb_component kOne = scheduler<Stateful<'a'>>({.name = "one", .version = "1", .summary = "s", .state = "x/1"});
constexpr pb_component kTwo = scheduler<Stateful<'b'>>({.name = "two", .version = "1", .summary = "s", .state = "x/2"});
constexpr pb_component kElse =
    scheduler<Stateful<'c'>>({.name = "else", .version = "1", .summary = "s", .state = "y/1"});

std::unique_ptr<Component> make(const pb_component& type) {
    auto made = Component::create(nullptr, type, {}, {});
    if (!made) throw std::runtime_error(made.error());
    return *std::move(made);
}

Identity identity(const pb_component& type) {
    Identity id;
    id.kind = "scheduler";
    id.name = type.name;
    return id;
}

void set_count(const Component& c, int count) {
    const std::string bytes = "count " + std::to_string(count) + "\n";
    const pb_status status = c.type().load(c.self(), c.type().state, {bytes.data(), bytes.size()});
    ASSERT_EQ(status == PB_OK, count != 13);
}

class SlotTest : public ::testing::Test {
  protected:
    explicit SlotTest(UnreadState unread = UnreadState::kStartsEmpty) : slot("scheduler", unread, clock) {
        slot.install(make(kOne), identity(kOne));
    }
    std::shared_ptr<Swap> post(const pb_component& type) {
        auto swap = slot.line().prepare(make(type), identity(type));
        slot.line().post(swap);
        return swap;
    }
    std::optional<SwapRecord> exchange(uint32_t probation = 2) {
        return testing::exchange(slot, ++step, probation, [this](const Component& c) { greeted = c.type().name; });
    }
    std::string current() const { return slot.current().type().name; }

    VirtualClock clock;
    Slot slot;
    uint64_t step = 0;
    std::string greeted;
};

TEST_F(SlotTest, WithoutMailABoundaryChangesNothing) {
    EXPECT_FALSE(exchange());
    EXPECT_FALSE(testing::pass(slot, 1));
    EXPECT_EQ(current(), "one");
    EXPECT_EQ(greeted, "");
}

TEST_F(SlotTest, GoesFromPostedOverProbationToCommitted) {
    const auto swap = post(kTwo);
    EXPECT_EQ(swap->record().state, SwapState::kPosted);
    ASSERT_TRUE(exchange());
    EXPECT_EQ(greeted, "two");
    EXPECT_EQ(swap->record().state, SwapState::kOnProbation);
    EXPECT_STREQ(slot.previous()->type().name, "one");
    EXPECT_FALSE(testing::pass(slot, 1));
    EXPECT_EQ(testing::pass(slot, 2)->state, SwapState::kCommitted);
    EXPECT_FALSE(slot.previous());
    EXPECT_EQ(swap->record().text(), "swap scheduler one→two: committed");
}

TEST_F(SlotTest, StateCrossesBetweenVersionsAndNotBetweenKinds) {
    set_count(slot.current(), 7);
    post(kTwo);
    exchange(1);
    EXPECT_EQ(*slot.current().save(), "count 7\n");
    testing::pass(slot, 1);
    post(kElse);
    exchange(1);
    EXPECT_EQ(*slot.current().save(), "count 0\n");
    testing::pass(slot, 2);
    post(kPlain);
    exchange(1);
    testing::pass(slot, 3);
    EXPECT_EQ(current(), "plain");
}

TEST_F(SlotTest, StateThatCannotBeReadIsARefusalThatChangesNothing) {
    set_count(slot.current(), 13);
    const std::string before = *slot.current().save();
    const auto swap = post(kTwo);
    EXPECT_EQ(exchange()->text(), "swap scheduler one→two: refused in phase load: 13 is no count");
    EXPECT_EQ(*slot.current().save(), before);
    EXPECT_EQ(current(), "one");
    EXPECT_EQ(greeted, "");
    EXPECT_FALSE(slot.previous());
}

TEST_F(SlotTest, ARollbackBringsThePredecessorBackWithWhatItHad) {
    set_count(slot.current(), 7);
    const auto swap = post(kTwo);
    exchange();
    set_count(slot.current(), 8);
    EXPECT_EQ(slot.roll_back(1, "plan", broken("scheduler 'two': plan: on purpose")).text(),
              "swap scheduler one→two: rolled back in phase plan: on purpose");
    EXPECT_EQ(current(), "one");
    EXPECT_EQ(*slot.current().save(), "count 7\n");
    EXPECT_EQ(swap->record().state, SwapState::kRolledBack);
    EXPECT_EQ(swap->record().code, StatusCode::kInternal) << "that of the failure";
}

TEST_F(SlotTest, DuringProbationBothHear) {
    const auto heard = [&] {
        std::string names;
        slot.each([&](const Component& c) { names += c.type().name; });
        return names;
    };
    EXPECT_EQ(heard(), "one");
    post(kTwo);
    exchange(1);
    EXPECT_EQ(heard(), "twoone");
    testing::pass(slot, 1);
    EXPECT_EQ(heard(), "two");
}

TEST_F(SlotTest, NothingIsDestroyedByTheThreadThatSteps) {
    std::thread steps;
    const auto stepping = [&](const std::function<void()>& f) {
        steps = std::thread(f);
        steps.join();
    };
    auto swap = post(kTwo);
    stepping([&] {
        exchange(1);
        testing::pass(slot, 1);
    });
    EXPECT_EQ(alive.count("a"), 1u); // came out of the slot, and is still there
    (void)swap->record();
    EXPECT_EQ(alive.count("a"), 0u);
    EXPECT_EQ(destroyed["a"], std::this_thread::get_id());

    swap = post(kElse);
    swap.reset(); // no record is read
    stepping([&] {
        exchange(2);
        slot.roll_back(2, "plan", fail("because"));
    });
    EXPECT_EQ(alive.count("c"), 1u);
    post(kPlain); // the next one sweeps
    EXPECT_EQ(alive.count("c"), 0u);
    EXPECT_EQ(destroyed["c"], std::this_thread::get_id());
}

TEST_F(SlotTest, ASwapIsPostedOnce) {
    const auto swap = post(kTwo);
    slot.line().post(swap);
    exchange(1);
    testing::pass(slot, 1);
    slot.line().post(swap);
    EXPECT_FALSE(exchange(1));
    EXPECT_EQ(current(), "two");
}

TEST_F(SlotTest, RefusalsBesideTheStepsAreHeardOnceAtABoundary) {
    const auto swap = slot.line().refuse(identity(kTwo), "probe", fail("scheduler.budget: too much"));
    EXPECT_EQ(swap->wait().text(), "swap scheduler one→two: refused in phase probe: scheduler.budget: too much");
    EXPECT_EQ(slot.line().take_reports().size(), 1u);
    EXPECT_EQ(slot.line().take_reports().size(), 0u);
}

TEST_F(SlotTest, ManyMayAskWhileOneSteps) {
    constexpr size_t kAskers = 3, kEach = 200;
    std::atomic<size_t> at_work = kAskers, refused = 0;
    std::atomic<bool> destroyed_by_steps = false;
    std::thread steps([&] {
        const auto self = std::this_thread::get_id();
        uint64_t n = 0;
        while (at_work > 0) {
            n += 1;
            (void)slot.line().take_reports();
            testing::exchange(slot, n, 2);
            if (n % 3 == 0 && slot.previous()) slot.roll_back(n, "plan", fail("every third"));
            else testing::pass(slot, n);
            const std::lock_guard lock(notes);
            for (const auto& [name, who] : destroyed) destroyed_by_steps = destroyed_by_steps || who == self;
        }
    });
    std::vector<std::thread> askers;
    for (size_t a = 0; a < kAskers; ++a)
        askers.emplace_back([&, a] {
            for (size_t i = 0; i < kEach; ++i) {
                auto swap = post(a == 0 ? kTwo : a == 1 ? kElse : kPlain);
                if (i % 2 == 0) continue; // does not care what becomes of it
                const SwapRecord r = swap->wait();
                EXPECT_TRUE(r.settled()) << r.text();
                refused += r.state == SwapState::kRefused;
            }
            at_work -= 1;
        });
    for (std::thread& t : askers) t.join();
    steps.join();
    EXPECT_FALSE(destroyed_by_steps);
    EXPECT_EQ(refused, 0u); // the line never was full
}

class StrictSlotTest : public SlotTest {
  protected:
    StrictSlotTest() : SlotTest(UnreadState::kRefuses) {}
};

TEST_F(StrictSlotTest, MayInsistThatStateIsRead) {
    const auto swap = post(kElse);
    EXPECT_EQ(exchange()->text(), "swap scheduler one→else: refused in phase load: cannot read state 'x/1'");
    EXPECT_EQ(swap->record().code, StatusCode::kUnsupported);
}

TEST(SlotsEnd, LeavesNothingInSwapsThatOthersHold) {
    std::shared_ptr<Swap> ready, posted, probation;
    VirtualClock clock;
    {
        Slot slot("scheduler", UnreadState::kStartsEmpty, clock);
        slot.install(make(kOne), identity(kOne));
        probation = slot.line().prepare(make(kTwo), identity(kTwo));
        slot.line().post(probation);
        testing::exchange(slot, 1, 5);
        posted = slot.line().prepare(make(kPlain), identity(kPlain));
        slot.line().post(posted);
        ready = slot.line().prepare(make(kElse), identity(kElse));
    }
    EXPECT_TRUE(alive.empty());
    EXPECT_EQ(probation->wait().state, SwapState::kOnProbation); // it ended while it was
    EXPECT_EQ(posted->wait().reason, "its engine ended first");
    EXPECT_EQ(posted->wait().code, StatusCode::kUnavailable);
    EXPECT_EQ(ready->wait().reason, "its engine ended first");
}

}  // namespace
}  // namespace patchbay::host::slot_test
