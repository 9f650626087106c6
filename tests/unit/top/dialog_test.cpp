#include "top/dialog.hpp"

#include <gmock/gmock.h>

#include "top/engine_link.hpp"
#include "top/screen.hpp"

namespace patchbay::top::dialog_test {
namespace {

using namespace testing;
using What = Key::What;

std::vector<SlotChoice> slots() {
    return {{"scheduler", "fcfs", {"fcfs", "priority", "sarathi", "sjf"}}, {"sampler", "standard", {"greedy"}},
            {"model", "/models/a", {}}};
}

void type(Dialog& dialog, const std::string& text) {
    for (const char c : text) EXPECT_EQ(dialog.on_key({What::kCharacter, c}), Dialog::State::kOpen);
}

TEST(Dialog, OfASwapAsksForSlotPluginAndSettings) {
    Dialog d(Order::What::kSwap, slots());
    EXPECT_EQ(d.line(80).text(), "swap scheduler sampler model");
    d.on_key({What::kEnter});
    EXPECT_EQ(d.line(80).text(), "swap scheduler fcfs to fcfs priority sarathi sjf");
    d.on_key({What::kLeft}); // around the end
    d.on_key({What::kEnter});
    type(d, "ageing=1x");
    d.on_key({What::kBackspace});
    type(d, "0 top=2");
    EXPECT_EQ(d.line(80).text(), "swap scheduler to sjf KEY=VALUE: ageing=10 top=2_");
    EXPECT_EQ(d.on_key({What::kEnter}), Dialog::State::kDone);
    EXPECT_EQ(d.order().kind, "scheduler");
    EXPECT_EQ(d.order().plugin, "sjf");
    EXPECT_THAT(d.order().settings, ElementsAre(Pair("ageing", "10"), Pair("top", "2")));
}

TEST(Dialog, GoesToTheNextChoiceThatBeginsWithALetter) {
    Dialog d(Order::What::kSwap, slots());
    d.on_key({What::kEnter});
    d.on_key({What::kCharacter, 's'});
    d.on_key({What::kCharacter, 's'});
    d.on_key({What::kEnter});
    d.on_key({What::kEnter});
    EXPECT_EQ(d.order().plugin, "sjf");
}

TEST(Dialog, OfTheModelTakesAPath) {
    Dialog d(Order::What::kSwap, slots());
    d.on_key({What::kLeft});
    d.on_key({What::kEnter});
    d.on_key({What::kEnter});
    EXPECT_THAT(d.line(90).text(), HasSubstr("name a folder"));
    type(d, "/m/b");
    d.on_key({What::kEnter});
    EXPECT_EQ(d.on_key({What::kEnter}), Dialog::State::kDone);
    EXPECT_EQ(d.order().plugin, "/m/b");
}

TEST(Dialog, OfASetTakesSettingsAndSaysWhatIsNone) {
    Dialog d(Order::What::kSet, slots());
    d.on_key({What::kEnter});
    EXPECT_EQ(d.on_key({What::kEnter}), Dialog::State::kOpen) << "there must be one";
    type(d, "oops");
    EXPECT_EQ(d.on_key({What::kEnter}), Dialog::State::kOpen);
    EXPECT_THAT(d.line(90).text(), HasSubstr("got 'oops', expected KEY=VALUE"));
    EXPECT_EQ(d.on_key({What::kEscape}), Dialog::State::kCancelled);
}

TEST(Dialog, ShowsTheChosenOneInAnyWidth) {
    for (size_t columns = 1; columns < 60; ++columns) {
        Dialog d(Order::What::kSwap, slots());
        d.on_key({What::kEnter});
        d.on_key({What::kLeft});
        EXPECT_LE(d.line(columns).columns(), columns);
        if (columns >= 29) {
            EXPECT_THAT(d.line(columns).text(), HasSubstr("sjf")) << columns;
        }
    }
}

TEST(Screen, FollowsKeys) {
    Screen s(Screen::Control::kFull);
    EXPECT_TRUE(s.on_key({What::kCharacter, 'q'}).quit);
    EXPECT_EQ(s.on_key({What::kCharacter, 's'}).dialog, Order::What::kSwap);
    s.open(Order::What::kSwap, slots());
    EXPECT_FALSE(s.on_key({What::kCharacter, 'q'}).quit) << "a letter of a choice";
    s.on_key({What::kEnter});
    s.on_key({What::kEnter});
    const auto order = s.on_key({What::kEnter}).order;
    ASSERT_TRUE(order);
    EXPECT_EQ(order->plugin, "fcfs");
    EXPECT_FALSE(s.on_key({What::kEnter}).order) << "the dialog is closed";
}

TEST(Screen, WithoutAnAdminAddressSaysThatItOnlyWatches) {
    Screen s(Screen::Control::kWatchOnly);
    EXPECT_FALSE(s.on_key({What::kCharacter, 's'}).dialog);
    const History nothing;
    const Json none;
    const Lines lines = s.lines({nothing, none, "here", "", ascii_glyphs()}, {80, 24});
    EXPECT_THAT(lines[lines.size() - 2].text(), HasSubstr("--admin"));
    EXPECT_THAT(lines.back().text(), Not(HasSubstr("swap")));
}

TEST(Screen, HasJustTheRowsAndColumnsOfTheTerminal) {
    const History nothing;
    const Json none;
    for (const bool plugins : {false, true})
        for (const size_t rows : {1, 2, 3, 4, 24, 80})
            for (const size_t columns : {1, 5, 30, 79, 200}) {
                Screen s(Screen::Control::kFull);
                if (plugins) s.on_key({What::kTab});
                for (int i = 0; i < 100; ++i) s.on_key({What::kDown});
                s.open(Order::What::kSwap, slots());
                const Lines lines = s.lines({nothing, none, "here", "", unicode_glyphs()}, {columns, rows});
                EXPECT_EQ(lines.size(), std::max<size_t>(rows, 1));
                for (const Line& line : lines) EXPECT_LE(line.columns(), columns);
            }
}

TEST(SlotChoices, AreTheUsablePluginsOfSlotsThatCanBeSwapped) {
    const auto status = serve::Json::parse(R"({"slots": [{"kind": "scheduler", "plugin": "fcfs"},
        {"kind": "device", "plugin": "cpu"}, {"kind": "model", "plugin": "/m"}]})");
    const auto plugins = serve::Json::parse(R"({"plugins": [
        {"kind": "scheduler", "name": "sjf", "state": "usable"},
        {"kind": "scheduler", "name": "bad", "state": "refused"},
        {"kind": "device", "name": "cpu", "state": "usable"},
        {"kind": "model", "name": "llama", "state": "usable"}]})");
    const auto found = slot_choices(status, plugins);
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].kind, "scheduler");
    EXPECT_THAT(found[0].plugins, ElementsAre("sjf"));
    EXPECT_EQ(found[1].kind, "model");
    EXPECT_THAT(found[1].plugins, IsEmpty());
    EXPECT_THAT(slot_choices(serve::Json(), serve::Json::array()), IsEmpty()) << "of what is no status";
}

TEST(AnswerText, SaysWhatBecameOfAnOrder) {
    const Order swap{Order::What::kSwap, "scheduler", "sjf", {}};
    EXPECT_EQ(answer_text(swap, serve::Json::parse(R"({"from": {"plugin": "fcfs"}, "to": {"plugin": "sjf"},
        "outcome": "committed", "phase": null, "step": 12, "pause_us": 7.2})")),
              "swap scheduler fcfs to sjf: committed (step 12, pause 7.2 us)");
    EXPECT_EQ(answer_text(swap, serve::Json::parse(R"({"from": {"plugin": "fcfs"}, "to": {"plugin": "sjf"},
        "outcome": "refused", "phase": "load", "reason": "why", "step": 0, "pause_us": 0})")),
              "swap scheduler fcfs to sjf: refused in phase load: why");
    EXPECT_EQ(answer_text({Order::What::kSet, "sampler", "", {{"a", "1"}}}, serve::Json::parse(R"({"params": {"a": "1.0"}})")),
              "set sampler: a=1.0");
}

}  // namespace
}  // namespace patchbay::top::dialog_test
