// What a listener and a file have of the prefix cache.
#include "engine/trace/kv_event_feed.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "unit/engine/temporary_folder.hpp"
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

TEST(KvEventFeed, WritesAFileBesideTheListener) {
    World w;
    w.caching = kv::PrefixCaching::kOn;
    QueueNeighbours b(std::move(w));
    KvEventFeed feed(b.kv, b.clock);
    std::vector<size_t> heard;
    feed.listen([&](std::span<const kv::CacheEvent> events, uint64_t) { heard.push_back(events.size()); });
    const auto cache_two_blocks = [&] {
        Sequence& s = b.run(8, 8);
        b.kv.prefixes().cache_full_blocks(s.kv.table, s.tokens);
    };
    const std::string path = (temporary_folder() / "feed.jsonl").string();
    const auto lines = [&] {
        std::ifstream in(path);
        return std::count(std::istreambuf_iterator<char>(in), {}, '\n');
    };
    cache_two_blocks();
    auto file = KvEventFile::create(path);
    ASSERT_TRUE(file) << file.error();
    feed.write_to(*std::move(file));
    EXPECT_THAT(heard, ElementsAre(2)) << "of which the file has nothing";
    cache_two_blocks();
    feed.on_end({});
    EXPECT_THAT(heard, ElementsAre(2, 2));
    EXPECT_EQ(lines(), 2);
    feed.listen({});
    cache_two_blocks();
    EXPECT_TRUE(feed.give_file()->close());
    EXPECT_EQ(lines(), 4) << "what came after the last step, too";
    cache_two_blocks();
    feed.on_end({});
    EXPECT_FALSE(feed.has_file());
    EXPECT_THAT(b.kv.events().take(), IsEmpty()) << "there is no listener and no file: nothing is kept";
}

}  // namespace
}  // namespace patchbay::engine::testing::kv_event_feed_test
