// The hidden states of a prompt become one vector, whatever chunks they come in.
#include "engine/output/pooling.hpp"

#include <gmock/gmock.h>

#include <limits>

#include "kv/kv_cache.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::pooling_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Sequence> embedded(RequestId id, uint32_t prompt_tokens, PoolingType how) {
    auto s = sequence(id, prompt_tokens);
    request_of(*s).pooling = how;
    return s;
}

struct Bench {
    // A step that computes such chunks; what a model would give of each token: its position, and twice that.
    struct Chunk {
        Sequence& s;
        uint32_t tokens;
    };
    void step(std::vector<Chunk> chunks) {
        batch.clear({.block_size = 4, .token_groups = 1, .state_groups = 0});
        part.begin_step();
        std::vector<float> of_tokens;
        for (const Chunk& c : chunks) {
            ASSERT_TRUE(kv.tables().grow(c.s.kv.table, c.s.computed + c.tokens));
            part.want(c.s, c.s.computed, c.tokens, batch);
            batch.add({std::span(c.s.tokens).subspan(c.s.computed, c.tokens), c.s.computed, 0, c.s.kv.table});
            for (uint32_t i = 0; i < c.tokens; ++i) of_tokens.push_back(static_cast<float>(c.s.computed + i));
            c.s.computed += c.tokens;
        }
        batch.finish();
        std::vector<float> hidden;
        for (const runner::TokenRange& r : batch.hidden())
            for (uint32_t i = r.first; i < r.first + r.count; ++i) {
                hidden.push_back(of_tokens.at(i) * scale);
                hidden.push_back(of_tokens.at(i) * scale * 2);
            }
        part.take(hidden);
    }
    float scale = 1;
    kv::KvCache kv{64, 4, kv::PrefixCaching::kOff, "model"};
    runner::Batch batch;
    Pooling part;
};

TEST(Pooling, OfTheLastTokenIsThatOnesState) {
    Bench b;
    const auto s = embedded(1, 7, PoolingType::kLast);
    b.part.add(*s);
    EXPECT_TRUE(s->kv.reads_prefixes) << "its state needs no other token's";
    b.step({{*s, 4}});
    EXPECT_THAT(b.batch.hidden(), IsEmpty()) << "none of them is the last one";
    EXPECT_FALSE(b.part.finish(*s));
    b.step({{*s, 3}});
    const auto ending = b.part.finish(*s);
    ASSERT_TRUE(ending);
    EXPECT_EQ(ending->reason, FinishReason::kStop);
    EXPECT_THAT(s->output.delta.embedding, ElementsAre(6, 12));
}

TEST(Pooling, OfTheMeanIsOverAllTokensWhateverTheirChunks) {
    for (const std::vector<uint32_t>& chunks : {std::vector<uint32_t>{7}, {1, 6}, {2, 2, 3}}) {
        Bench b;
        const auto s = embedded(1, 7, PoolingType::kMean);
        b.part.add(*s);
        EXPECT_FALSE(s->kv.reads_prefixes) << "of cached tokens there is no state";
        for (const uint32_t tokens : chunks) b.step({{*s, tokens}});
        ASSERT_TRUE(b.part.finish(*s));
        EXPECT_THAT(s->output.delta.embedding, ElementsAre(3, 6));
    }
}

TEST(Pooling, EachGetsItsOwnAmongOthersThatWantNone) {
    Bench b;
    const auto plain = sequence(1, 5);
    const auto last = embedded(2, 3, PoolingType::kLast), mean = embedded(3, 5, PoolingType::kMean);
    b.part.add(*last);
    b.part.add(*mean);
    b.step({{*plain, 5}, {*last, 3}, {*mean, 5}});
    EXPECT_FALSE(b.part.finish(*plain));
    ASSERT_TRUE(b.part.finish(*last));
    ASSERT_TRUE(b.part.finish(*mean));
    EXPECT_THAT(last->output.delta.embedding, ElementsAre(2, 4));
    EXPECT_THAT(mean->output.delta.embedding, ElementsAre(2, 4));
}

TEST(Pooling, WhatIsComputedAnewReplacesWhatWasThere) {
    Bench b;
    const auto s = embedded(1, 4, PoolingType::kMean);
    b.part.add(*s);
    b.scale = 100; // of a model that has left
    b.step({{*s, 3}});
    s->computed = 0;
    b.scale = 1;
    b.step({{*s, 2}});
    b.step({{*s, 2}});
    ASSERT_TRUE(b.part.finish(*s));
    EXPECT_THAT(s->output.delta.embedding, ElementsAre(1.5, 3));
}

TEST(Pooling, AnEndedSequenceTakesNoOthersStates) {
    Bench b;
    const auto gone = embedded(1, 4, PoolingType::kMean), stays = embedded(2, 3, PoolingType::kMean);
    b.part.add(*gone);
    b.part.add(*stays);
    EXPECT_TRUE(b.part.any());
    b.part.erase(*gone); // with its step in flight
    b.step({{*gone, 4}, {*stays, 3}});
    ASSERT_TRUE(b.part.finish(*stays));
    EXPECT_THAT(stays->output.delta.embedding, ElementsAre(1, 2));
    b.part.erase(*stays);
    EXPECT_FALSE(b.part.any());
}

TEST(Pooling, StatesThatAreMissingOrNotFiniteAreErrors) {
    Bench b;
    const auto missing = embedded(1, 4, PoolingType::kMean);
    b.part.add(*missing);
    missing->computed = 4; // and no state was given
    const auto none = b.part.finish(*missing);
    ASSERT_TRUE(none);
    EXPECT_EQ(none->reason, FinishReason::kError);
    EXPECT_THAT(none->why, HasSubstr("hidden states of 0 tokens, expected 4"));
    const auto broken = embedded(2, 2, PoolingType::kLast);
    b.part.add(*broken);
    b.scale = std::numeric_limits<float>::infinity();
    b.step({{*broken, 2}});
    const auto infinite = b.part.finish(*broken);
    ASSERT_TRUE(infinite);
    EXPECT_EQ(infinite->reason, FinishReason::kError);
    EXPECT_THAT(broken->output.delta.embedding, IsEmpty());
}

}  // namespace
}  // namespace patchbay::engine::testing::pooling_test
