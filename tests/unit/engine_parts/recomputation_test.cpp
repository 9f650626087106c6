// What the sequences become once no KV is good for anything any more.
#include "engine/placement/recomputation.hpp"

#include <gmock/gmock.h>

#include "engine/facts.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::recomputation_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

World caching() {
    World w;
    w.blocks = 32;
    w.slots = 8;
    w.caching = kv::PrefixCaching::kOn;
    w.settings.preemption_mode = config::PreemptionMode::kSwap;
    return w;
}

struct Bench : RowNeighbours {
    Bench() : RowNeighbours(caching()) {}
    std::vector<TokenId> compute(Sequence& s) { // all of its prompt, whose full blocks can be found then
        kv.prefixes().cache_full_blocks(s.kv.table, s.tokens);
        return s.tokens;
    }
    pb_sequence shown(const Sequence& s) {
        hints.update();
        for (const pb_sequence& r : sequences.waiting().records())
            if (r.id == s.id) return r;
        throw std::runtime_error("it does not wait");
    }

    EngineFacts facts;
    Preemption preemption{{settings, sequences, kv, admission, hints, beams, draft_kv, executor, context}};
    Recomputation part{sequences, kv, hints, preemption, prompt_logprobs, facts};
};

TEST(Recomputation, AllThatRanWaitInTheirOrderBeforeThoseThatCameLater) {
    Bench b;
    Sequence &first = b.run(8, 8), &second = b.run(6, 3), &waits = b.wait(4);
    first.tokens.push_back(7); // output
    b.part.recompute_all();
    EXPECT_THAT(b.waiting(), ElementsAre(first.id, second.id, waits.id));
    EXPECT_THAT(b.sequences.running(), IsEmpty());
    EXPECT_EQ(first.computed, 0u);
    EXPECT_EQ(second.computed, 0u);
    EXPECT_EQ(first.outputs(), 1u) << "it goes on from its tokens";
    EXPECT_EQ(b.kv.pool().used(), 0u);
    EXPECT_EQ(b.report().preemption.swapped_out, 0u) << "such KV is worth no place in host memory";
}

TEST(Recomputation, NothingThatWasComputedIsFoundAnyMore) {
    Bench b;
    Sequence& runs = b.run(9, 9);
    const auto prompt = b.compute(runs);
    auto same = sequence(b.next_id++, 9);
    same->tokens = prompt;
    Sequence& waits = b.wait(std::move(same));
    ASSERT_EQ(b.shown(waits).cached_tokens, 8u);
    b.part.recompute_all();
    EXPECT_EQ(b.kv.prefixes().count_cached(prompt), 0u);
    EXPECT_EQ(b.shown(waits).cached_tokens, 0u) << "the scheduler is shown it";
    EXPECT_EQ(b.shown(runs).cached_tokens, 0u);
}

TEST(Recomputation, KvInHostMemoryIsDropped) {
    Bench b;
    Sequence& s = b.run(9, 9);
    b.preemption.preempt(s, PB_PREEMPT_SWAP);
    ASSERT_EQ(b.kv.swap().space().used(), 3u);
    ASSERT_TRUE(b.shown(s).flags & PB_SEQ_SWAPPED);
    b.part.recompute_all();
    EXPECT_TRUE(s.kv.swapped.empty());
    EXPECT_EQ(b.kv.swap().space().used(), 0u);
    EXPECT_FALSE(b.shown(s).flags & PB_SEQ_SWAPPED);
    EXPECT_EQ(b.shown(s).cached_tokens, 0u);
}

TEST(Recomputation, ABeamSearchMayBePlacedInTheStepThatBegins) {
    Bench b;
    SamplingParams p;
    p.beam_width = 2;
    Sequence& first = b.wait(6, p);
    auto made = sequence(b.next_id++, 6, p);
    made->tokens = first.tokens;
    made->group = first.id;
    made->index = 1;
    made->place = Place::kHeld;
    Sequence& second = b.sequences.add(std::move(made));
    b.beams.add({&first, &second});
    b.admission.leave(first);
    b.sequences.run(first);
    b.beams.seat(first);
    b.part.recompute_all();
    EXPECT_THAT(b.waiting(), ElementsAre(first.id));
    EXPECT_FALSE(b.beams.preempted_now(first)) << "though it is this step's";
    EXPECT_FALSE(b.beams.preempted_now(second));
}

TEST(Recomputation, LogprobsOfAPromptAreAllOfTheModelThatComputesItLast) {
    Bench b;
    SamplingParams p;
    p.prompt_logprobs = 1;
    Sequence& half = b.run(9, 4, p);
    Sequence& whole = b.run(4, 4, p);
    for (Sequence* s : {&half, &whole}) {
        b.prompt_logprobs.add(*s, {});
        Placed chunk{s, 4, s->confirmed(), 0, b.prompt_logprobs.rows(*s, 0, 4)};
        StepSamples samples;
        samples.clear(chunk.prompt_rows, 1);
        chunk.first_row = chunk.prompt_rows;
        b.prompt_logprobs.take(chunk, samples);
    }
    ASSERT_EQ(half.output.delta.prompt_logprobs.size(), 4u);
    whole.tokens.push_back(7); // its first output, with which they were handed out
    const size_t handed_out = whole.output.delta.prompt_logprobs.size();
    b.part.recompute_all();
    EXPECT_THAT(half.output.delta.prompt_logprobs, IsEmpty());
    EXPECT_EQ(b.prompt_logprobs.rows(half, 0, 9), 8u) << "of all tokens but the first";
    EXPECT_FALSE(half.kv.reads_prefixes);
    EXPECT_EQ(whole.output.delta.prompt_logprobs.size(), handed_out);
    EXPECT_EQ(b.prompt_logprobs.rows(whole, 0, 4), 0u);
}

TEST(Recomputation, BlocksOfTheSameTokensHaveOtherNamesByAnotherModel) {
    Bench b;
    b.kv.events().record();
    const auto name_of_block = [&] { // of the same tokens, by what computes now
        auto made = sequence(1'000 + b.next_id++, 5);
        made->tokens = {1, 2, 3, 4, 5};
        Sequence& s = b.wait(std::move(made));
        b.admission.leave(s);
        b.sequences.run(s);
        b.kv.prefixes().adopt(s.kv.table, s.tokens);
        if (!b.kv.tables().grow(s.kv.table, 5)) throw std::runtime_error("too few pages");
        b.kv.events().take();
        b.kv.prefixes().cache_full_blocks(s.kv.table, s.tokens);
        return b.kv.events().take().at(0).key;
    };
    b.facts.model.identity = "a";
    b.part.recompute_all();
    const kv::BlockKey of_a = name_of_block();
    b.facts.model.identity = "b";
    b.part.recompute_all();
    EXPECT_FALSE(name_of_block() == of_a);
    b.facts.model.identity = "a";
    b.part.recompute_all();
    EXPECT_TRUE(name_of_block() == of_a) << "what computes the same KV shares it";
}

}  // namespace
}  // namespace patchbay::engine::testing::recomputation_test
