// A placed step as one flat batch: which token lies where, and which rows are sampled.
#include "engine/loop/batch_builder.hpp"

#include <gmock/gmock.h>

#include "config/engine_config.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::batch_builder_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Bench : RowNeighbours {
    explicit Bench(World w = {}) : RowNeighbours(std::move(w)) {}

    std::vector<int32_t> ids() const { return list(builder.input().batch.arrays().ids); }
    std::vector<int32_t> positions() const { return list(builder.input().batch.arrays().positions); }
    std::vector<int32_t> logit_rows() const { return list(builder.input().batch.arrays().logit_rows); }
    const std::vector<pb_sample_row>& sampled() const { return builder.rows().rows; }

    BatchBuilder builder{{form, kv, rows, constraints, prompt_logprobs, pooling, branches, draft_kv, kVocab, context}};

  private:
    static std::vector<int32_t> list(std::span<const int32_t> all) { return {all.begin(), all.end()}; }
};

TEST(BatchBuilder, LaysSequencesOneAfterTheOtherAndSamplesThoseThatAreComplete) {
    Bench b;
    Sequence &chunk = b.run(6, 2), &decodes = b.decode(3);
    ASSERT_TRUE(b.kv.tables().grow(chunk.kv.table, 5));
    std::vector<Placed> step = {{&chunk, 3, 6, 0}, {&decodes, 1, 4, 1}};
    b.builder.build(step);
    EXPECT_THAT(b.ids(), ElementsAre(102, 103, 104, 7));
    EXPECT_THAT(b.positions(), ElementsAre(2, 3, 4, 3));
    EXPECT_THAT(b.logit_rows(), ElementsAre(3));
    ASSERT_EQ(b.sampled().size(), 1u);
    EXPECT_EQ(b.sampled()[0].id, decodes.id);
    EXPECT_EQ(b.sampled()[0].position, 4u);
    EXPECT_EQ(b.report().work.scheduled_seqs, 2u);
    EXPECT_EQ(b.report().work.scheduled_tokens, 4u);
    EXPECT_EQ(b.builder.input().samples.row_count, 1u);
}

TEST(BatchBuilder, ForgetsTheStepBefore) {
    Bench b;
    std::vector<Placed> step = {Bench::all_of(b.decode(3))}, none;
    b.builder.build(step);
    b.builder.build(none);
    EXPECT_EQ(b.builder.tokens(), 0u);
    EXPECT_THAT(b.sampled(), IsEmpty());
    EXPECT_THAT(b.builder.input().rows, IsEmpty());
    EXPECT_EQ(b.builder.input().samples.row_count, 0u);
}

TEST(BatchBuilder, TakesATokenThatAStepInFlightMakesByItsRow) {
    Bench b;
    Sequence &first = b.run(4, 0), &second = b.run(4, 0);
    for (Sequence* s : {&first, &second}) {
        ASSERT_TRUE(b.kv.tables().grow(s->kv.table, 5));
        s->in_flight.tokens = 4;
        s->in_flight.placeholders = 1;
        s->in_flight.placeholder_row = s == &first ? 0 : 3;
    }
    std::vector<Placed> step = {{&first, 1, 5, 1}, {&second, 1, 5, 1}};
    b.builder.build(step);
    EXPECT_THAT(b.ids(), ElementsAre(-1, -4)) << "row r is -1 - r";
    EXPECT_THAT(b.positions(), ElementsAre(4, 4));
    ASSERT_EQ(b.sampled().size(), 2u);
    EXPECT_EQ(b.sampled()[0].position, 5u);
    EXPECT_EQ(b.sampled()[0].output_count, 0u) << "the token is not there yet";
}

TEST(BatchBuilder, ARowAfterADraftSeesItAsAccepted) {
    Bench b;
    Sequence& s = b.decode(3, {8, 9});
    std::vector<Placed> step = {Bench::all_of(s)};
    b.builder.build(step);
    EXPECT_THAT(b.ids(), ElementsAre(7, 8, 9));
    EXPECT_THAT(b.logit_rows(), ElementsAre(0, 1, 2));
    for (uint32_t j = 0; j < 3; ++j) {
        EXPECT_EQ(b.sampled()[j].position, 4u + j);
        EXPECT_EQ(b.sampled()[j].output_count, 1u + j);
        EXPECT_EQ(b.sampled()[j].output[0], 7);
    }
    const auto paths = b.builder.paths(step);
    ASSERT_EQ(paths.size(), 1u);
    EXPECT_EQ(paths[0].rows, 3u);
    EXPECT_THAT(std::vector(paths[0].drafts.begin(), paths[0].drafts.end()), ElementsAre(8, 9));
}

TEST(BatchBuilder, APathOfATreeIsComputedOverItsOwnPagesFromTheNewestTokenOn) {
    Bench b;
    Sequence& s = b.decode(3, {8, 9});
    b.drafts.of(s.id).branches = {{8, 5, 6}};
    std::vector<Placed> step = {Bench::all_of(s)};
    b.branches.fork(step);
    ASSERT_EQ(b.branches.all().size(), 1u);
    b.builder.build(step);
    EXPECT_THAT(b.ids(), ElementsAre(7, 8, 9, 7, 8, 5, 6));
    EXPECT_THAT(b.positions(), ElementsAre(3, 4, 5, 3, 4, 5, 6));
    EXPECT_THAT(b.logit_rows(), ElementsAre(0, 1, 2, 5, 6)) << "the row after 8 is the first path's";
    const Branch& path = b.branches.all()[0];
    EXPECT_EQ(path.first_token, 3u);
    EXPECT_EQ(path.first_row, 3u);
    EXPECT_EQ(b.sampled()[3].position, 6u);
    EXPECT_THAT(std::vector(b.sampled()[4].output, b.sampled()[4].output + b.sampled()[4].output_count),
                ElementsAre(7, 8, 5, 6));
    const auto paths = b.builder.paths(step);
    ASSERT_EQ(paths.size(), 2u);
    EXPECT_FALSE(paths[0].is_branch);
    EXPECT_TRUE(paths[1].is_branch);
    EXPECT_EQ(paths[1].first_row, 3u);
    EXPECT_EQ(paths[1].rows, 2u);
}

