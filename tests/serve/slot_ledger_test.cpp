// What a supervisor reads of its server's ledger, line by line as the server wrote it.
#include "serve/slot_ledger.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

namespace patchbay::serve::slot_ledger_test {
namespace {

class SlotHistoryOf : public ::testing::Test { // a server and its supervisor
  protected:
    SlotHistoryOf() {
        int ends[2];
        EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        read_ = ends[0];
        write_ = ends[1];
        ledger.emplace(write_, std::vector<Culprit>{});
        ledger->first({{"scheduler", "fcfs", "1", "of fcfs", "", ""}, {"model", "llama", "1", "of llama", "", ""}});
    }
    ~SlotHistoryOf() override {
        close(read_);
        close(write_);
    }

    void settle(const char* name, host::SwapState state) {
        host::SwapRecord r;
        r.kind = "scheduler";
        r.to.name = name;
        r.state = state;
        ledger->settled(r);
    }
    // Settings of the scheduler that the next server gets; "as configured", where none are said.
    std::string next() {
        std::string text(1u << 16, '\0');
        const ssize_t n = ::read(read_, text.data(), text.size());
        std::istringstream lines(text.substr(0, n > 0 ? static_cast<size_t>(n) : 0));
        for (std::string line; std::getline(lines, line);) history.read(line);
        const auto choices = history.choices();
        const auto at = choices.find("scheduler");
        if (at == choices.end()) return "as configured";
        std::string out = at->second.plugin.plugin;
        for (const auto& [key, value] : at->second.plugin.settings) out += " " + key + "=" + value;
        return out;
    }

    std::optional<SlotLedger> ledger;
    SlotHistory history;

  private:
    int read_ = -1, write_ = -1;
};

TEST_F(SlotHistoryOf, AParameterOfTheFirstComponentIsKept) {
    EXPECT_EQ(next(), "as configured");
    ledger->set("scheduler", {"fcfs", {{"a", "1"}, {"b", "2"}}}, false);
    EXPECT_EQ(next(), "fcfs a=1 b=2");
}

TEST_F(SlotHistoryOf, AParameterThatWasSetOnProbationStaysWithTheOneThatItWasSetOf) {
    ledger->begin("scheduler", {"sjf", {{"ageing", "77"}}}, "of sjf");
    ledger->set("scheduler", {"sjf", {{"ageing", "55"}}}, true);
    EXPECT_EQ(next(), "as configured") << "sjf is not committed";
    settle("sjf", host::SwapState::kCommitted);
    EXPECT_EQ(next(), "sjf ageing=55");
    ledger->begin("scheduler", {"sjf", {{"ageing", "1"}}}, "of sjf"); // in line: what is set is of the one before it
    ledger->set("scheduler", {"sjf", {{"ageing", "66"}}}, false);
    ledger->begin("scheduler", {"fcfs", {}}, "of fcfs");
    settle("sjf", host::SwapState::kRolledBack);
    EXPECT_EQ(next(), "sjf ageing=66");
}

TEST_F(SlotHistoryOf, AServerThatDrainsIsTheLast) {
    ledger->set("scheduler", {"fcfs", {{"a", "1"}}}, false);
    EXPECT_EQ(next(), "fcfs a=1");
    EXPECT_FALSE(history.is_draining());
    ledger->draining();
    EXPECT_EQ(next(), "fcfs a=1");
    EXPECT_TRUE(history.is_draining());
}

TEST_F(SlotHistoryOf, TheCulpritIsNamedWithItsCallAndGivesWayToItsPredecessorAsThatWasSet) {
    ledger->set("scheduler", {"fcfs", {{"a", "1"}}}, false);
    ledger->begin("scheduler", {"faulty", {}}, "of faulty");
    settle("faulty", host::SwapState::kCommitted);
    ledger->set("scheduler", {"faulty", {{"at", "3"}}}, false);
    EXPECT_EQ(next(), "faulty at=3");
    const auto culprit = history.blame("patchbay: scheduler 'faulty': plan: SIGABRT (abort) in step 3");
    ASSERT_TRUE(culprit);
    EXPECT_EQ(culprit->text(), "scheduler 'faulty': plan: SIGABRT (abort) in step 3");
    EXPECT_EQ(culprit->call, "plan");
    EXPECT_EQ(culprit->reason, "SIGABRT (abort) in step 3");
    EXPECT_EQ(culprit->sha256, "of faulty");
    EXPECT_EQ(culprit->predecessor, "fcfs");
    EXPECT_EQ(next(), "fcfs a=1");
    ASSERT_EQ(history.culprits().size(), 1u);
    EXPECT_EQ(history.culprits()[0].predecessor, "fcfs");
    const SlotLedger of_next(-1, history.culprits());
    ASSERT_TRUE(of_next.culprit("of faulty"));
    EXPECT_EQ(of_next.culprit("of faulty")->name, "faulty");
    EXPECT_FALSE(of_next.culprit("of fcfs"));
}

}  // namespace
}  // namespace patchbay::serve::slot_ledger_test
