#include "base/suggest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace patchbay::suggest_test {
namespace {

const std::vector<std::string> kWords = {"fcfs", "priority", "sjf", "static", "max_num_seqs", "max_num_batched_tokens"};

TEST(Suggest, FindsTheNearestWord) {
    EXPECT_EQ(nearest_word("fcsf", kWords), "fcfs"); // two letters swapped are one edit
    EXPECT_EQ(nearest_word("prioritty", kWords), "priority");
    EXPECT_EQ(nearest_word("max_num_seq", kWords), "max_num_seqs");
    EXPECT_EQ(nearest_word("max_batched_tokens", kWords), "max_num_batched_tokens");
}

TEST(Suggest, SaysNothingRatherThanSomethingFarFetched) {
    EXPECT_EQ(nearest_word("roundrobin", kWords), "");
    EXPECT_EQ(nearest_word("x", kWords), "");
    EXPECT_EQ(nearest_word("", kWords), "");
    EXPECT_EQ(nearest_word("fcfs", {}), "");
    EXPECT_EQ(did_you_mean("roundrobin", kWords), "");
}

TEST(Suggest, ReadsAsTheEndOfASentence) { EXPECT_EQ(did_you_mean("sjff", kWords), " (did you mean 'sjf'?)"); }

}  // namespace
}  // namespace patchbay::suggest_test
