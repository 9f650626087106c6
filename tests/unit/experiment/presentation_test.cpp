#include <gmock/gmock.h>

#include "experiment/progress_bar.hpp"
#include "experiment/results_table.hpp"

namespace patchbay::experiment {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProgressLine, SaysHowFarAndHowLong) {
    const std::string name = "sjf";
    const RunProgress p{2, 4, &name, 0, 5, 10};
    EXPECT_EQ(progress_line(p, 75.2, 200),
              "[############........]  62 %  ETA 1:15  run 3/4  sjf, repeat 1  5/10 requests");
    EXPECT_THAT(progress_line(p, -1, 200), Not(HasSubstr("ETA")));
    EXPECT_EQ(progress_line(p, 75, 30).size(), 30u);
}

Conclusion conclusion_of(size_t variants) {
    Conclusion c;
    c.results.resize(variants);
    for (const char* name : {"goodput_share", "ttft_p50"}) c.primary.push_back(metric_named(name).value());
    for (size_t v = 0; v < variants; ++v) {
        c.results[v].metrics.assign(metric_infos().size(), 100 + 20.0 * static_cast<double>(v));
        if (v == 0) continue;
        const double value = 20.0 * static_cast<double>(v);
        c.results[v].comparison.metrics.assign(
            metric_infos().size(), {.value = value, .low = 1, .high = 30, .verdict = Verdict::kExploratory});
        c.results[v].comparison.independent = v == 1 ? 5 : 4;
        for (const size_t m : c.primary)
            c.results[v].comparison.metrics[m].verdict = v == 1 ? Verdict::kBetter : Verdict::kTooFewRepeats;
    }
    return c;
}

std::string line_with(const std::string& table, const std::string& word) {
    const size_t at = table.find(word), start = table.rfind('\n', at) + 1;
    return table.substr(start, table.find('\n', at) - start);
}

TEST(Wrapped, BreaksAtSpacesOnly) {
    EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
    EXPECT_EQ(wrapped("a incomprehensible b", 5), "a\nincomprehensible\nb");
    EXPECT_EQ(wrapped("µµ µµ µµ", 5), "µµ µµ\nµµ"); // columns, not bytes
    EXPECT_EQ(wrapped("", 5), "");
}

TEST(ResultsTable, ShowsValueDifferenceAndVerdictForEachVariant) {
    const std::string table = results_table(conclusion_of(3), {"fcfs", "sjf", "other"}, 0, Colour::kOff);
    EXPECT_THAT(line_with(table, "TTFT p50"),
                ::testing::ContainsRegex("TTFT p50 +ms +100 +120 +\\+20\\.0 % better +140 +\\+40\\.0 % \\?"));
    EXPECT_THAT(line_with(table, "goodput share"), HasSubstr("+20.0 pp better"));
    EXPECT_THAT(table, HasSubstr("differs from fcfs"));
    EXPECT_THAT(table, HasSubstr("? no verdict: fewer than 5 independent repeats are valid"));
}

TEST(ResultsTable, PutsPrimaryMetricsFirstAndGivesTheOthersIntervals) {
    const std::string table = results_table(conclusion_of(2), {"fcfs", "sjf"}, 0, Colour::kOff);
    EXPECT_LT(table.find("primary metrics\n"), table.find("goodput share"));
    EXPECT_LT(table.find("goodput share"), table.find("TTFT p50")); // in their own order
    EXPECT_LT(table.find("TTFT p50"), table.find("exploratory: intervals, no verdicts\n"));
    EXPECT_LT(table.find("exploratory"), table.find("E2E p50"));
    EXPECT_THAT(line_with(table, "E2E p50"), HasSubstr("120  +20.0 % (+1.0 … +30.0)"));
}

TEST(ResultsTable, SaysBesideNoDifferenceWhichOneItWouldHaveSeen) {
    Conclusion c = conclusion_of(2);
    Difference& d = c.results[1].comparison.metrics[c.primary[1]];
    d.verdict = Verdict::kNoDifference;
    d.detectable = 3.14;
    const std::string table = results_table(c, {"fcfs", "sjf"}, 0, Colour::kOff);
    EXPECT_THAT(line_with(table, "TTFT p50"), HasSubstr("+20.0 % = ≥3.1 %"));
    EXPECT_THAT(table, HasSubstr("= no difference shown; ≥: from where on"));
}

TEST(ResultsTable, KeepsItsColumnsAligned) {
    const std::string table = results_table(conclusion_of(2), {"fcfs", "sjf"}, 0, Colour::kOff);
    EXPECT_EQ(line_with(table, "TTFT p50").find("100"), line_with(table, "request throughput").find("100"));
}

TEST(ResultsTable, DoesNotRoundASmallDifferenceToNone) {
    Conclusion c = conclusion_of(2);
    for (Difference& d : c.results[1].comparison.metrics) d.value = 0.03;
    const std::string table = results_table(c, {"a", "b"}, 0, Colour::kOff);
    EXPECT_THAT(line_with(table, "KV use max"), HasSubstr("+0.03 pp"));
    EXPECT_THAT(line_with(table, "TTFT p50"), HasSubstr("+0.03 %"));
}

TEST(ResultsTable, StacksTheFactorsOfALongNameAndStaysNarrow) {
    const std::string table = results_table(
        conclusion_of(3),
        {"scheduler=fcfs max_num_seqs=8", "scheduler=sjf max_num_seqs=8", "scheduler=sjf max_num_seqs=16"}, 0,
        Colour::kOff);
    EXPECT_THAT(table, ::testing::ContainsRegex("^ +scheduler=fcfs +scheduler=sjf +scheduler=sjf\n"
                                                " +max_num_seqs=8 +max_num_seqs=8 +max_num_seqs=16\n +baseline\n"));
}

TEST(ResultsTable, LeavesOutMetricsThatNobodyHas) {
    Conclusion c = conclusion_of(2);
    for (VariantResult& r : c.results) r.metrics.assign(r.metrics.size(), kNoValue);
    c.results[0].metrics[0] = 5;
    const std::string table = results_table(c, {"a", "b"}, 0, Colour::kOff);
    EXPECT_THAT(table, HasSubstr("output throughput"));
    EXPECT_THAT(table, Not(HasSubstr("goodput")));
}

TEST(ResultsTable, BreaksManyVariantsIntoBlocksWithTheBaselineInEach) {
    const std::string table = results_table(conclusion_of(6), {"v0", "v1", "v2", "v3", "v4", "v5"}, 0, Colour::kOff);
    EXPECT_NE(table.find("baseline\n"), table.rfind("baseline\n"));
    EXPECT_THAT(table, HasSubstr("v5"));
    for (size_t at = 0, end; (end = table.find('\n', at)) != std::string::npos; at = end + 1)
        EXPECT_LE(end - at, 110u) << table.substr(at, end - at);
}

TEST(ResultsTable, ColoursVerdictsOnlyWhenAsked) {
    EXPECT_THAT(results_table(conclusion_of(2), {"a", "b"}, 0, Colour::kOff), Not(HasSubstr("\033[")));
    EXPECT_THAT(results_table(conclusion_of(2), {"a", "b"}, 0, Colour::kOn), HasSubstr("\033[32m"));
}

}  // namespace
}  // namespace patchbay::experiment
