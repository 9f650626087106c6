// A step that is back: which tokens a sequence takes, what becomes of its drafts, and who is given what.
#include "engine/loop/commit.hpp"

#include <gmock/gmock.h>

#include "engine/sampling/sampler_port.hpp"
#include "unit/engine_parts/commit_neighbours.hpp"

namespace patchbay::engine::testing::commit_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Bench : EndingNeighbours {
    explicit Bench(World w = {}) : EndingNeighbours(std::move(w)) {
        install<FakeSampler>(sampler.slot(), kFakeSampler);
    }
    // A step over these, whose rows became these tokens.
    void commit(std::vector<Placed> items, std::vector<TokenId> tokens) {
        step = std::move(items);
        uint32_t row = 0;
        for (Placed& p : step) p.first_row = std::exchange(row, row + p.rows);
        for (Branch& b : branches.all()) b.first_row = std::exchange(row, row + b.rows());
        samples.clear(tokens.size(), 0);
        samples.tokens = std::move(tokens);
        part.commit(step, samples);
    }
    Commit make(bool model_computes) {
        return Commit({sequences, lifecycle, outputs, constraints, prompt_logprobs, pooling, siblings, beams, branches,
                       drafting, in_flight, sampler, aborts, kVocab, model_computes, context});
    }

    SamplerPort sampler{kVocab, clock, context, journal};
    std::vector<Placed> step;
    StepSamples samples;
    Commit part = make(true);
};

SamplingParams up_to(uint32_t max_tokens) {
    SamplingParams p;
    p.max_tokens = max_tokens;
    return p;
}

TEST(Commit, AChunkOfAPromptIsComputedAndMakesNoToken) {
    Bench b;
    Sequence& s = b.run(8, 2);
    b.commit({{&s, 3, 8, 0}}, {});
    EXPECT_EQ(s.computed, 5u);
    EXPECT_EQ(s.outputs(), 0u);
    b.part.publish(b.step);
    EXPECT_THAT(b.drafting.freed, ElementsAre(s.id)) << "a window may have passed pages of the prompt";
}

TEST(Commit, ATokenIsAppendedAndItsKvIsStillToCome) {
    Bench b;
    Sequence& s = b.decode(4);
    b.commit({Bench::all_of(s)}, {50});
    EXPECT_EQ(s.computed, 5u);
    EXPECT_EQ(s.tokens.back(), 50);
    EXPECT_EQ(s.tokens.size(), 6u);
    EXPECT_EQ(b.report().work.sampled_tokens, 1u);
}

TEST(Commit, DraftsAreTakenAsFarAsTheyEqualWhatWasSampled) {
    Bench b;
    Sequence &two = b.decode(4, {50, 51, 52}), &all = b.decode(4, {60}), &none = b.decode(4, {70, 71});
    b.commit({Bench::all_of(two), Bench::all_of(all), Bench::all_of(none)},
             {50, 51, 9, 52, /**/ 60, 61, /**/ 8, 71, 72});
    EXPECT_THAT(two.output.delta.tokens, ElementsAre(50, 51, 9));
    EXPECT_EQ(two.computed, 7u) << "the KV of both drafts is there, that of the newest token is not";
    EXPECT_THAT(all.output.delta.tokens, ElementsAre(60, 61));
    EXPECT_THAT(none.output.delta.tokens, ElementsAre(8));
    EXPECT_EQ(none.tokens.size(), 6u);
    EXPECT_EQ(two.drafts + all.drafts + none.drafts, 0u);
    EXPECT_EQ(b.report().drafts.verified_sequences, 3u);
    EXPECT_EQ(b.report().drafts.drafted_tokens, 6u);
    EXPECT_EQ(b.report().drafts.accepted_tokens, 3u);
    EXPECT_EQ(b.report().drafts.drafted_at[0], 3u);
    EXPECT_EQ(b.report().drafts.drafted_at[1], 2u);
    EXPECT_EQ(b.report().drafts.accepted_at[0], 2u);
    EXPECT_EQ(b.report().drafts.accepted_at[1], 1u);
    EXPECT_THAT(b.drafting.observed, ElementsAre(ElementsAre(two.id, 3, 2), ElementsAre(all.id, 1, 1),
                                                 ElementsAre(none.id, 2, 0)));
}

TEST(Commit, WhatComesAfterTheLastTokenIsDropped) {
    Bench b;
    Sequence& s = b.decode(4, {50, 51, 52}, up_to(3)); // one is made, two are to come
    b.commit({Bench::all_of(s)}, {50, 51, 52, 53});
    EXPECT_THAT(s.output.delta.tokens, ElementsAre(50, 51));
    EXPECT_EQ(s.output.delta.finish, FinishReason::kLength);
    EXPECT_EQ(b.kv.pool().used(), 0u);
}