TEST(BatchBuilder, PutsTheRowsOfAPromptsTokensBeforeTheSequencesOwn) {
    Bench b;
    SamplingParams p;
    p.prompt_logprobs = 0;
    Sequence &before = b.decode(3), &s = b.run(5, 2, p);
    ASSERT_TRUE(b.kv.tables().grow(s.kv.table, 5));
    pb_sampling_params params = wire_params({}, {});
    b.prompt_logprobs.add(s, params);
    ASSERT_EQ(b.prompt_logprobs.rows(s, 2, 5), 2u) << "after its last token there is none of the prompt";
    std::vector<Placed> step = {Bench::all_of(before), {&s, 3, 5, 1, 2}};
    b.builder.build(step);
    EXPECT_THAT(b.logit_rows(), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(step[1].first_row, 3u) << "of what becomes output";
    ASSERT_EQ(b.sampled().size(), 4u);
    for (uint32_t i = 0; i < 2; ++i) {
        const pb_sample_row& row = b.sampled()[1 + i];
        EXPECT_EQ(row.position, 3u + i);
        const auto only = static_cast<uint32_t>(s.tokens[3 + i]);
        EXPECT_EQ(row.allowed[only / 32], 1u << only % 32) << "the prompt's next token and no other";
    }
}

TEST(BatchBuilder, MasksTheRowsOfConstrainedSequences) {
    Bench b;
    SamplingParams p;
    p.min_tokens = 2;
    Sequence& s = b.decode(3, {8, 9}, p);
    auto read = b.token_rules.read(p);
    ASSERT_TRUE(read) << read.error();
    b.token_rules.add(s, *std::move(read));
    Sequence& free = b.decode(3);
    std::vector<Placed> step = {Bench::all_of(s), Bench::all_of(free)};
    b.builder.build(step);
    ASSERT_NE(b.sampled()[0].allowed, nullptr);
    EXPECT_EQ(b.sampled()[0].allowed[0], ~0u ^ 1u << 2) << "its second token does not end it";
    EXPECT_EQ(b.sampled()[1].allowed, nullptr) << "the one after a draft may";
    EXPECT_EQ(b.sampled()[3].allowed, nullptr);
}

TEST(BatchBuilder, CountsCopiesByTheirWayAndBringsThemInOrder) {
    World w;
    w.slots = 8;
    w.settings.preemption_mode = config::PreemptionMode::kSwap;
    Bench b(std::move(w));
    Sequence &out = b.run(8, 8), &from = b.run(6, 6), &fork = b.run(6, 0);
    ASSERT_TRUE(b.kv.swap().out(out.kv.table, 8, out.kv.swapped));
    ASSERT_TRUE(b.kv.tables().fork(from.kv.table, 6, fork.kv.table));
    b.kv.tables().copy_on_write(fork.kv.table, 5);
    std::vector<Placed> step = {{&fork, 1, 6, 1}};
    fork.computed = 5;
    b.builder.build(step);
    EXPECT_EQ(b.report().preemption.pages_to_host, 2u);
    EXPECT_EQ(b.report().kv.copied_pages, 1u);
    EXPECT_EQ(b.report().preemption.pages_to_device, 0u);
    const auto copies = b.builder.input().batch.copies();
    EXPECT_TRUE(std::ranges::equal(copies, b.kv.copies().copies()));
    EXPECT_EQ(copies.size(), 3u);
}

TEST(BatchBuilder, ABatchOfCopiesHasNoTokenAndSamplesNothing) {
    World w;
    w.slots = 8;
    Bench b(std::move(w));
    std::vector<Placed> step = {Bench::all_of(b.decode(3))};
    b.builder.build(step);
    Sequence& out = b.run(8, 8);
    ASSERT_TRUE(b.kv.swap().out(out.kv.table, 8, out.kv.swapped));
    b.builder.build_copies();
    EXPECT_EQ(b.builder.tokens(), 0u);
    EXPECT_EQ(b.builder.input().batch.copies().size(), 2u);
    EXPECT_EQ(b.builder.input().samples.row_count, 0u);
}

TEST(BatchBuilder, RemembersForADraftModelWhichRowsComputedWhat) {
    World w;
    w.has_draft_model = true;
    Bench b(std::move(w));
    Sequence &first = b.decode(3), &second = b.decode(4, {8});
    std::vector<Placed> step = {Bench::all_of(first), Bench::all_of(second)};
    b.builder.build(step);
    const HiddenRows& rows = b.draft_kv.of(second).hidden;
    EXPECT_EQ(rows.begin, 4u);
    EXPECT_EQ(rows.count, 2u);
    EXPECT_EQ(rows.first_row, 1u);
    EXPECT_EQ(rows.row_of(5), 2u);
}

}  // namespace
}  // namespace patchbay::engine::testing::batch_builder_test
