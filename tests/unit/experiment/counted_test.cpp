#include "experiment/counted.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "experiment/run_metrics.hpp"
#include "experiment/spec_load.hpp"
#include "unit/experiment/workload_fixture.hpp"

namespace patchbay::experiment::counted_test {
namespace {

struct Ruled {
    ExperimentSpec spec;
    std::string text;
};

Ruled ruled(const std::string& yaml) {
    const auto document = config::parse_yaml(yaml, "e.yaml");
    auto spec = spec_from(*document, "e");
    EXPECT_TRUE(spec) << spec.error();
    const auto workloads = Workloads::open(*spec, nullptr, {2048, 100});
    EXPECT_TRUE(workloads) << workloads.error();
    apply_window_rule(*spec, *workloads);
    const std::string text = counted_text(*spec, *workloads);
    return {*std::move(spec), text};
}

std::string workload(const std::string& rest, int requests = 60) {
    return "workload:\n  requests: " + std::to_string(requests) +
           "\n  prompts: {synthetic: {tokens: 4}}\n  output_tokens: 2\n" + rest;
}

TEST(WindowRule, TakesTheMiddleOfSteadyTraffic) {
    for (const char* arrivals : {"deterministic: {rate: 2}", "poisson: {rate: 2}", "gamma: {rate: 2, cv: 3}"}) {
        const Ruled r = ruled(workload("  arrivals: {" + std::string(arrivals) + "}\n"));
        ASSERT_TRUE(r.spec.window) << arrivals;
        EXPECT_EQ(r.spec.window->from.value, 0.1);
        EXPECT_EQ(r.spec.window->until.value, 0.9);
        EXPECT_EQ(r.text, "counted: requests that arrive from 10.0 % to 90.0 % of the time of arrivals (window: auto)");
    }
}

TEST(WindowRule, CountsAllOfAnyOtherTrafficAndSaysWhy) {
    const auto all = [](const std::string& yaml) {
        const Ruled r = ruled(yaml);
        EXPECT_FALSE(r.spec.window) << yaml;
        return r.text.substr(r.text.find("auto; ") + 6);
    };
    EXPECT_EQ(all(workload("")), "arrivals are not steady)");
    EXPECT_EQ(all(workload("  arrivals: {burst: {size: 4, every_s: 1}}\n")), "arrivals are not steady)");
    EXPECT_EQ(all(workload("  arrivals: {closed_loop: {users: 4}}\n")), "arrivals are not steady)");
    EXPECT_EQ(all(workload("  arrivals: {poisson: {rate: 1}}\n", 49)), "a run has fewer than 50 requests)");
    EXPECT_EQ(all(workload("  arrivals: {poisson: {rate: 1}}\n  sessions: {turns: 3}\n")),
              "requests wait for one another)");
    EXPECT_EQ(all(workload("  arrivals: {poisson: {rate: 1}}\n") +
                  "variants: {a: {}, b: {workload.arrivals: all_at_once}}\n"),
              "arrivals are not steady)");
}

TEST(WindowRule, CountsAllOfATraceWhoseRowsComeAtOneTimeOrAtItsEnds) {
    const Folder folder;
    const std::string file = folder.path / "at_one_time.csv";
    const auto why = [&](const std::vector<int>& seconds) { // two repeats of half the rows each
        std::ofstream out(file);
        out << "arrived_at,num_prefill_tokens,num_decode_tokens\n";
        for (const int s : seconds) out << s << ",4,2\n";
        out.close();
        const Ruled r = ruled("repeats: 2\nworkload: {prompts: {trace: {path: " + file + "}}}\n");
        return r.spec.window ? "" : r.text.substr(r.text.find("auto; ") + 6);
    };
    std::vector<int> steady, at_once, at_its_ends;
    for (int i = 0; i < 120; ++i) {
        steady.push_back(i);
        at_once.push_back(i < 60 ? i : 60); // the second repeat's
        at_its_ends.push_back(i < 60 ? i : i < 90 ? 60 : 100);
    }
    EXPECT_EQ(why(steady), "");
    EXPECT_EQ(why(at_once), "requests of a run arrive all at once)");
    EXPECT_EQ(why(at_its_ends), "nothing arrives in the middle of a run)");
}

TEST(WindowRule, LeavesWhatTheFileSays) {
    const std::string steady = workload("  arrivals: {poisson: {rate: 1}}\n");
    const Ruled whole = ruled("window: whole\n" + steady), own = ruled("window: {from: 5s}\n" + steady);
    EXPECT_FALSE(whole.spec.window);
    EXPECT_EQ(whole.text, "counted: all requests, the start and the end included");
    EXPECT_EQ(own.spec.window->from.value, 5);
    EXPECT_EQ(own.text,
              "counted: requests that arrive from 5.00 s after the first arrival to 100 % of the time of arrivals");
}

TEST(PlannedSpan, IsThatOfTheRunWhereArrivalsAreKnownBefore) {
    std::vector<PlannedRequest> requests(3);
    for (size_t i = 0; i < 3; ++i) requests[i].arrival_ns = 1000 + 500 * i;
    const TimeSpan span = planned_span(GivenRequests(requests), CountingWindow{{0.1, true}, {0.9, true}});
    EXPECT_EQ(span.from_ns, 1100u);
    EXPECT_EQ(span.until_ns, 1900u);
    EXPECT_TRUE(planned_span(GivenRequests(requests), {}).has(~uint64_t{0}));
    requests[2].follows = 0;
    EXPECT_TRUE(planned_span(GivenRequests(requests), kSteadyWindow).has(0));
}

}  // namespace
}  // namespace patchbay::experiment::counted_test