TEST(Commit, APathOfATreeThatAgreesLeavesItsPagesToTheSequence) {
    Bench b;
    Sequence& s = b.decode(4, {50, 51});
    b.drafts.of(s.id).branches = {{60, 61}, {60, 62, 63}};
    std::vector<Placed> step = {Bench::all_of(s)};
    b.branches.fork(step);
    ASSERT_EQ(b.branches.all().size(), 2u);
    const auto pages = b.branches.all()[1].table.pages[0];
    // rows: newest, 50, 51 | 60, 61 | 62, 63 (after 60, whose row is the second path's)
    b.commit(step, {60, 1, 1, 62, 1, 63, 64});
    EXPECT_THAT(s.output.delta.tokens, ElementsAre(60, 62, 63, 64));
    EXPECT_EQ(s.computed, 8u);
    EXPECT_EQ(s.kv.table.pages[0], pages);
    EXPECT_EQ(b.report().drafts.branch_tokens, 3u);
    EXPECT_EQ(b.report().drafts.drafted_tokens, 2u + 2 + 2) << "60 is verified once";
    EXPECT_EQ(b.report().drafts.accepted_tokens, 3u);
    EXPECT_THAT(b.branches.all(), IsEmpty());
    b.kv.tables().release(s.kv.table);
    EXPECT_EQ(b.kv.pool().used(), 0u) << "the other paths' pages came back";
}

TEST(Commit, ATokenThatIsNoneFailsItsRequestAlone) {
    Bench b;
    Sequence &bad = b.decode(4), &good = b.decode(4);
    b.commit({Bench::all_of(bad), Bench::all_of(good)}, {static_cast<TokenId>(Bench::kVocab), 50});
    EXPECT_EQ(bad.output.delta.finish, FinishReason::kError);
    EXPECT_EQ(bad.output.delta.stop_reason, "sampler 'fake' gave token 10000, expected 0 to 9999");
    EXPECT_EQ(bad.output.delta.error_code, StatusCode::kFailed) << "the plugin failed";
    EXPECT_THAT(bad.output.delta.tokens, IsEmpty());
    EXPECT_FALSE(good.ended);
    EXPECT_EQ(b.report().calls.sampler_faults, 1u);
    EXPECT_EQ(b.report().calls.sampler_breaches, 1u);
}

TEST(Commit, ATokenThatIsNonePoisonsTheStepInFlightThatAModelComputes) {
    for (const bool model : {true, false}) {
        Bench b;
        Sequence& s = b.decode(4);
        ASSERT_TRUE(b.kv.tables().grow(s.kv.table, 8));
        b.in_flight.push({.items = {{&s, 1, 5, 1}}, .held = {}});
        std::vector<Placed> step = {{&s, 1, 5, 1}};
        b.samples.clear(1, 0);
        b.samples.tokens = {-3};
        b.make(model).commit(step, b.samples);
        EXPECT_EQ(b.in_flight.oldest().is_poisoned, model);
    }
}

class Ends final : public RowConstraint { // after one token, which must not be 99
  public:
    bool applies(const Sequence&) const override { return true; }
    void mask(const PathRows&, MaskWords&, Unsatisfiable&) override {}
    Result<> accept(const Sequence&, TokenId t, const std::string& sampler) override {
        if (t == 99) return fail(StatusCode::kInternal, sampler + " gave 99");
        return {};
    }
    bool is_complete(const Sequence&) const override { return true; }
    void inherit(const Sequence&, const Sequence&) override {}
    void erase(const Sequence& s) override { erased.push_back(s.id); }
    std::vector<RequestId> erased;
};

TEST(Commit, AConstraintMayEndARequestOrRefuseItsToken) {
    Bench b;
    Ends ends;
    b.constraints = Constraints({&ends});
    Sequence &complete = b.decode(4), &refused = b.decode(4);
    b.commit({Bench::all_of(complete), Bench::all_of(refused)}, {50, 99});
    EXPECT_EQ(complete.output.delta.finish, FinishReason::kStop);
    EXPECT_THAT(complete.output.delta.tokens, ElementsAre(50));
    EXPECT_EQ(refused.output.delta.finish, FinishReason::kError);
    EXPECT_EQ(refused.output.delta.stop_reason, "sampler 'fake' gave 99");
    EXPECT_THAT(refused.output.delta.tokens, IsEmpty());
    EXPECT_THAT(ends.erased, ElementsAre(complete.id, refused.id));
}

TEST(Commit, TheFirstTokenOfARequestReleasesItsOtherOutputs) {
    Bench b;
    const auto all = b.add_siblings(2, 4);
    b.admission.leave(*all[0]);
    b.sequences.run(*all[0]);
    ASSERT_TRUE(b.kv.tables().grow(all[0]->kv.table, 4));
    b.commit({{all[0], 2, 4, 0}}, {});
    EXPECT_THAT(b.waiting(), IsEmpty());
    b.commit({{all[0], 2, 4, 1}}, {50});
    EXPECT_THAT(b.waiting(), ElementsAre(all[1]->id));
}

