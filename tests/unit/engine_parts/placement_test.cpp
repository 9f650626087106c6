// A plan becomes pages: what fits and what is trimmed, by an independent count; and what each sequence finds in its
// pages, by a memory that is copied and written as a device would.
#include "engine/placement/placement.hpp"

#include <gmock/gmock.h>

#include <random>

#include "engine/placement/pressure.hpp"
#include "unit/engine_parts/neighbours.hpp"
#include "unit/engine_parts/page_memory.hpp"

namespace patchbay::engine::testing::placement_test {
namespace {

using ::testing::ElementsAre;

struct Bench : QueueNeighbours {
    explicit Bench(World w = {}) : QueueNeighbours(std::move(w)) {}

    const std::vector<Placed>& apply(std::vector<StepPlan::Item> items, std::vector<Sequence*> preempted = {}) {
        StepPlan plan{std::move(items), {}};
        for (Sequence* s : preempted) plan.preemptions.push_back({s, s->id, PB_PREEMPT_RECOMPUTE});
        context.report = {};
        placement.apply(plan);
        return placement.placed();
    }
    std::vector<uint32_t> tokens() { // that were placed
        std::vector<uint32_t> out;
        for (const Placed& p : placement.placed()) out.push_back(p.tokens);
        return out;
    }

    PromptLogprobs prompt_logprobs{settings, kVocab};
    Preemption preemption{{settings, sequences, kv, admission, hints, beams, draft_kv, executor, context}};
    PressureMonitor pressure{0.1};
    Placement placement{{settings, sequences, kv, admission, scheduler, hints, siblings, beams, preemption, pressure,
                         prompt_logprobs, draft_kv, context}};
};

World with_blocks(uint32_t blocks, kv::PrefixCaching caching = kv::PrefixCaching::kOff) {
    World w;
    w.blocks = blocks;
    w.caching = caching;
    return w;
}

TEST(Placement, GivesPagesInPlanOrderAndTrimsWhatDoesNotFit) {
    Bench b(with_blocks(3));
    Sequence &first = b.wait(6), &second = b.wait(8), &third = b.wait(4);
    const auto& placed = b.apply({{&second, 5}, {&first, 6}, {&third, 4}});
    ASSERT_EQ(placed.size(), 2u);
    EXPECT_EQ(placed[0].sequence, &second);
    EXPECT_EQ(placed[0].rows, 0u) << "its prompt is unfinished";
    EXPECT_THAT(b.tokens(), ElementsAre(5, 4)) << "of the first one, 6 tokens were planned and one page was left";
    EXPECT_EQ(b.report().work.trimmed, 2u);
    EXPECT_EQ(b.report().work.admitted, 2u);
    EXPECT_EQ(b.report().work.prefill_tokens, 9u);
    EXPECT_EQ(third.place, Place::kWaiting);
    EXPECT_EQ(third.kv.table.held, 0u);
    EXPECT_THAT(b.waiting(), ElementsAre(third.id));
}

TEST(Placement, KeepsMorePagesFreeAfterPreemptionsForMemoryWhereThatIsAdaptive) {
    for (const bool adaptive : {false, true}) {
        World w = with_blocks(3);
        w.settings.adaptive_watermark = adaptive;
        Bench b(std::move(w));
        Sequence &stays = b.run(8, 4), &goes = b.run(8, 8);
        b.apply({{&stays, 4}}, {&goes});
        EXPECT_EQ(b.report().preemption.preempted_for_memory, 1u);
        if (adaptive) EXPECT_GT(b.pressure.watermark(), 0.1);
        else EXPECT_EQ(b.pressure.watermark(), 0.1);
    }
}

TEST(Placement, GivesNoMoreThanASequenceStillNeeds) {
    Bench b;
    Sequence& s = b.wait(5);
    EXPECT_EQ(b.apply({{&s, 50}})[0].tokens, 5u);
    EXPECT_EQ(b.report().work.trimmed, 0u);
    EXPECT_EQ(b.placement.placed()[0].rows, 1u) << "of its last token";
}

TEST(Placement, CountsDecodingApartFromPrompts) {
    Bench b;
    Sequence &decodes = b.run(4, 4), &last_of_prompt = b.run(4, 3);
    decodes.tokens.push_back(7);
    b.apply({{&decodes, 1}, {&last_of_prompt, 1}});
    EXPECT_EQ(b.report().work.decode_tokens, 1u);
    EXPECT_EQ(b.report().work.prefill_tokens, 1u);
}

TEST(Placement, HasARowForEachDraftThatFits) {
    Bench b(with_blocks(2));
    Sequence& s = b.run(6, 5);
    s.tokens.insert(s.tokens.end(), {7, 8, 9}); // drafts
    s.drafts = 3;
    const Placed& all = b.apply({{&s, 4}})[0];
    EXPECT_EQ(all.tokens, 3u) << "there are two pages of four tokens";
    EXPECT_EQ(all.rows, 3u);
    EXPECT_EQ(all.confirmed, 6u);
}

TEST(Placement, PreemptsBeforeItGivesPages) {
    Bench b(with_blocks(2));
    Sequence &runs = b.run(8, 8), &waits = b.wait(8);
    b.apply({{&waits, 8}}, {&runs});
    EXPECT_THAT(b.tokens(), ElementsAre(8));
    EXPECT_EQ(runs.place, Place::kWaiting);
    EXPECT_EQ(b.report().preemption.preemptions, 1u);
    EXPECT_EQ(b.report().preemption.preempted_for_memory, 0u) << "those that ran had all their pages";
}

TEST(Placement, SaysThatAPreemptionWasForMemory) {
    Bench b(with_blocks(2));
    Sequence &grows = b.run(8, 4), &other = b.run(4, 4);
    b.apply({{&grows, 4}}, {&other});
    EXPECT_THAT(b.tokens(), ElementsAre(4));
    EXPECT_EQ(b.report().preemption.preempted_for_memory, 1u);
}

TEST(Placement, WithoutChunksAPromptIsPlacedAsAWholeOrStays) {
    World w = with_blocks(2);
    w.settings.enable_chunked_prefill = false;
    Bench b(std::move(w));
    Sequence &fits_not = b.wait(9), &fits = b.wait(8);
    b.apply({{&fits_not, 9}, {&fits, 8}});
    EXPECT_THAT(b.tokens(), ElementsAre(8));
    EXPECT_EQ(fits_not.place, Place::kWaiting);
    EXPECT_EQ(b.kv.pool().free(), 0u);
}

TEST(Placement, ReservesPagesForAllTokensBesideThoseThatOthersLack) {
    World w = with_blocks(4);
    w.settings.reserve_full_sequence = true;
    Bench b(std::move(w));
    Sequence& runs = b.run(8, 4); // lacks one page more
    Sequence &three = b.wait(12), &two = b.wait(8);
    b.apply({{&three, 4}, {&two, 4}});
    EXPECT_EQ(three.place, Place::kWaiting) << "three pages are free, and one of them is spoken for";
    EXPECT_EQ(three.kv.table.held, 0u);
    EXPECT_EQ(two.place, Place::kRunning);
    EXPECT_EQ(runs.kv.table.held, 1u);
}

TEST(Placement, AdoptsWhatIsCachedAndCountsItOnceARequest) {
    Bench b(with_blocks(8, kv::PrefixCaching::kOn));
    Sequence& first = b.wait(9);
    b.apply({{&first, 9}});
    first.computed = 9;
    auto made = sequence(b.next_id++, 9);
    made->tokens = first.tokens;
    Sequence& second = b.wait(std::move(made));
    EXPECT_EQ(b.apply({{&second, 9}})[0].tokens, 1u);
    EXPECT_EQ(second.computed, 8u);
    EXPECT_EQ(second.record.cached_tokens, 8u);
    EXPECT_EQ(b.kv.pool().used(), 4u) << "three pages, and a last one of its own";
    EXPECT_EQ(b.report().kv.prefix_query_tokens, 9u);
    EXPECT_EQ(b.report().kv.prefix_hit_tokens, 8u);
    b.apply({{&second, 1}}, {&second}); // the plan preempts it: it is not placed by its old state
    b.apply({{&second, 1}});
    EXPECT_EQ(b.report().kv.prefix_query_tokens, 0u);
}

TEST(Placement, OneThatStaysKeepsNothingOfWhatItFound) {
    Bench b(with_blocks(2, kv::PrefixCaching::kOn));
    Sequence& first = b.wait(8);
    b.apply({{&first, 8}});
    first.computed = 8;
    auto made = sequence(b.next_id++, 9);
    std::ranges::copy(first.tokens, made->tokens.begin());
    Sequence& second = b.wait(std::move(made));
    EXPECT_TRUE(b.apply({{&second, 1}}).empty()) << "two pages are found, and a third is not free";
    EXPECT_EQ(b.report().work.trimmed, 1u);
    EXPECT_EQ(second.place, Place::kWaiting);
    EXPECT_EQ(second.computed, 0u);
    EXPECT_EQ(second.kv.table.held, 0u);
    EXPECT_FALSE(second.record.admitted_once) << "its hit is counted when it is admitted";
    EXPECT_EQ(b.sequences.waiting().records()[0].cached_tokens, 8u);
}

TEST(Placement, ASiblingSharesThePromptAndCopiesThePageThatItWritesTo) {
    Bench b;
    const auto all = b.add_siblings(2, 6);
    b.apply({{all[0], 6}});
    all[0]->computed = 6;
    all[0]->tokens.push_back(7);
    for (Sequence* s : b.siblings.release(*all[0])) b.admission.put_first(*s);
    b.apply({{all[0], 1}, {all[1], 6}});
    EXPECT_THAT(b.tokens(), ElementsAre(1, 1)) << "all but the prompt's last token is there";
    EXPECT_EQ(b.report().work.forked, 1u);
    EXPECT_EQ(all[1]->kv.table.pages[0][0], all[0]->kv.table.pages[0][0]);
    EXPECT_NE(all[1]->kv.table.pages[0][1], all[0]->kv.table.pages[0][1]);
    const auto page = all[1]->kv.table.pages[0][1];
    EXPECT_THAT(std::vector(b.kv.copies().copies().begin(), b.kv.copies().copies().end()),
                ElementsAre(kv::PageCopy{page, all[0]->kv.table.pages[0][1]}));
}

TEST(Placement, LimitsTheRowsOfPromptLogprobsInAStep) {
    World w = with_blocks(64);
    w.settings.max_num_batched_tokens = 256;
    Bench b(std::move(w));
    SamplingParams p;
    p.prompt_logprobs = 0;
    Sequence &first = b.wait(50, p), &second = b.wait(40, p), &third = b.wait(40, p), &plain = b.wait(40);
    for (Sequence* s : {&first, &second, &third}) b.prompt_logprobs.add(*s, {});
    b.apply({{&first, 50}, {&second, 40}, {&third, 40}, {&plain, 40}});
    EXPECT_THAT(b.tokens(), ElementsAre(50, 15, 40)) << "49 rows, and the 15 that are left of 64";
    EXPECT_EQ(b.placement.placed()[0].prompt_rows, 49u);
    EXPECT_EQ(b.placement.placed()[1].prompt_rows, 15u);
    EXPECT_EQ(third.place, Place::kWaiting) << "no row is left for it";
    EXPECT_EQ(plain.place, Place::kRunning) << "it wants none";
}

TEST(Placement, CountsATokenInFlightAsThere) {
    Bench b;
    Sequence& s = b.run(4, 0);
    ASSERT_TRUE(b.kv.tables().grow(s.kv.table, 4));
    s.in_flight.tokens = 4;
    s.in_flight.placeholders = 1;
    const Placed& p = b.apply({{&s, 3}})[0];
    EXPECT_EQ(p.tokens, 1u);
    EXPECT_EQ(p.confirmed, 5u);
    EXPECT_EQ(p.rows, 1u);
    EXPECT_EQ(s.kv.table.blocks, 2u);
    EXPECT_EQ(b.report().work.decode_tokens, 1u);
}

// ---- random plans

uint32_t pages_of(uint64_t tokens, uint32_t block_size) {
    return static_cast<uint32_t>((tokens + block_size - 1) / block_size);
}

// One group, no cache: a page for each four tokens, and nothing else to know.
TEST(Placement, AgreesWithACountOfPagesOverRandomPlans) {
    std::mt19937 draw(7);
    uint64_t trimmed = 0, refused = 0;
    for (int trial = 0; trial < 40; ++trial) {
        Bench b(with_blocks(6 + draw() % 12));
        std::vector<Sequence*> all;
        for (int i = 0; i < 6; ++i) all.push_back(&b.wait(1 + draw() % 20));
        for (int step = 0; step < 40; ++step) {
            std::vector<StepPlan::Item> items;
            std::vector<Sequence*> preempted;
            std::ranges::shuffle(all, draw);
            uint32_t free = b.kv.pool().free();
            for (Sequence* s : all) {
                if (s->place == Place::kRunning && draw() % 8 == 0) {
                    preempted.push_back(s);
                    free += s->kv.table.held;
                } else if (draw() % 4 > 0) {
                    items.push_back({s, 1 + static_cast<uint32_t>(draw() % 9)});
                }
            }
            std::vector<std::pair<Sequence*, uint32_t>> expected;
            uint32_t cut = 0;
            for (const auto& [s, tokens] : items) {
                const uint32_t wanted = std::min(tokens, s->remaining()), held = s->kv.table.held;
                const uint32_t n = std::min(wanted, (held + free) * 4 - s->computed);
                cut += n < wanted;
                if (n == 0) continue;
                expected.emplace_back(s, n);
                free -= std::max(pages_of(s->computed + n, 4), held) - held;
            }
            b.apply(items, preempted);
            std::vector<std::pair<Sequence*, uint32_t>> got;
            for (const Placed& p : b.placement.placed()) got.emplace_back(p.sequence, p.tokens);
            ASSERT_EQ(got, expected) << "trial " << trial << ", step " << step;
            ASSERT_EQ(b.kv.pool().free(), free);
            ASSERT_EQ(b.report().work.trimmed, cut);
            trimmed += cut;
            refused += items.size() - got.size();
            for (const Placed& p : b.placement.placed()) {
                p.sequence->computed += p.tokens;
                if (p.rows > 0) p.sequence->tokens.push_back(5);
            }
        }
    }
    EXPECT_GT(trimmed, 100u);
    EXPECT_GT(refused, 100u);
}

// Requests of one to three outputs over few prompts, so that pages are shared through the cache and between siblings.
class RandomRun {
  public:
    RandomRun(World w, uint32_t seed)
        : windows_(w.groups), memory_(w.blocks, w.slots, 4), b_(std::move(w)), draw_(seed) {}

