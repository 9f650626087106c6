#include <gmock/gmock.h>

#include "experiment/progress_bar.hpp"
#include "experiment/results_table.hpp"
#include "experiment/summary_table.hpp"
#include "experiment/table_text.hpp"

namespace patchbay::experiment::presentation_test {
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

TEST(Tables, ShowBoundsAsSuch) {
    Conclusion c = conclusion_of(3);
    const size_t metric = metric_named("ttft_p50").value();
    c.results[1].bounds = c.results[2].bounds = {metric};
    c.results[1].comparison.metrics[metric] = {.value = 20, .verdict = Verdict::kAtLeast};
    c.results[2].comparison.metrics[metric] = {.value = -20, .verdict = Verdict::kAtMost};
    const std::string full = results_table(c, {"a", "b", "c"}, 0, Colour::kOff);
    EXPECT_THAT(line_with(full, "TTFT p50"), ::testing::ContainsRegex("100 +≥120 ≥\\+20\\.0 % +≥140 ≤-20\\.0 %$"));
    EXPECT_THAT(full, HasSubstr("at least, at most"));
    const std::string summary = summary_table(c, {"a", "b", "c"}, 0, Colour::kOff);
    EXPECT_THAT(summary, HasSubstr("≥120 ≥+20.0 %\n"));
    EXPECT_THAT(summary, HasSubstr("≥140 ≤-20.0 %\n"));
    EXPECT_THAT(summary, HasSubstr("at least, at most, and not judged"));
}

TEST(Shift, IsUpwardsWhereMoreIsMoreWhateverTheBaseline) {
    EXPECT_EQ(Shift(-50, "ms").number(5), "+10.0");
    EXPECT_EQ(Shift(-50, "ms").number(-5), "-10.0");
    EXPECT_EQ(Shift(50, "ms").number(5), "+10.0");
    EXPECT_EQ(Shift(-50, "ms").size(-5), "10.0 %");
    EXPECT_EQ(Shift(-50, "ms").size(1e-9), "0.01 %") << "not 0";
    EXPECT_EQ(Shift(-50, "%").number(5), "+5.0");
}

TEST(ResultsTable, PutsPrimaryMetricsFirstAndGivesTheOthersIntervals) {
    const std::string table = results_table(conclusion_of(2), {"fcfs", "sjf"}, 0, Colour::kOff);
    EXPECT_LT(table.find("primary metrics\n"), table.find("goodput share"));
    EXPECT_LT(table.find("goodput share"), table.find("TTFT p50")); // in their own order
    EXPECT_LT(table.find("TTFT p50"), table.find("exploratory: intervals, no verdicts\n"));
    EXPECT_LT(table.find("exploratory"), table.find("E2E p50"));
    EXPECT_THAT(line_with(table, "E2E p50"), HasSubstr("120  +20.0 % (+1.0 … +30.0)"));
    EXPECT_THAT(table, AllOf(HasSubstr("normalised latency mean"), HasSubstr("tokens per step"))) << "as documented";
}

TEST(ResultsTable, SaysBesideNoDifferenceWhichOneItWouldHaveSeen) {
    Conclusion c = conclusion_of(2);
    Difference& d = c.results[1].comparison.metrics[c.primary[1]];
    d.verdict = Verdict::kNoDifference;
    d.detectable = 3.14;
    const std::string table = results_table(c, {"fcfs", "sjf"}, 0, Colour::kOff);
    EXPECT_THAT(line_with(table, "TTFT p50"), HasSubstr("+20.0 % = ≥3.1 %"));
    EXPECT_THAT(table, HasSubstr("= no difference shown; ≥ smallest detectable difference (90 % power)"));
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

TEST(ResultsTable, NeverSaysThatAnyDifferenceWouldHaveBeenSeen) {
    Conclusion c = conclusion_of(2);
    for (const size_t m : c.primary) {
        c.results[1].comparison.metrics[m].verdict = Verdict::kNoDifference;
        c.results[1].comparison.metrics[m].detectable = 0.0001;
    }
    const std::string table = results_table(c, {"a", "b"}, 0, Colour::kOff);
    EXPECT_THAT(line_with(table, "goodput share"), HasSubstr("= ≥0.01 pp"));
    EXPECT_THAT(line_with(table, "TTFT p50"), HasSubstr("= ≥0.01 %"));
}

TEST(ResultsTable, StacksTheFactorsOfALongNameAndStaysNarrow) {
    const std::string table = results_table(
        conclusion_of(3),
        {"scheduler=fcfs max_num_seqs=8", "scheduler=sjf max_num_seqs=8", "scheduler=sjf max_num_seqs=16"}, 0,
        Colour::kOff);
    EXPECT_THAT(table, ::testing::ContainsRegex("^ +scheduler=fcfs +scheduler=sjf +scheduler=sjf\n"
                                                " +max_num_seqs=8 +max_num_seqs=8 +max_num_seqs=16\n +baseline\n"));
}

TEST(ResultsTable, LeavesOutMetricsThatNoVariantHas) {
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

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        out.push_back(text.substr(at, end - at));
    }
    return out;
}

TEST(SummaryTable, HasAVariantARowAndTheBaselineFirst) {
    const std::string table = summary_table(conclusion_of(3), {"fcfs", "sjf", "other"}, 0, Colour::kOff);
    EXPECT_EQ(lines_of(table)[0], "         goodput share   TTFT p50");
    EXPECT_EQ(lines_of(table)[2], "fcfs *   100             100");
    EXPECT_EQ(lines_of(table)[3], "sjf      120 +20.0 pp ▲  120 +20.0 % ▲");
    EXPECT_EQ(lines_of(table)[4], "other    140 +40.0 pp ?  140 +40.0 % ?");
    EXPECT_THAT(table, HasSubstr("* fcfs is the baseline; ▲ better; ? no verdict: fewer than 5"));
    EXPECT_THAT(table, Not(HasSubstr("E2E"))) << "not a primary metric";
}

TEST(SummaryTable, SaysWhatCouldHaveBeenSeenAndWhereNothingCould) {
    Conclusion c = conclusion_of(2);
    for (const size_t m : c.primary) c.results[1].comparison.metrics[m].verdict = Verdict::kNoDifference;
    c.results[1].comparison.metrics[c.primary[0]].detectable = 3.14;
    c.results[1].comparison.metrics[c.primary[1]].detectable = 31400;
    const std::string table = summary_table(c, {"fcfs", "sjf"}, 0, Colour::kOff);
    EXPECT_THAT(line_with(table, "sjf"), HasSubstr("120 = ≥3.1 pp  120 = noise"));
    EXPECT_THAT(table, HasSubstr("noise: only one above\n1,000 %"));
    c.results[1].comparison.metrics[c.primary[0]].detectable = 223; // a share differs by 100 points at most
    c.results[1].comparison.metrics[c.primary[1]].detectable = kNoValue;
    EXPECT_THAT(line_with(summary_table(c, {"fcfs", "sjf"}, 0, Colour::kOff), "sjf"),
                HasSubstr("120 = noise    120 +20.0 % ="));
}

TEST(SummaryTable, Of16VariantsFitsAScreen) {
    std::vector<std::string> names;
    for (const char* s : {"fcfs", "sjf", "static", "mlfq"})
        for (const char* n : {"1", "2", "8", "32"})
            names.push_back(std::string("scheduler=") + s + " max_num_seqs=" + n + " block_size=16");
    Conclusion c = conclusion_of(16);
    for (const char* name : {"ttft_p99", "tpot_p50", "tpot_p99", "e2e_p50"})
        c.primary.push_back(metric_named(name).value());
    for (size_t v = 1; v < 16; ++v)
        for (const size_t m : c.primary) {
            c.results[v].comparison.metrics[m].verdict = Verdict::kNoDifference;
            c.results[v].comparison.metrics[m].detectable = 12.3;
        }
    const auto lines = lines_of(summary_table(c, names, 0, Colour::kOff));
    EXPECT_LE(lines.size(), 22u);
    for (const std::string& line : lines) EXPECT_LE(line.size(), 160u) << line; // bytes; ≥ has three
    EXPECT_EQ(lines[0], "all with block_size=16");
    EXPECT_THAT(lines[1], ::testing::StartsWith("scheduler max_num_seqs  goodput share"));
    EXPECT_THAT(lines[3], ::testing::StartsWith("fcfs      1 * "));
}

TEST(ShortNames, LoseWhatAllHaveAndStayDifferent) {
    const ShortNames parts = shortened({"a=1 b=2 c=3", "a=1 b=22 c=4"});
    EXPECT_EQ(parts.common, "a=1");
    EXPECT_EQ(parts.head, "b  c");
    EXPECT_THAT(parts.names, ::testing::ElementsAre("2  3", "22 4"));
    EXPECT_THAT(shortened({"fcfs", "sjf"}).names, ::testing::ElementsAre("fcfs", "sjf"));
    EXPECT_THAT(shortened({"a=1", "b=1"}).names, ::testing::ElementsAre("a=1", "b=1"));
    EXPECT_THAT(shortened({"a=1"}).names, ::testing::ElementsAre("a=1"));
    const std::string middle(50, 'x');
    EXPECT_THAT(shortened({"one" + middle + "end", "two" + middle + "end"}).names,
                ::testing::ElementsAre("one" + middle.substr(0, 14) + "…" + middle.substr(0, 15) + "end",
                                       "two" + middle.substr(0, 14) + "…" + middle.substr(0, 15) + "end"));
    EXPECT_THAT(shortened({middle + "1" + middle, middle + "2" + middle}).names, // would be the same
                ::testing::ElementsAre(middle + "1" + middle, middle + "2" + middle));
}

}  // namespace
}  // namespace patchbay::experiment::presentation_test
