#include "experiment/matrix.hpp"

#include <gmock/gmock.h>

#include "experiment/prepared_variants.hpp"

namespace patchbay::experiment::matrix_test {
namespace {

using ::testing::ElementsAre;
using config::Node;

TEST(Factors, MakeAllCombinationsWithTheLastFastest) {
    const auto variants = *expand({{"scheduler", {Node::scalar("fcfs"), Node::scalar("sjf")}},
                                   {"engine.max_num_seqs", {Node::scalar("4"), Node::scalar("8")}}});
    ASSERT_EQ(variants.size(), 4u);
    EXPECT_EQ(variants[1].name, "scheduler=fcfs max_num_seqs=8");
    EXPECT_EQ(variants[2].name, "scheduler=sjf max_num_seqs=4");
    EXPECT_EQ(variants[2].patch.at("scheduler")->text, "sjf");
    EXPECT_EQ(variants[2].patch.at("engine.max_num_seqs")->text, "4");
    EXPECT_THAT(leaf_paths(variants[2].patch), ::testing::UnorderedElementsAre("scheduler", "engine.max_num_seqs"));
}

TEST(Factors, NameAFolderByItsLastPartWhereverItLies) {
    for (const char* folder : {"models/big", "/data/models/big", "../big/"})
        EXPECT_EQ((*expand({{"model", {Node::scalar(folder)}}}))[0].name, "model=big") << folder;
    const auto both = expand({{"model", {Node::scalar("a/big"), Node::scalar("b/big")}}});
    ASSERT_FALSE(both);
    EXPECT_EQ(both.error(), "two variants would be named 'model=big'");
}

TEST(Factors, NameAListByItsValues) {
    Node few = Node::list(), more = Node::list();
    few.items = {Node::scalar("1"), Node::scalar("2")};
    more.items = {Node::scalar("1"), Node::scalar("4")};
    const auto both = *expand({{"engine.cuda_graph_sizes", {few, more}}});
    EXPECT_EQ(both[0].name, "cuda_graph_sizes=[1,2]");
    EXPECT_EQ(both[1].name, "cuda_graph_sizes=[1,4]");
}

TEST(RunOrder, RunsEachVariantOnceARepeatForwardsThenBackwards) {
    const auto order = run_order(4, 6, 9);
    ASSERT_EQ(order.size(), 24u);
    for (uint32_t pair = 0; pair < 6; pair += 2) {
        std::vector<size_t> there, back;
        for (size_t i = 0; i < 4; ++i) {
            EXPECT_EQ(order[pair * 4 + i].repeat, pair);
            there.push_back(order[pair * 4 + i].variant);
            back.push_back(order[pair * 4 + 7 - i].variant);
        }
        EXPECT_EQ(there, back);
        EXPECT_THAT(there, ::testing::UnorderedElementsAre(0, 1, 2, 3));
    }
}

TEST(RunOrder, DependsOnTheSeedOnly) {
    const auto variants_of = [](uint64_t seed) {
        std::vector<size_t> out;
        for (const RunSlot& s : run_order(5, 8, seed)) out.push_back(s.variant);
        return out;
    };
    EXPECT_EQ(variants_of(1), variants_of(1));
    EXPECT_NE(variants_of(1), variants_of(2));
}

std::vector<std::string> undeclared(const FlatTree& a, const FlatTree& b, const std::vector<std::string>& declared) {
    std::vector<std::string> out;
    for (const ConfigDifference& d : differences(a, b, explained_paths(declared)))
        if (!d.declared) out.push_back(d.path);
    return out;
}

TEST(Differences, AtOrBelowADeclaredPathAreDeclared) {
    const FlatTree a{{"scheduler.plugin", "fcfs"}, {"engine.max_num_seqs", "4"}},
        b{{"scheduler.plugin", "sjf"}, {"scheduler.ageing", "1"}, {"engine.max_num_seqs", "4"}};
    EXPECT_THAT(undeclared(a, b, {"scheduler"}), ElementsAre());
    EXPECT_THAT(undeclared(a, b, {"scheduler.plugin"}), ElementsAre()); // another plugin brings its own keys
    EXPECT_THAT(undeclared(a, b, {"engine.max_num_seqs"}), ElementsAre("scheduler.ageing", "scheduler.plugin"));
    EXPECT_EQ(differences(a, b, {}).size(), 2u);
    EXPECT_THAT(undeclared({{"engine.x", "1"}}, {{"engine.x", "2"}}, {"engine.xy"}), ElementsAre("engine.x"));
}

TEST(Differences, OfAutomaticChoicesAreDeclaredWhereTheyFollowFromADeclaredKey) {
    const FlatTree a{{"automatic.num_blocks", "100"}, {"automatic.threads", "2"}},
        b{{"automatic.num_blocks", "50"}, {"automatic.threads", "4"}};
    EXPECT_THAT(undeclared(a, b, {"engine.block_size"}), ElementsAre("automatic.threads"));
    EXPECT_THAT(undeclared(a, b, {"engine.threads"}), ElementsAre("automatic.num_blocks"));
    EXPECT_THAT(undeclared(a, b, {"scheduler"}), ElementsAre("automatic.num_blocks", "automatic.threads"));
    EXPECT_THAT(undeclared({{"plugins.sampler.sha256", "1"}}, {{"plugins.sampler.sha256", "2"}}, {"scheduler"}),
                ElementsAre("plugins.sampler.sha256"));
    EXPECT_THAT(
        undeclared({{"plugins.scheduler.sha256", "1"}}, {{"plugins.scheduler.sha256", "2"}}, {"scheduler.plugin"}),
        ElementsAre());
}

}  // namespace
}  // namespace patchbay::experiment::matrix_test
