#include "unit/policies/plugins_fixture.hpp"

namespace patchbay::policies::schedulers_test {
namespace {

using Tokens = std::map<uint64_t, uint32_t>;
using Ids = std::vector<uint64_t>;

TEST(Fcfs, PromptsThatFitAreScheduledInOrderOfArrival) {
    World w("fcfs");
    for (uint64_t id : {1, 2, 3}) w.wait(id, 100);
    const Planned p = w.plan();
    EXPECT_EQ(p.order, (Ids{1, 2, 3}));
    EXPECT_EQ(p.tokens, (Tokens{{1, 100}, {2, 100}, {3, 100}}));
}

TEST(Fcfs, APromptThatDoesNotFitIsChunked) {
    World w("fcfs");
    w.in.max_num_seqs = 3;
    uint64_t id = 0;
    for (const uint32_t n : {800u, 800u, 10u, 10u}) w.wait(++id, n);
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 800}, {2, 224}}));
    w.in.flags = 0; // without chunks it waits, and no later request overtakes it
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 800}}));
}

TEST(Fcfs, DecodesGoFirstThenChunksThenNewPrompts) {
    World w("fcfs");
    w.in.max_num_batched_tokens = 100;
    w.run(1, 300, 0, 50);
    w.run(2, 40, 1, 40);
    w.wait(3, 10);
    EXPECT_EQ(w.plan().order, (Ids{2, 1}));
    EXPECT_EQ(w.plan().tokens, (Tokens{{2, 1}, {1, 99}}));
}

TEST(Fcfs, TheLongPrefillThresholdCapsEachChunk) {
    World w("fcfs");
    w.in.long_prefill_token_threshold = 64;
    w.wait(1, 500);
    w.wait(2, 10);
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 64}, {2, 10}}));
}

TEST(Fcfs, DraftsCountAgainstTheBudget) {
    World w("fcfs");
    w.in.max_num_batched_tokens = 6;
    w.run(1, 40, 1, 40).draft_tokens = 4;
    w.run(2, 40, 1, 40).draft_tokens = 4;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 5}, {2, 1}}));
    w.in.max_num_batched_tokens = 8;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 5}, {2, 3}}));
}

TEST(Fcfs, DraftsTakeNoTokenThatAnotherDecodeNeeds) {
    World w("fcfs");
    w.in.max_num_batched_tokens = 5;
    w.run(1, 40, 1, 40).draft_tokens = 4;
    w.run(2, 40, 1, 40).draft_tokens = 4;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 4}, {2, 1}}));
    w.in.max_num_batched_tokens = 1;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 1}}));
    w.running.clear();
    w.in.max_num_seqs = 64;
    w.in.max_num_batched_tokens = 512;
    for (uint64_t id = 1; id <= 64; ++id) w.run(id, 40, 1, 40).draft_tokens = 8;
    EXPECT_EQ(w.plan().tokens.size(), 64u);
}

TEST(Fcfs, DraftsTakeNoPageThatAnotherDecodeNeeds) {
    World w("fcfs");
    w.in.free_pages = 1;
    w.run(1, 31, 1, 31).draft_tokens = 4; // they need a page
    w.run(2, 32, 1, 32);                  // so does its token
    const Planned p = w.plan();
    EXPECT_EQ(p.preempted, Ids{});
    EXPECT_EQ(p.tokens, (Tokens{{1, 1}, {2, 1}}));
    w.in.free_pages = 2;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 5}, {2, 1}}));
}

TEST(Fcfs, ThePrefixThatIsCachedIsNotPlanned) {
    World w("fcfs");
    w.wait(1, 100).cached_tokens = 64;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 36}}));
}

TEST(Fcfs, WithoutBlocksTheLatestArrivedIsPreemptedAndNoneAdmitted) {
    World w("fcfs");
    w.in.free_pages = 0;
    w.run(1, 32, 1, 32); // both need a page
    w.run(2, 32, 1, 32);
    w.wait(3, 1);
    const Planned p = w.plan();
    EXPECT_EQ(p.preempted, (Ids{2}));
    EXPECT_EQ(p.tokens, (Tokens{{1, 1}}));
}

