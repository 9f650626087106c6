// What a listener hears of the prefix cache.
#include "engine/trace/kv_event_feed.hpp"

#include <gmock/gmock.h>

#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::kv_event_feed_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KvEventFeed, GivesAListenerWhatEnteredAndLeftSinceTheStepBefore) {
    World w;
    w.caching = kv::PrefixCaching::kOn;
    QueueNeighbours b(std::move(w));
    KvEventFeed feed(b.kv, b.clock);
    Sequence &before = b.run(8, 8), &after = b.run(8, 8);
    b.kv.prefixes().cache_full_blocks(before.kv.table, before.tokens);
    feed.on_end({});
    std::vector<size_t> heard;
    feed.listen([&](std::span<const kv::CacheEvent> events, uint64_t now_ns) {
        EXPECT_EQ(now_ns, 3u);
        heard.push_back(events.size());
    });
    b.clock.advance_ns(3);
    feed.on_end({});
    EXPECT_THAT(heard, IsEmpty()) << "what was there before is not said";
    b.kv.prefixes().cache_full_blocks(after.kv.table, after.tokens);
    feed.on_end({});
    feed.on_end({});
    EXPECT_THAT(heard, ElementsAre(2));
}

}  // namespace
}  // namespace patchbay::engine::testing::kv_event_feed_test
