// What schedulers are shown of those that wait: what they would find if they were admitted now.
#include "engine/scheduling/prefix_hints.hpp"

#include <gmock/gmock.h>

#include <random>

#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::prefix_hints_test {
namespace {

World caching(uint32_t blocks = 16) {
    World w;
    w.blocks = blocks;
    w.caching = kv::PrefixCaching::kOn;
    return w;
}

struct Bench : QueueNeighbours { // whose own hints are those of the part
    explicit Bench(World w = caching()) : QueueNeighbours(std::move(w)) {}

    Sequence& wait_with(std::vector<TokenId> prompt) {
        auto made = sequence(next_id++, static_cast<uint32_t>(prompt.size()));
        made->tokens = std::move(prompt);
        return wait(std::move(made));
    }
    // KV of these tokens, held by a table or given back.
    kv::BlockTable compute(const std::vector<TokenId>& tokens) {
        kv::BlockTable t;
        kv.prefixes().adopt(t, tokens);
        if (!kv.tables().grow(t, static_cast<uint32_t>(tokens.size()))) throw std::runtime_error("too few pages");
        kv.prefixes().cache_full_blocks(t, tokens);
        return t;
    }
    const pb_sequence& shown(const Sequence& s) {
        for (const pb_sequence& r : sequences.waiting().records())
            if (r.id == s.id) return r;
        throw std::runtime_error("it does not wait");
    }
};

std::vector<TokenId> prompt_of(TokenId first, uint32_t count) {
    std::vector<TokenId> out(count);
    std::iota(out.begin(), out.end(), first);
    return out;
}

TEST(Hints, FollowTheCacheBetweenPlans) {
    Bench b;
    const auto prompt = prompt_of(500, 9);
    Sequence& s = b.wait_with(prompt);
    EXPECT_EQ(b.shown(s).cached_tokens, 0u);
    b.hints.update();
    kv::BlockTable held = b.compute(prompt);
    EXPECT_EQ(b.shown(s).cached_tokens, 0u) << "until they are updated";
    b.hints.update();
    EXPECT_EQ(b.shown(s).cached_tokens, 8u);
    EXPECT_EQ(b.shown(s).cached_pages_in_use, 2u);
    b.kv.tables().release(held);
    b.hints.update();
    EXPECT_EQ(b.shown(s).cached_tokens, 8u);
    EXPECT_EQ(b.shown(s).cached_pages_in_use, 0u) << "they are free, and would be taken";
}

TEST(Hints, OfOneThatReadsNoPrefixesAreNone) {
    Bench b;
    kv::BlockTable held = b.compute(prompt_of(500, 9));
    auto made = sequence(b.next_id++, 9);
    made->tokens = prompt_of(500, 9);
    made->kv.reads_prefixes = false;
    Sequence& s = b.wait(std::move(made));
    b.hints.update();
    EXPECT_EQ(b.shown(s).cached_tokens, 0u);
    EXPECT_EQ(b.kv.prefixes().watched().count(), 0u);
}

TEST(Hints, FollowACacheThatStartsOverWithAnotherRoot) {
    Bench b;
    const auto prompt = prompt_of(500, 9);
    Sequence& s = b.wait_with(prompt);
    kv::BlockTable held = b.compute(prompt);
    b.hints.update();
    ASSERT_EQ(b.shown(s).cached_tokens, 8u);
    b.kv.tables().release(held);
    b.hints.forget_all();
    b.kv.prefixes().start_over("another model");
    b.hints.update();
    EXPECT_EQ(b.shown(s).cached_tokens, 0u);
    held = b.compute(prompt);
    b.hints.update();
    EXPECT_EQ(b.shown(s).cached_tokens, 8u);
    b.kv.tables().release(held);
}

TEST(Hints, OfOneInHostMemoryAreItsTokensThere) {
    World w = caching();
    w.slots = 4;
    Bench b(std::move(w));
    Sequence& s = b.run(9, 9);
    ASSERT_TRUE(b.kv.swap().out(s.kv.table, 9, s.kv.swapped));
    s.computed = 0;
    b.admission.leave(s);
    b.admission.put_first(s);
    b.hints.update();
    EXPECT_EQ(b.shown(s).cached_tokens, 9u);
    EXPECT_EQ(b.shown(s).flags & PB_SEQ_SWAPPED, uint32_t{PB_SEQ_SWAPPED});
}

TEST(Hints, OfASiblingAreThePromptThatItMayShare) {
    Bench b(World{});
    const auto all = b.add_siblings(2, 7);
    b.admission.leave(*all[0]);
    b.sequences.run(*all[0]);
    ASSERT_TRUE(b.kv.tables().grow(all[0]->kv.table, 7));
    all[0]->computed = 7;
    b.admission.put_last(*all[1]);
    EXPECT_EQ(b.shown(*all[1]).cached_tokens, 6u);
    EXPECT_EQ(b.shown(*all[1]).tokens_until_next_page, 4u)
        << "one full page is shared; the last, which is not full, is copied";
    b.admission.leave(*all[0]);
    b.kv.tables().release(all[0]->kv.table);
    b.hints.refresh_siblings(all[0]->id);
    EXPECT_EQ(b.shown(*all[1]).cached_tokens, 0u);
    EXPECT_EQ(b.shown(*all[1]).tokens_until_next_page, 0u);
}

TEST(Hints, OfASiblingEndWhereAWindowSlidesPastThePrompt) {
    World w;
    w.groups = {{kv::GroupKind::kSliding, 4}};
    Bench b(std::move(w));
    const auto all = b.add_siblings(2, 7);
    b.admission.leave(*all[0]);
    b.sequences.run(*all[0]);
    ASSERT_TRUE(b.kv.tables().grow(all[0]->kv.table, 16));
    all[0]->computed = 7;
    b.admission.put_last(*all[1]);
    EXPECT_EQ(b.shown(*all[1]).cached_tokens, 6u);
    b.kv.tables().free_outside_window(all[0]->kv.table, 15);
    b.hints.update();
    EXPECT_EQ(b.shown(*all[1]).cached_tokens, 0u);
}

// Of any number that wait, the first ones are shown what a look-up finds.
TEST(Hints, OfTheFirstThatWaitEqualALookUpUnderRandomUse) {
    std::mt19937 draw(3);
    Bench b(caching(24));
    std::vector<std::pair<kv::BlockTable, std::vector<TokenId>>> held;
    std::vector<Sequence*> waiting;
    uint64_t found = 0;
    const auto any_prompt = [&] {
        auto prompt = prompt_of(static_cast<TokenId>(1000 * (draw() % 6)), 5 + draw() % 20);
        if (draw() % 2) prompt[draw() % prompt.size()] = 7;
        return prompt;
    };
    for (int step = 0; step < 2000; ++step) {
        switch (draw() % 5) {
            case 0: waiting.push_back(&b.wait_with(any_prompt())); break;
            case 4:
                if (waiting.empty()) break;
                b.admission.leave(*waiting[draw() % waiting.size()]); // and comes back before all that are watched
                for (Sequence* s : waiting)
                    if (s->place == Place::kHeld) b.admission.put_first(*s);
                break;
            case 1:
                if (waiting.size() > 140) {
                    const size_t i = draw() % waiting.size();
                    b.admission.leave(*waiting[i]);
                    b.sequences.remove(waiting[i]->id);
                    waiting.erase(waiting.begin() + static_cast<ptrdiff_t>(i));
                }
                break;
            case 2:
                if (b.kv.pool().free() >= 7) {
                    auto prompt = any_prompt();
                    held.emplace_back(b.compute(prompt), prompt);
                }
                break;
            default:
                if (held.empty()) break;
                b.kv.tables().release(held.front().first);
                held.erase(held.begin());
        }
        b.hints.update();
        const auto records = b.sequences.waiting().records();
        const size_t watched = std::min<size_t>(records.size(), kv::PrefixWatch::kMaxPrompts);
        for (size_t i = 0; i < watched; ++i) {
            const Sequence& s = *b.sequences.find(records[i].id);
            const kv::CachedPrefix now = b.kv.prefixes().cached(s.tokens);
            ASSERT_EQ(records[i].cached_tokens, now.tokens) << "step " << step << ", place " << i;
            ASSERT_EQ(records[i].cached_pages_in_use, now.pages_in_use) << "step " << step << ", place " << i;
            found += now.tokens > 0;
        }
    }
    EXPECT_GT(waiting.size(), size_t{kv::PrefixWatch::kMaxPrompts});
    EXPECT_GT(found, 10'000u);
}

}  // namespace
}  // namespace patchbay::engine::testing::prefix_hints_test