TEST(Fcfs, ABlockTakesAPageOfEachGroupAndASequenceItsStates) {
    World w("fcfs");
    w.in.kv_groups = 2;
    w.in.state_pages = 3;
    w.wait(1, 40); // three blocks
    w.in.free_pages = 9;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 40}}));
    w.run(9, 15, 1, 10); // has room for its six
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 40}, {9, 6}}));
    w.in.free_pages = 8;
    EXPECT_EQ(w.plan().tokens, (Tokens{{9, 6}}));
}

TEST(Fcfs, AWindowTakesPagesOfWhatIsComputedNotOfWhatIsCached) {
    World w("fcfs");
    const uint32_t windows[] = {32};
    w.in.group_windows = windows;
    w.in.free_pages = 6; // 48 tokens and the 31 before them touch at most six
    w.run(9, 15, 1, 15);
    w.wait(1, 1000).cached_tokens = 952;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 48}, {9, 1}}));
    w.in.free_pages = 5;
    EXPECT_EQ(w.plan().tokens, (Tokens{{9, 1}}));
}

TEST(Fcfs, PagesOfAPrefixThatOthersHoldAreNotCharged) {
    World w("fcfs");
    w.in.free_pages = 2;
    w.run(9, 993, 1, 993); // has room for its token
    for (uint64_t id : {1, 2, 3}) {
        pb_sequence& s = w.wait(id, 1000);
        s.cached_tokens = 992;
        s.cached_pages_in_use = id == 3 ? 61 : 62;
    }
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 8}, {2, 8}, {9, 1}}));
    w.waiting.erase(w.waiting.begin());
    w.waiting[0].cached_pages_in_use = 61; // of the others one is free, and to be taken
    EXPECT_EQ(w.plan().tokens, (Tokens{{2, 8}, {9, 1}}));
    w.waiting[0].cached_pages_in_use = 60;
    EXPECT_EQ(w.plan().tokens, (Tokens{{9, 1}}));
}

TEST(Edf, PagesOfAPrefixThatTheOneWhoLeavesMayHoldAreCharged) {
    World w("edf");
    w.in.max_num_seqs = 1;
    w.in.free_pages = 1;
    pb_sequence& late = w.run(9, 65, 1, 65); // five pages
    late.deadline_us = 900'000'000;
    pb_sequence& s = w.wait(1, 100); // seven pages, four of them those of the other
    s.deadline_us = 2'000'000;
    s.cached_tokens = 64;
    s.cached_pages_in_use = 4;
    EXPECT_EQ(w.plan().preempted, Ids{}) << "with them there are six";
    w.in.free_pages = 2;
    EXPECT_EQ(w.plan().preempted, Ids{9});
}

TEST(Orca, ReservesPagesForTheLongestOutputOfAllWhoRun) {
    World w("orca");
    w.in.free_pages = 20;
    w.run(9, 32, 1, 32); // two pages, and up to seven more for its 100 tokens
    w.wait(1, 32);       // nine
    w.wait(2, 32);
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 32}, {9, 1}}));
    w.waiting[1].cached_tokens = 16;
    w.waiting[1].cached_pages_in_use = 1;
    w.in.free_pages = 7 + 9 + 8;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 32}, {2, 16}, {9, 1}}));
}

TEST(Orca, ReservesNoMoreForAWindowThanItHoldsAtATime) {
    World w("orca");
    const uint32_t windows[] = {0, 32};
    w.in.kv_groups = 2;
    w.in.group_windows = windows;
    w.in.max_num_batched_tokens = 64;
    w.run(9, 32, 1, 32).max_tokens = 992; // 62 blocks; of the window and two steps, 159 tokens, 11
    w.wait(1, 32).max_tokens = 992;       // 64 blocks, and 11
    w.in.free_pages = 62 + 11 + 64 + 11;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 32}, {9, 1}}));
    w.in.free_pages -= 1;
    EXPECT_EQ(w.plan().tokens, (Tokens{{9, 1}}));
}

TEST(Orca, ReservesPagesForAllBeamsOfASearch) {
    World w("orca");
    w.wait(1, 40).beams = 3; // two pages that all have; and of nine each seven of its own
    w.wait(2, 16).max_tokens = 16;
    w.in.free_pages = 2 + 3 * 7 + 1;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 40}}));
    w.in.free_pages += 1;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 40}, {2, 16}}));
    w.waiting.erase(w.waiting.begin());
    w.run(1, 40, 1, 40).beams = 3;
    for (uint64_t id : {11, 12}) w.run(id, 40, 1, 40).beams = 3; // each may have to copy its third page
    w.in.free_pages = 3 * 7 + 1;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 1}, {11, 1}, {12, 1}}));
    w.in.free_pages += 1;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 1}, {2, 16}, {11, 1}, {12, 1}}));
}

