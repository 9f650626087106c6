// Lines of KV events, by what vLLM calls them.
#include "engine/trace/kv_event_file.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "unit/engine/temporary_folder.hpp"

namespace patchbay::engine::testing::kv_event_file_test {
namespace {

using ::testing::HasSubstr;
using Kind = kv::CacheEvent::Kind;

TEST(KvEventFile, HasALineForEachEventInItsOrder) {
    const std::string path = (temporary_folder() / "events.jsonl").string();
    auto part = KvEventFile::create(path);
    ASSERT_TRUE(part) << part.error();
    const kv::BlockKey first{.high = 0x12, .low = 0xAB}, second{.high = 0, .low = 1};
    const std::vector<kv::CacheEvent> events = {{Kind::kStored, first, {}, true, 0, {1, 2, 3, 4}},
                                                {Kind::kStored, second, first, false, 2, {5, 6, 7, 8}},
                                                {Kind::kRemoved, second, {}, false, 0, {}},
                                                {Kind::kCleared, {}, {}, false, 0, {}}};
    (*part)->write(events, 1'500'000'000, 4);

    // As in vLLM's kv_events.py: BlockStored, BlockRemoved, AllBlocksCleared.
    const char* const expected[] = {
        R"({"type": "BlockStored", "ts": 1.5, "block_hashes": ["000000000000001200000000000000ab"],
            "parent_block_hash": null, "token_ids": [1, 2, 3, 4], "block_size": 4, "group_idx": 0})",
        R"({"type": "BlockStored", "ts": 1.5, "block_hashes": ["00000000000000000000000000000001"],
            "parent_block_hash": "000000000000001200000000000000ab", "token_ids": [5, 6, 7, 8], "block_size": 4,
            "group_idx": 2})",
        R"({"type": "BlockRemoved", "ts": 1.5, "block_hashes": ["00000000000000000000000000000001"]})",
        R"({"type": "AllBlocksCleared", "ts": 1.5})"};
    std::ifstream in(path); // which is not closed: others follow it
    std::string line;
    for (const char* e : expected) {
        ASSERT_TRUE(std::getline(in, line));
        EXPECT_EQ(nlohmann::json::parse(line), nlohmann::json::parse(e)) << line;
    }
    EXPECT_FALSE(std::getline(in, line));
    EXPECT_TRUE((*part)->close());
}

TEST(KvEventFile, OfSeveralEnginesEachLineSaysWhoseItIsAndTimesBeginWithTheRun) {
    const std::string path = (temporary_folder() / "events_of_a_run.jsonl").string();
    auto part = KvEventFile::create(path, {"sjf", 1, 1'000'000'000});
    ASSERT_TRUE(part) << part.error();
    const kv::CacheEvent event{Kind::kCleared, {}, {}, false, 0, {}};
    (*part)->write({&event, 1}, 1'500'000'000, 4);
    std::ifstream in(path);
    EXPECT_EQ(nlohmann::json::parse(in),
              nlohmann::json::parse(R"({"variant": "sjf", "type": "AllBlocksCleared", "ts": 0.5})"));
}

TEST(KvEventFile, SaysWhatItCannotWrite) {
    EXPECT_THAT(KvEventFile::create("/nowhere/events.jsonl").error(), HasSubstr("/nowhere/events.jsonl"));
    auto full = KvEventFile::create("/dev/full");
    ASSERT_TRUE(full) << full.error();
    const kv::CacheEvent event{Kind::kCleared, {}, {}, false, 0, {}};
    (*full)->write({&event, 1}, 0, 4);
    EXPECT_THAT((*full)->close().error(), HasSubstr("cannot write /dev/full"));
}

}  // namespace
}  // namespace patchbay::engine::testing::kv_event_file_test
