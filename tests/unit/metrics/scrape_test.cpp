#include "metrics/scrape.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "metrics/catalogue.hpp"

namespace patchbay::metrics::scrape_test {
namespace {

using namespace testing;

Scrape scrape(const std::string& text) { return Scrape(text); }

TEST(Scrape, SumsTheSeriesThatHaveTheWantedLabels) {
    const Scrape s = scrape(
        "# HELP a help\n# TYPE a counter\na{kind=\"x\",how=\"1\"} 2\na{kind=\"x\",how=\"2\"} 3.5\n"
        "a{kind=\"y\"} 1e2\nb 7\n");
    EXPECT_EQ(s.sum("a"), 105.5);
    EXPECT_EQ(s.sum("a", {{"kind", "x"}}), 5.5);
    EXPECT_EQ(s.sum("a", {{"kind", "x"}, {"how", "2"}}), 3.5);
    EXPECT_EQ(s.sum("a", {{"none", "x"}}), 0);
    EXPECT_EQ(s.sum("b"), 7);
    EXPECT_FALSE(s.has("c"));
    EXPECT_THAT(s.values_of("a", "kind"), ElementsAre("x", "y"));
    EXPECT_THAT(s.values_of("a", "how", {{"kind", "x"}}), ElementsAre("1", "2"));
}

TEST(Scrape, ReadsLabelsWithEscapesAndBraces) {
    const Scrape s = scrape("a{path=\"c:\\\\x \\\"y\\\" {z},\\n\",kind=\"k\"} 1\n");
    ASSERT_EQ(s.series("a").size(), 1u);
    EXPECT_EQ(s.series("a")[0].labels.at("path"), "c:\\x \"y\" {z},\n");
    EXPECT_EQ(s.series("a")[0].labels.at("kind"), "k");
}

TEST(Scrape, ReadsInfinityAndTimeStampsAndPassesOverTheRest) {
    const Scrape s = scrape("a +Inf\nb 3 1700000000\nc{x=\"1\" 5\nd{x=\"1\n<html>\ne\n\nf NaN\ng -2");
    EXPECT_EQ(s.sum("a"), HUGE_VAL);
    EXPECT_EQ(s.sum("b"), 3);
    EXPECT_TRUE(std::isnan(s.sum("f")));
    EXPECT_EQ(s.sum("g"), -2) << "the last line has no end";
    for (const char* name : {"c", "d", "e", "<html>"}) EXPECT_FALSE(s.has(name)) << name;
}

TEST(Scrape, ReadsWhatTheExporterWrites) {
    Metrics all;
    all.counter("patchbay_requests_finished_total", {{"reason", "stop"}}).Increment(4);
    all.histogram("patchbay_step_seconds").Observe(0.003);
    const Scrape s(all.text());
    EXPECT_EQ(s.sum("patchbay_requests_finished_total", {{"reason", "stop"}}), 4);
    EXPECT_EQ(s.sum("patchbay_step_seconds_count"), 1);
    EXPECT_EQ(s.sum("patchbay_step_seconds_bucket", {{"le", "+Inf"}}), 1);
}

TEST(Interval, OfCountersAreRatesAndOneThatBeganAnewCountsFromZero) {
    const Scrape from = scrape("a 10\nb 50\n"), to = scrape("a 30\nb 8\n");
    const Interval i(from, to, 4);
    EXPECT_EQ(i.increase("a"), 20);
    EXPECT_EQ(i.rate("a"), 5);
    EXPECT_EQ(i.increase("b"), 8);
    EXPECT_TRUE(std::isnan(Interval(from, to, 0).rate("a")));
}

const char* const kBefore =
    "h_bucket{le=\"1\"} 100\nh_bucket{le=\"2\"} 100\nh_bucket{le=\"4\"} 100\nh_bucket{le=\"+Inf\"} 100\n";
const char* const kAfter =
    "h_bucket{le=\"1\"} 110\nh_bucket{le=\"2\"} 130\nh_bucket{le=\"4\"} 138\nh_bucket{le=\"+Inf\"} 140\n";

TEST(Interval, OfHistogramsAreQuantilesOfWhatCameInBetween) {
    const Scrape from = scrape(kBefore), to = scrape(kAfter);
    const Interval i(from, to, 1);
    EXPECT_DOUBLE_EQ(i.quantile("h", 0.25), 1);
    EXPECT_DOUBLE_EQ(i.quantile("h", 0.5), 1.5) << "half of the second bucket";
    EXPECT_DOUBLE_EQ(i.quantile("h", 0.125), 0.5);
    EXPECT_DOUBLE_EQ(i.quantile("h", 0.95), 4);
    EXPECT_DOUBLE_EQ(i.quantile("h", 0.99), 4) << "above the last finite edge";
    EXPECT_TRUE(std::isnan(Interval(to, to, 1).quantile("h", 0.5))) << "nothing came";
    EXPECT_TRUE(std::isnan(i.quantile("none", 0.5)));
}

TEST(Interval, OfAHistogramThatBeganAnewCountsFromZero) {
    const Scrape from = scrape(kAfter);
    const Scrape to = scrape("h_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 4\nh_bucket{le=\"+Inf\"} 4\n");
    EXPECT_DOUBLE_EQ(Interval(from, to, 1).quantile("h", 0.75), 1.5);
}

TEST(Interval, AddsHistogramsOfSeveralSeriesAndMeans) {
    const Scrape none, to = scrape(
        "h_bucket{k=\"a\",le=\"1\"} 3\nh_bucket{k=\"a\",le=\"+Inf\"} 3\nh_bucket{k=\"b\",le=\"1\"} 0\n"
        "h_bucket{k=\"b\",le=\"+Inf\"} 1\n"
        "h_sum{k=\"a\"} 1.5\nh_count{k=\"a\"} 3\nh_sum{k=\"b\"} 9\nh_count{k=\"b\"} 1\n");
    const Interval i(none, to, 1);
    EXPECT_DOUBLE_EQ(i.quantile("h", 0.5), 2.0 / 3);
    EXPECT_DOUBLE_EQ(i.quantile("h", 0.5, {{"k", "a"}}), 0.5);
    EXPECT_DOUBLE_EQ(i.mean("h", {{"k", "a"}}), 0.5);
    EXPECT_TRUE(std::isnan(i.mean("h", {{"k", "c"}})));
}

}  // namespace
}  // namespace patchbay::metrics::scrape_test
