// Which of several faults of a pass is its cause.
#include "runner/pass_faults.hpp"

#include <gtest/gtest.h>

namespace patchbay::runner::pass_faults_test {
namespace {

TEST(PassFaults, NameTheCauseBeforeWhatFollowsFromIt) {
    const Result<> done = fail("the model"), ended = fail("the device");
    PassFaults faults;
    EXPECT_TRUE(faults.check("llama", 7, {}, {}));
    faults.cost = "attention does not say";
    EXPECT_EQ(faults.check("llama", 7, {}, {}).error(), "attention does not say");
    EXPECT_EQ(faults.check("llama", 7, {}, ended).error(), "the device");
    EXPECT_EQ(faults.check("llama", 7, done, ended).error(), "the model");
    EXPECT_FALSE(faults.any_of_model());
    faults.layer = "attends in layer 2 of 2";
    EXPECT_EQ(faults.check("llama", 7, done, ended).error(), "model 'llama' attends in layer 2 of 2");
    EXPECT_TRUE(faults.any_of_model());
    faults.out_of_memory = true;
    const Result<> full = faults.check("llama", 7, done, ended);
    EXPECT_EQ(full.code(), StatusCode::kExhausted);
    EXPECT_EQ(full.error(), "the device has no memory left for the step's workspace of 7 tokens");
}

}  // namespace
}  // namespace patchbay::runner::pass_faults_test
