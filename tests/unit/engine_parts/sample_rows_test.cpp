// A sequence's rows as samplers are shown them: where the token stands, and what is there before it.
#include "engine/sampling/sample_rows.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::sample_rows_test {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> output_of(const pb_sample_row& r) { return {r.output, r.output + r.output_count}; }

TEST(SampleRowBuilder, ARowHasTheTokensBeforeIt) {
    RowNeighbours b;
    Sequence& s = b.decode(3, {8, 9});
    s.sampling.seed = 77;
    const pb_sample_row first = b.rows.row(s, 0), last = b.rows.row(s, 2);
    EXPECT_EQ(first.id, s.id);
    EXPECT_EQ(first.seed, 77u);
    EXPECT_EQ(first.params, &s.sampling.params);
    EXPECT_EQ(first.position, 4u);
    EXPECT_EQ(first.prompt_count, 3u);
    EXPECT_EQ(first.prompt[2], 102);
    EXPECT_THAT(output_of(first), ElementsAre(7));
    EXPECT_EQ(last.position, 6u);
    EXPECT_THAT(output_of(last), ElementsAre(7, 8, 9));
}

TEST(SampleRowBuilder, ATokenInFlightCountsForThePositionAndIsNotThere) {
    RowNeighbours b;
    Sequence& s = b.decode(3);
    s.in_flight.placeholders = 1;
    const pb_sample_row row = b.rows.row(s, 1);
    EXPECT_EQ(row.position, 5u);
    EXPECT_THAT(output_of(row), ElementsAre(7));
}

TEST(SampleRowBuilder, MinTokensForbidsEndsUntilEnoughAreMadeThoseInFlightIncluded) {
    RowNeighbours b;
    SamplingParams p;
    p.min_tokens = 2;
    Sequence& s = b.decode(3, {}, p);
    auto rules = b.token_rules.read(p);
    ASSERT_TRUE(rules);
    b.token_rules.add(s, *std::move(rules));
    EXPECT_NE(b.rows.row(s, 0).allowed, nullptr);
    EXPECT_EQ(b.rows.row(s, 1).allowed, nullptr);
}

TEST(SampleRowBuilder, SurprisalsAreOfThoseOnlyThatSampleByThem) {
    RowNeighbours b;
    SamplingParams p;
    p.mirostat = 2;
    Sequence &by_it = b.decode(3, {}, p), &plain = b.decode(3);
    b.surprisals.of(by_it.id) = {1.5f};
    b.surprisals.of(plain.id) = {2.5f};
    ASSERT_NE(b.rows.row(by_it, 0).surprisal, nullptr);
    EXPECT_EQ(b.rows.row(by_it, 0).surprisal[0], 1.5f);
    EXPECT_EQ(b.rows.row(plain, 0).surprisal, nullptr);
}

TEST(SampleRows, KnowWhatTheyAskFor) {
    SampleRows rows;
    pb_sampling_params none{}, five{};
    none.logprobs = 0;
    five.logprobs = 1 + 5;
    pb_sample_row a{}, b{};
    a.params = &none;
    b.params = &five;
    rows.add(a, false);
    rows.add(b, true);
    rows.add(a, true);
    EXPECT_EQ(rows.max_logprobs, 5u);
    EXPECT_THAT(rows.with_statistics, ElementsAre(1, 2));
    const pb_sample_batch batch = rows.batch(nullptr, 9);
    EXPECT_EQ(batch.row_count, 3u);
    EXPECT_EQ(batch.max_logprobs, 5u);
    EXPECT_EQ(batch.logits.shape[0], 3);
    EXPECT_EQ(batch.logits.shape[1], 9);
    rows.clear();
    EXPECT_EQ(rows.count() + rows.max_logprobs + rows.with_statistics.size(), 0u);
}

}  // namespace
}  // namespace patchbay::engine::testing::sample_rows_test