    void steps(int count) {
        for (int i = 0; i < count; ++i) {
            ASSERT_NO_FATAL_FAILURE(step()) << "step " << i;
            b_.context.step += 1;
        }
        for (Sequence* s : std::vector(live_)) end(*s);
        EXPECT_EQ(b_.kv.pool().used(), 0u);
        EXPECT_EQ(b_.kv.swap().space().used(), 0u);
    }
    uint64_t shared = 0, copies = 0, swaps = 0, hits = 0;

  private:
    void add_request() {
        const auto count = 1 + static_cast<uint32_t>(draw_() % 3), length = 3 + static_cast<uint32_t>(draw_() % 16);
        auto all = b_.add_siblings(count, length);
        if (count == 1) {
            b_.siblings.release(*all[0]);
            b_.siblings.leave(*all[0]);
        }
        const auto family = static_cast<TokenId>(1000 * (1 + draw_() % 3));
        for (Sequence* s : all) {
            std::iota(s->tokens.begin(), s->tokens.end(), family);
            live_.push_back(s);
        }
    }
    void end(Sequence& s) {
        b_.admission.leave(s);
        b_.kv.tables().release(s.kv.table);
        b_.kv.swap().drop(s.kv.swapped);
        s.ended = true;
        if (b_.siblings.holds(s)) release_siblings(s);
        b_.siblings.leave(s);
        if (s.has_siblings()) b_.hints.refresh_siblings(s.group);
        std::erase(live_, &s);
        b_.sequences.remove(s.id);
    }
    void release_siblings(Sequence& s) {
        for (Sequence* other : b_.siblings.release(s)) b_.admission.put_first(*other);
    }
    void step() {
        while (live_.size() < 7) add_request();
        std::vector<Sequence*> order = live_;
        std::ranges::shuffle(order, draw_);
        StepPlan plan;
        for (Sequence* s : order) {
            if (s->place == Place::kHeld) continue;
            if (s->place == Place::kRunning && draw_() % 10 == 0)
                plan.preemptions.push_back({s, s->id, draw_() % 2 ? PB_PREEMPT_SWAP : PB_PREEMPT_RECOMPUTE});
            else if (draw_() % 5 > 0)
                plan.items.push_back({s, 1 + static_cast<uint32_t>(draw_() % 12)});
        }
        b_.context.report = {};
        b_.placement.apply(plan);
        shared += b_.report().work.forked;
        hits += b_.report().kv.prefix_hit_tokens;
        swaps += b_.report().preemption.swapped_in;
        ASSERT_NO_FATAL_FAILURE(check_books());
        for (const kv::PageCopy& c : b_.kv.copies().copies()) {
            copies += c.way == kv::Way::kWithin;
            memory_.copy(c);
        }
        b_.kv.copies().clear();
        for (const Placed& p : b_.placement.placed()) write(p);
        for (const Placed& p : b_.placement.placed()) ASSERT_NO_FATAL_FAILURE(read(p));
        for (const Placed& p : std::vector(b_.placement.placed())) commit(p);
    }
    void check_books() {
        std::vector<const kv::BlockTable*> tables;
        for (const Sequence* s : live_) {
            tables.push_back(&s->kv.table);
            ASSERT_TRUE(s->place == Place::kRunning || (s->kv.table.held == 0 && s->computed == 0))
                << s->id << " has KV and does not run";
        }
        const auto sound = b_.kv.audit(tables);
        ASSERT_TRUE(sound) << sound.error();
    }
    static uint64_t content(const Sequence& s, uint32_t token) {
        return content_of(std::span(s.tokens).first(token + 1));
    }
    void write(const Placed& p) {
        const Sequence& s = *p.sequence;
        for (size_t g = 0; g < windows_.size(); ++g)
            for (uint32_t i = s.computed; i < s.computed + p.tokens; ++i)
                memory_.write(s.kv.table, g, i, content(s, i));
    }
    void read(const Placed& p) {
        const Sequence& s = *p.sequence;
        for (size_t g = 0; g < windows_.size(); ++g) {
            const uint32_t window = windows_[g].window;
            const uint32_t from = window > 0 && s.computed + 1 > window ? s.computed + 1 - window : 0;
            for (uint32_t i = from; i < s.computed + p.tokens; ++i)
                ASSERT_EQ(memory_.read(s.kv.table, g, i), content(s, i)) << s.id << ", token " << i << ", group " << g;
        }
    }
    void commit(const Placed& p) {
        Sequence& s = *p.sequence;
        s.computed += p.tokens;
        if (p.rows > 0) s.tokens.push_back(static_cast<TokenId>(draw_() % 3));
        if (b_.siblings.holds(s) && s.outputs() > 0) release_siblings(s);
        b_.kv.tables().free_outside_window(s.kv.table, s.computed);
        if (s.outputs() > 12) end(s);
    }

