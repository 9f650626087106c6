#include "top/pages.hpp"

#include <gmock/gmock.h>

namespace patchbay::top::pages_test {
namespace {

using namespace testing;

// A second of an engine, as its exporter would say it.
const char* const kBefore = R"(patchbay_steps_total 100
patchbay_requests_running 1
patchbay_plugin_call_seconds_sum{kind="scheduler",plugin="fcfs",call="plan"} 1
patchbay_plugin_call_seconds_count{kind="scheduler",plugin="fcfs",call="plan"} 100
patchbay_plugin_call_seconds_bucket{kind="scheduler",plugin="fcfs",call="plan",le="0.01"} 100
patchbay_plugin_call_seconds_bucket{kind="scheduler",plugin="fcfs",call="plan",le="+Inf"} 100
)";
const char* const kAfter = R"(patchbay_steps_total 150
patchbay_requests_running 12
patchbay_requests_waiting 3
patchbay_oldest_wait_seconds 1.5
patchbay_generation_tokens_total 870
patchbay_kv_pages{state="used"} 60
patchbay_kv_pages{state="cached"} 20
patchbay_kv_pages{state="free"} 20
patchbay_graph_dispatches_total{mode="FULL",size="8",reason=""} 30
patchbay_graph_dispatches_total{mode="NONE",size="0",reason="too_large"} 10
patchbay_graph_tokens_total{kind="useful"} 90
patchbay_graph_tokens_total{kind="padded"} 10
patchbay_scheduled_tokens_total{kind="prefill"} 25
patchbay_scheduled_tokens_total{kind="decode"} 75
patchbay_time_to_first_token_seconds_bucket{le="0.2"} 0
patchbay_time_to_first_token_seconds_bucket{le="0.4"} 10
patchbay_time_to_first_token_seconds_bucket{le="+Inf"} 10
patchbay_spec_draft_length 3
patchbay_spec_drafted_tokens_total{position="1"} 20
patchbay_spec_accepted_tokens_total{position="1"} 15
patchbay_plugin_info{kind="scheduler",plugin="fcfs",version="1.0",abi="1.0",sha256="ab"} 1
patchbay_plugin_info{kind="scheduler",plugin="sjf",version="1.0",abi="1.0",sha256="cd"} 0
patchbay_plugin_call_seconds_sum{kind="scheduler",plugin="fcfs",call="plan"} 1.5
patchbay_plugin_call_seconds_count{kind="scheduler",plugin="fcfs",call="plan"} 150
patchbay_plugin_call_seconds_bucket{kind="scheduler",plugin="fcfs",call="plan",le="0.01"} 150
patchbay_plugin_call_seconds_bucket{kind="scheduler",plugin="fcfs",call="plan",le="+Inf"} 150
patchbay_plugin_faults_total{kind="scheduler",plugin="sjf",reason="probation"} 2
patchbay_plugin_faults_total{kind="scheduler",plugin="fcfs",reason="error"} 0
patchbay_plugin_swaps_total{kind="scheduler",outcome="committed"} 4
patchbay_plugin_swaps_total{kind="scheduler",outcome="rolled_back"} 2
patchbay_plugin_swaps_total{kind="sampler",outcome="rolled_back"} 0
patchbay_plugin_swap_failures_total{kind="scheduler",phase="plan"} 2
patchbay_plugin_swap_pause_seconds_bucket{kind="scheduler",le="0.00001"} 6
patchbay_plugin_swap_pause_seconds_bucket{kind="scheduler",le="+Inf"} 6
)";

struct Known {
    Known() {
        history.add(0, metrics::Scrape(kBefore));
        history.add(1, metrics::Scrape(kAfter));
    }
    std::string page(Lines (*draw)(const View&, PageSize), size_t columns) const {
        std::string out;
        for (const Line& line : draw({history, status, "here", "", ascii_glyphs()}, {columns, 1000})) {
            EXPECT_LE(line.columns(), columns);
            out += line.text() + "\n";
        }
        return out;
    }
    History history;
    Json status;
};

TEST(OverviewPage, ShowsWhatTheEngineDoes) {
    for (const size_t columns : {50, 100}) {
        const std::string text = Known().page(overview_page, columns);
        EXPECT_THAT(text, ContainsRegex("running +12 ")) << text;
        EXPECT_THAT(text, ContainsRegex("waiting +3 "));
        EXPECT_THAT(text, ContainsRegex("oldest wait +1.50 s"));
        EXPECT_THAT(text, ContainsRegex("output +870/s"));
        EXPECT_THAT(text, HasSubstr("60 % used  20 % cached  of 100"));
        EXPECT_THAT(text, HasSubstr("75 % decode  25 % prefill"));
        EXPECT_THAT(text, ContainsRegex("first token +300 ms +380 ms +398 ms"));
        EXPECT_THAT(text, HasSubstr("75 % of passes replayed  10 % padding"));
        EXPECT_THAT(text, HasSubstr("too_large 25 %"));
        EXPECT_THAT(text, HasSubstr("75 % of 20/s drafts accepted"));
        EXPECT_THAT(text, ContainsRegex("scheduler +fcfs +10.0 ms +0"));
        EXPECT_THAT(text, Not(HasSubstr("sjf"))) << "it is in no slot any more";
    }
}

TEST(Pages, SayOfWhichTimeTheirRatesAre) {
    Known slow;
    slow.history = {};
    slow.history.add(0, metrics::Scrape(kBefore));
    slow.history.add(25, metrics::Scrape(kAfter));
    EXPECT_THAT(slow.page(overview_page, 100), AllOf(HasSubstr("last 25 s"), ContainsRegex("output +34.8/s")));
    EXPECT_THAT(slow.page(plugins_page, 100), HasSubstr("Calls of a step, last 25 s"));
}

