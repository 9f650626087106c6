// Which blocks an identity has, and which of them is found first.
#include "kv/block_identities.hpp"

#include <gtest/gtest.h>

namespace patchbay::kv::block_identities_test {
namespace {

constexpr int32_t kTokens[] = {1, 2}, kOther[] = {1, 3};
const BlockKey kRoot = root_key("m"), kKey = child_key(kRoot, kTokens);

TEST(BlockIdentities, ABlockIsFoundByItsTokensAndNotByItsHashAlone) {
    BlockIdentities identities(2, 2);
    EXPECT_EQ(identities.presence(kKey), Presence::kAbsent);
    EXPECT_TRUE(identities.give(1, kKey, kRoot, kTokens));
    EXPECT_EQ(identities.find(kKey, kRoot, kTokens), 1);
    EXPECT_EQ(identities.find(kKey, kRoot, kOther), std::nullopt);
    EXPECT_EQ(identities.find(kKey, kKey, kTokens), std::nullopt);
    identities.clear(1);
    EXPECT_EQ(identities.find(kKey, kRoot, kTokens), std::nullopt);
}

TEST(BlockIdentities, OfEqualBlocksOneInUseIsFound) {
    BlockIdentities identities(3, 2);
    EXPECT_TRUE(identities.give(0, kKey, kRoot, kTokens));
    EXPECT_FALSE(identities.give(1, kKey, kRoot, kTokens));
    EXPECT_FALSE(identities.give(2, kKey, kRoot, kTokens));
    identities.set_in_use(0, false);
    identities.set_in_use(1, false);
    EXPECT_EQ(identities.cached(), 2u);
    EXPECT_EQ(identities.find(kKey, kRoot, kTokens), 2);
    EXPECT_EQ(identities.presence(kKey), Presence::kInUse);
    identities.set_in_use(2, false);
    EXPECT_EQ(identities.presence(kKey), Presence::kFree);
    identities.set_in_use(1, true);
    EXPECT_EQ(identities.find(kKey, kRoot, kTokens), 1);
    identities.clear(1);
    EXPECT_TRUE(identities.has_twin(0));
    identities.clear(0);
    EXPECT_EQ(identities.find(kKey, kRoot, kTokens), 2);
    EXPECT_FALSE(identities.has_twin(2));
    const uint32_t references[] = {0, 0, 0};
    const auto sound = identities.audit(references);
    EXPECT_TRUE(sound) << sound.error();
}

TEST(BlockIdentities, EqualBlocksAreNoTwinsOnceAllAreCleared) {
    BlockIdentities identities(2, 2);
    for (const BlockId b : {0, 1}) identities.give(b, kKey, kRoot, kTokens);
    ASSERT_TRUE(identities.has_twin(0));
    EXPECT_EQ(identities.clear_all(), std::vector<BlockId>{0});
    EXPECT_FALSE(identities.has_twin(0));
    EXPECT_TRUE(identities.give(1, kKey, kRoot, kTokens)) << "it is the first of them again";
    EXPECT_FALSE(identities.has_twin(1));
    EXPECT_EQ(identities.find(kKey, kRoot, kTokens), 1);
}

TEST(BlockIdentities, OnlyRecordedChangesArePassedOn) {
    BlockIdentities identities(1, 2);
    identities.give(0, kKey, kRoot, kTokens);
    EXPECT_TRUE(identities.changes().take().empty());
    identities.changes().record(true);
    identities.set_in_use(0, false);
    EXPECT_EQ(identities.clear_all(), std::vector<BlockId>{0});
    EXPECT_EQ(identities.changes().take(), (std::vector<BlockKey>{kKey, kKey}));
    EXPECT_EQ(identities.cached(), 0u);
    EXPECT_TRUE(identities.empty());
}

}  // namespace
}  // namespace patchbay::kv::block_identities_test