TEST(Commit, OneThatIsAbortedWithTheStepTakesNoToken) {
    Bench b;
    Sequence& s = b.decode(4, {50});
    b.aborts.add(s.id);
    b.commit({Bench::all_of(s)}, {50, 51});
    EXPECT_THAT(s.output.delta.tokens, IsEmpty());
    EXPECT_EQ(s.drafts, 0u);
    EXPECT_EQ(s.tokens.size(), 5u);
    EXPECT_EQ(s.computed, 5u);
}

struct Heard {
    RequestId id;
    std::vector<TokenId> tokens;
    FinishReason finish;
    bool operator==(const Heard&) const = default;
};

TEST(Commit, ThoseThatGoOnAreHandedOutBeforeThoseThatEnd) {
    Bench b;
    std::vector<Heard> heard;
    Sequence &ends = b.decode(4, {}, up_to(2)), &goes_on = b.decode(4), &chunk = b.run(8, 4);
    for (Sequence* s : {&ends, &goes_on, &chunk})
        request_of(*s).on_output = [&](const RequestOutput& o) {
            EXPECT_EQ(o.time_ns, 77u);
            heard.push_back({o.id, o.tokens, o.finish});
        };
    b.context.now_ns = 77;
    b.commit({Bench::all_of(ends), Bench::all_of(goes_on), {&chunk, 2, 8, 0}}, {50, 60});
    const RequestId ended = ends.id;
    b.part.publish(b.step);
    EXPECT_THAT(heard, ElementsAre(Heard{goes_on.id, {60}, FinishReason::kNone},
                                   Heard{ended, {50}, FinishReason::kLength}));
    EXPECT_EQ(b.sequences.find(ended), nullptr);
    EXPECT_THAT(goes_on.output.delta.tokens, IsEmpty()) << "the next delta begins anew";
}

TEST(Commit, ACallbackThatAbortsAnotherTakesItsTokensBack) {
    Bench b;
    std::vector<Heard> heard;
    Sequence &first = b.decode(4), &second = b.decode(4), &ends = b.decode(4, {}, up_to(2));
    const RequestId aborted = second.id, ended = ends.id;
    for (Sequence* s : {&first, &second, &ends})
        request_of(*s).on_output = [&](const RequestOutput& o) {
            heard.push_back({o.id, o.tokens, o.finish});
            b.lifecycle.abort(aborted);
            b.lifecycle.abort(ended);
        };
    b.lifecycle.begin_step();
    b.commit({Bench::all_of(first), Bench::all_of(second), Bench::all_of(ends)}, {50, 60, 70});
    b.part.publish(b.step);
    EXPECT_THAT(heard, ElementsAre(Heard{first.id, {50}, FinishReason::kNone},
                                   Heard{ended, {}, FinishReason::kAbort}));
    EXPECT_THAT(second.output.delta.tokens, IsEmpty());
    EXPECT_FALSE(second.ended) << "it ends with the step";
}

TEST(Commit, PagesThatAreStillWantedLingerAfterTheLastDelta) {
    Bench b;
    b.drafting.keeps_pages = true;
    Sequence& s = b.decode(4, {}, up_to(2));
    b.lifecycle.begin_step();
    b.commit({Bench::all_of(s)}, {50});
    b.part.publish(b.step);
    ASSERT_EQ(b.drafting.lingering.size(), 1u);
    EXPECT_EQ(b.drafting.lingering[0]->kv.table.held, 2u);
    EXPECT_TRUE(b.sequences.empty());
}

TEST(Commit, NotesThePromptsLogprobsOfAChunk) {
    Bench b;
    SamplingParams p;
    p.prompt_logprobs = 0;
    Sequence& s = b.run(4, 0, p);
    ASSERT_TRUE(b.kv.tables().grow(s.kv.table, 4));
    b.prompt_logprobs.add(s, wire_params({}, {}));
    std::vector<Placed> step = {{&s, 3, 4, 0, 3, 3}};
    b.samples.clear(3, 0);
    b.samples.logprobs = {-1, -2, -3};
    b.part.commit(step, b.samples);
    ASSERT_EQ(s.output.delta.prompt_logprobs.size(), 3u);
    EXPECT_EQ(s.output.delta.prompt_logprobs[2].sampled, -3);
    b.part.publish(step);
    EXPECT_EQ(s.output.delta.prompt_logprobs.size(), 3u) << "they come with the first token";
}

}  // namespace
}  // namespace patchbay::engine::testing::commit_test
