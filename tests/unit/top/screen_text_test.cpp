#include "top/screen_text.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "top/history.hpp"
#include "top/quantity.hpp"

namespace patchbay::top::screen_text_test {
namespace {

using namespace testing;

std::vector<std::string> texts(const Lines& lines) {
    std::vector<std::string> out;
    for (const Line& line : lines) out.push_back(line.text());
    return out;
}

TEST(Line, IsCutAtWholeCharactersAndKeepsItsStyles) {
    const Line line = Line("ab", Style::kBad).add("█░c");
    EXPECT_EQ(line.columns(), 5u);
    const Line cut = line.cut_to(3);
    EXPECT_EQ(cut.text(), "ab█");
    ASSERT_EQ(cut.pieces().size(), 2u);
    EXPECT_EQ(cut.pieces()[0].style, Style::kBad);
    EXPECT_EQ(line.cut_to(0).text(), "");
    EXPECT_EQ(line.cut_to(9).text(), "ab█░c");
}

TEST(Line, PutsTextThatEndsAtAColumnAfterWhatIsThere) {
    EXPECT_EQ(Line("a").add_right("12", 6).text(), "a   12");
    EXPECT_EQ(Line("abcdef").add_right("12", 6).text(), "abcdef12") << "too long a name is not overwritten";
}

TEST(Bar, ShowsSharesAndNeitherHidesALittleNorFillsUpTooEarly) {
    EXPECT_EQ(bar(0.5, 0.25, 8, ascii_glyphs()).text(), "####==..");
    EXPECT_EQ(bar(0.001, 0, 8, ascii_glyphs()).text(), "#.......");
    EXPECT_EQ(bar(0.999, 0, 8, ascii_glyphs()).text(), "#######.");
    EXPECT_EQ(bar(1, 0, 8, ascii_glyphs()).text(), "########");
    EXPECT_EQ(bar(NAN, NAN, 4, ascii_glyphs()).text(), "....");
    EXPECT_EQ(bar(0.9, 0.9, 4, ascii_glyphs()).columns(), 4u) << "never wider than it may be";
    for (size_t columns = 0; columns < 3; ++columns)
        EXPECT_EQ(bar(0.5, 0.5, columns, ascii_glyphs()).columns(), columns);
}

TEST(Sparkline, ShowsTheLatestValuesWithTheGreatestFull) {
    const std::vector<double> values = {9, 0, 4, 8, NAN, 8};
    EXPECT_EQ(sparkline(values, 5, unicode_glyphs()).text(), "▁▅█ █");
    EXPECT_EQ(sparkline(std::vector<double>{0, 0}, 5, unicode_glyphs()).text(), "▁▁");
    EXPECT_EQ(sparkline({}, 5, unicode_glyphs()).text(), "");
}

TEST(Arrange, PutsBlocksInTwoColumnsWhereTheyFit) {
    const std::vector<Block> blocks = {{"One", {Line("a"), Line("b")}}, {"Two", {Line("c")}}, {"Three", {Line("d")}}};
    const Lines narrow = arrange(blocks, 20, 100, ascii_glyphs());
    EXPECT_THAT(texts(narrow), ElementsAre("One ----------------", "a", "b", "", "Two ----------------", "c", "",
                                           "Three --------------", "d", ""));
    const Lines wide = arrange(blocks, 83, 100, ascii_glyphs());
    EXPECT_THAT(wide[0].text(), AllOf(StartsWith("One --"), HasSubstr("-   Two --")));
    EXPECT_EQ(wide[1].text(), "a" + std::string(42, ' ') + "c");
    EXPECT_EQ(wide[2].text(), "b");
    EXPECT_EQ(wide.size(), 7u);
    EXPECT_EQ(arrange(blocks, 83, 6, ascii_glyphs()).size(), 5u) << "without empty lines where rows are short";
    for (const Line& line : wide) EXPECT_LE(line.columns(), 83u);
}

TEST(Table, AlignsColumns) {
    EXPECT_THAT(texts(table({{"name", "n"}, {"long name", "10"}, {"x", "2"}}, {1})),
                ElementsAre("name        n", "long name  10", "x           2"));
}

TEST(Quantities, AreShort) {
    EXPECT_EQ(seconds_text(870e-6), "870 us");
    EXPECT_EQ(seconds_text(2.5e-6), "2.5 us");
    EXPECT_EQ(seconds_text(0.9996e-3), "1.0 ms") << "never 1000 us";
    EXPECT_EQ(seconds_text(0.0123), "12.3 ms");
    EXPECT_EQ(seconds_text(0.123), "123 ms");
    EXPECT_EQ(seconds_text(1.25), "1.25 s");
    EXPECT_EQ(seconds_text(0), "0 s");
    EXPECT_EQ(seconds_text(NAN), "-");
    EXPECT_EQ(share_text(0.934), "93 %");
    EXPECT_EQ(share_text(0.042), "4.2 %");
    EXPECT_EQ(share_text(0), "0 %");
    EXPECT_EQ(share_text(0.0001), "<0.1 %");
    EXPECT_EQ(count_text(12), "12");
    EXPECT_EQ(count_text(12.42), "12.4");
    EXPECT_EQ(count_text(123.4), "123");
    EXPECT_EQ(count_text(13500), "13.5 k");
    EXPECT_EQ(count_text(999'999), "1.0 M");
    EXPECT_EQ(rate_text(NAN), "-");
    EXPECT_EQ(rate_text(3), "3/s");
}

TEST(History, TakesRatesBetweenTheLastTwoWhereTheyAreFurtherApartThanItsWindow) {
    History h;
    for (int i = 0; i < 3; ++i) h.add(30 * i, metrics::Scrape("a " + std::to_string(60 * i) + "\n"));
    EXPECT_EQ(h.recent().rate("a"), 2);
    EXPECT_EQ(last_text(h.recent().seconds()), "last 30 s");
    EXPECT_EQ(last_text(0.3), "last 0.3 s");
}

TEST(History, TakesRatesOverItsWindowAndForgetsTheOldest) {
    History h;
    EXPECT_EQ(h.latest().sum("a"), 0);
    h.add(0, metrics::Scrape("a 0\ng 3\n"));
    EXPECT_TRUE(std::isnan(h.recent().rate("a"))) << "of one scrape there is none";
    for (int i = 1; i <= 20; ++i)
        h.add(i, metrics::Scrape("a " + std::to_string(i <= 10 ? 0 : 5 * (i - 10)) + "\ng 4\n"));
    EXPECT_EQ(h.recent().rate("a"), 5) << "the ten seconds before the first ten do not count";
    EXPECT_THAT(h.values("g"), AllOf(SizeIs(21), Contains(3).Times(1)));
    EXPECT_THAT(h.rates("a"), AllOf(SizeIs(20), Contains(5).Times(10)));
    for (size_t i = 0; i < History::kMaxScrapes; ++i) h.add(21 + static_cast<double>(i), {});
    EXPECT_EQ(h.size(), History::kMaxScrapes);
}

}  // namespace
}  // namespace patchbay::top::screen_text_test