TEST(OverviewPage, WithoutAnyMetricsShowsThatNothingIsKnown) {
    Known k;
    k.history = {};
    EXPECT_THAT(k.page(overview_page, 80), AllOf(HasSubstr("no proposer"), HasSubstr("- of passes replayed")));
}

TEST(PluginsPage, ShowsCallsFaultsByReasonAndSwapsByOutcomeAndPhase) {
    Known k;
    k.status = Json::parse(R"({"swaps": {"pending": [{"kind": "sampler", "plugin": "greedy", "state": "posted"}],
        "last": [{"kind": "scheduler", "from": {"plugin": "fcfs"}, "to": {"plugin": "sjf"}, "outcome": "rolled back",
                  "phase": "plan", "reason": "names 7 twice", "step": 88}]}})");
    const std::string text = k.page(plugins_page, 100);
    EXPECT_THAT(text, ContainsRegex("scheduler +fcfs +plan +50/s +10.0 ms +5.0 ms +9.9 ms +50 %")) << text;
    EXPECT_THAT(text, ContainsRegex("scheduler +sjf +probation +2 +the predecessor took over"));
    EXPECT_THAT(text, Not(ContainsRegex("fcfs +error"))) << "there was none";
    EXPECT_THAT(text, ContainsRegex("scheduler +4 +0 +2 +5.0 us +9.9 us +plan 2"));
    EXPECT_THAT(text, Not(ContainsRegex("sampler +0"))) << "it was never swapped";
    EXPECT_THAT(text, HasSubstr("sampler to greedy: posted"));
    EXPECT_THAT(text, HasSubstr("scheduler fcfs to sjf: rolled back  step 88  in plan: names 7 twice"));
}

TEST(PluginsPage, OfTextKeepsAReasonThatIsLongerThanTheTitle) {
    Known k;
    const std::string reason = "plan: " + std::string(200, 'x') + " ends";
    k.status = {{"swaps", {{"pending", Json::array()}, {"last", Json::array()}}}};
    k.status["swaps"]["last"].push_back({{"kind", "scheduler"}, {"from", {{"plugin", "fcfs"}}},
                                         {"to", {{"plugin", "sjf"}}}, {"outcome", "refused"}, {"phase", "probe"},
                                         {"reason", reason}, {"step", 0}});
    const View view{k.history, k.status, "here", "", ascii_glyphs()};
    const auto text = [&](PageSize size) {
        std::string out;
        for (const Line& line : plugins_page(view, size)) out += line.text() + "\n";
        return out;
    };
    EXPECT_THAT(text({100, 1000, false}), HasSubstr("scheduler fcfs to sjf: refused  in probe: " + reason + "\n"));
    EXPECT_THAT(text({100, 1000}), AllOf(HasSubstr("in probe: plan: xxx"), Not(HasSubstr("ends"))));
}

TEST(ComponentReport, ShowsOneComponentSinceTheBeginningAndTheSwapsOfItsSlot) {
    Known k;
    k.status = Json::parse(R"({"swaps": {"pending": [{"kind": "sampler", "plugin": "greedy", "state": "posted"}],
        "last": [{"kind": "scheduler", "from": {"plugin": "fcfs"}, "to": {"plugin": "sjf"}, "outcome": "committed",
                  "phase": null, "reason": null, "step": 88}]}})");
    const View view{k.history, k.status, "here", "", ascii_glyphs()};
    const auto report = [&](const char* plugin) {
        std::string out;
        for (const Line& line : component_report({"scheduler", plugin}, view, {100, 1000})) out += line.text() + "\n";
        return out;
    };
    EXPECT_THAT(report("fcfs"), ContainsRegex("scheduler +fcfs +plan +150 +10.0 ms +5.0 ms +9.9 ms\n"));
    EXPECT_THAT(report("fcfs"), HasSubstr("none")) << "no faults";
    EXPECT_THAT(report("fcfs"), ContainsRegex("scheduler +4 +0 +2 +5.0 us +9.9 us +plan 2"));
    EXPECT_THAT(report("fcfs"), AllOf(HasSubstr("fcfs to sjf: committed"), Not(HasSubstr("greedy"))));
    EXPECT_THAT(report("sjf"), ContainsRegex("scheduler +sjf +probation +2"));
}

TEST(Headline, SaysWhatIsWatchedAndWhatIsWrong) {
    Known k;
    k.status = Json::parse(R"({"model": {"name": "demo"}, "state": "draining", "pid": 7})");
    EXPECT_EQ(headline({k.history, k.status, "here", "", ascii_glyphs()}, 80).text(),
              "patchbay top  demo  draining  150 steps  pid 7");
    EXPECT_THAT(headline({k.history, k.status, "here", "no engine\nlistens", ascii_glyphs()}, 80).text(),
                HasSubstr("no engine\\nlistens"));
    EXPECT_THAT(headline({k.history, Json(), "here", "", ascii_glyphs()}, 80).text(), HasSubstr("here"));
    k.history.add(2, metrics::Scrape("patchbay_steps_total{time=\"virtual\"} 5\n"));
    EXPECT_THAT(headline({k.history, Json(), "here", "", ascii_glyphs()}, 80).text(), HasSubstr("virtual time"));
}

}  // namespace
}  // namespace patchbay::top::pages_test