TEST(Fcfs, AWindowThatEndsWithAPageTakesNoPageMore) {
    World w("fcfs");
    const uint32_t windows[] = {33};
    w.in.group_windows = windows;
    w.in.free_pages = 6; // 49 tokens and the 32 before them touch at most six
    w.run(9, 15, 1, 15);
    w.wait(1, 1001).cached_tokens = 952;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 49}, {9, 1}}));
}

TEST(Fcfs, OneThatIsAloneIsComputedInPartsThatFit) {
    World w("fcfs");
    const uint32_t windows[] = {0, 32};
    w.in.kv_groups = 2;
    w.in.group_windows = windows;
    w.in.free_pages = 7;
    w.wait(1, 500);
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 48}}));
    w.in.flags = 0; // it may not be split
    EXPECT_EQ(w.plan().tokens, Tokens{});
    w.in.flags = PB_STEP_CHUNKED_PREFILL;
    w.waiting.clear();
    w.run(2, 500, 0, 60);
    const Planned p = w.plan();
    EXPECT_EQ(p.preempted, Ids{});
    EXPECT_EQ(p.tokens, (Tokens{{2, 52}})); // four in its page, and three blocks
}

TEST(Fcfs, DraftsNeverCausePreemption) {
    World w("fcfs");
    w.in.free_pages = 0;
    w.run(1, 30, 1, 30).draft_tokens = 4; // its own token and one of them fit the page, the others need another
    w.run(2, 30, 1, 30);
    const Planned p = w.plan();
    EXPECT_EQ(p.preempted, Ids{});
    EXPECT_EQ(p.tokens, (Tokens{{1, 2}, {2, 1}}));
}

TEST(Fcfs, PreemptingOneNeverLosesAnothersTurn) {
    World w("fcfs");
    w.in.free_pages = 0;
    w.run(1, 30, 1, 30); // fits its page
    w.run(2, 32, 1, 32); // needs one
    w.run(3, 30, 1, 30);
    w.run(4, 30, 1, 30); // the latest: goes
    const Planned p = w.plan();
    EXPECT_EQ(p.preempted, (Ids{4}));
    EXPECT_EQ(p.tokens, (Tokens{{1, 1}, {2, 1}, {3, 1}}));
}

TEST(Fcfs, TheWatermarkIsKeptFreeWhenAdmittingUnlessNothingRuns) {
    World w("fcfs");
    w.in.free_pages = 4;
    w.in.watermark_pages = 2;
    w.wait(1, 48); // three pages
    EXPECT_EQ(w.plan().tokens.size(), 1u);
    w.run(9, 16, 1, 10);
    EXPECT_EQ(w.plan().tokens, (Tokens{{9, 7}}));
}

TEST(Fcfs, PagesForAllTokensAreReservedWhereAskedTo) {
    World w("fcfs");
    w.in.long_prefill_token_threshold = 32;
    w.in.free_pages = 10;
    w.run(1, 128, 0, 32); // takes two pages now, and four later
    w.wait(2, 80);        // two now, three later
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 32}, {2, 32}}));
    w.in.flags |= PB_STEP_RESERVE_FULL;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 32}}));
    w.in.free_pages = 11;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 32}, {2, 32}}));
}

TEST(Fcfs, KvInHostMemoryComesBackWithAToken) {
    World w("fcfs");
    w.in.free_pages = 6;
    pb_sequence& s = w.wait(1, 80);
    s.output_tokens = 10;
    s.cached_tokens = 89;
    s.flags = PB_SEQ_PREEMPTED | PB_SEQ_SWAPPED;
    EXPECT_EQ(w.plan().tokens, (Tokens{{1, 1}}));
    w.run(2, 16, 1, 10);
    w.in.free_pages = 5; // not all of its six pages
    EXPECT_EQ(w.plan().tokens, (Tokens{{2, 7}}));
}

}  // namespace
}  // namespace patchbay::policies::schedulers_test