    std::vector<kv::GroupSpec> windows_;
    PageMemory memory_;
    Bench b_;
    std::mt19937 draw_;
    std::vector<Sequence*> live_;
};

TEST(Placement, EachSequenceFindsItsOwnTokensInItsPagesOverRandomPlans) {
    uint64_t shared = 0, copies = 0, swaps = 0, hits = 0;
    for (uint32_t seed = 0; seed < 48; ++seed) {
        World w;
        w.blocks = 24;
        w.caching = seed % 2 ? kv::PrefixCaching::kOn : kv::PrefixCaching::kOff;
        if (seed / 2 % 2) w.groups.push_back({kv::GroupKind::kSliding, 6});
        w.settings.preemption_mode = seed / 4 % 2 ? config::PreemptionMode::kSwap : config::PreemptionMode::kRecompute;
        w.slots = 12;
        w.settings.reserve_full_sequence = seed / 8 % 2;
        w.settings.max_num_seqs = 64;
        RandomRun run(std::move(w), seed);
        ASSERT_NO_FATAL_FAILURE(run.steps(120)) << "seed " << seed;
        shared += run.shared;
        copies += run.copies;
        swaps += run.swaps;
        hits += run.hits;
    }
    EXPECT_GT(shared, 300u);
    EXPECT_GT(copies, 300u);
    EXPECT_GT(swaps, 300u);
    EXPECT_GT(hits, 1000u);
}

}  // namespace
}  // namespace patchbay::engine::testing::placement_test
