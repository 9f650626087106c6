#include "experiment/follow_ups.hpp"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

namespace patchbay::experiment::follow_ups_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// 0, 1 after it, which continues it, and 2 after that, which does not.
GivenRequests session() {
    std::vector<PlannedRequest> out(3);
    out[1].follows = 0;
    out[1].continues = true;
    out[1].prompt = {7};
    out[2].follows = 1;
    out[2].prompt = {8};
    return GivenRequests(std::move(out));
}

TEST(FollowUps, AreDueOnceWhatTheyFollowIsFinished) {
    const GivenRequests planned = session();
    FollowUps follow_ups(planned);
    EXPECT_TRUE(follow_ups.has_next(1));
    EXPECT_FALSE(follow_ups.has_next(2));
    EXPECT_THAT(follow_ups.take_due(), IsEmpty());
    follow_ups.finished(0);
    EXPECT_THAT(follow_ups.take_due(), ElementsAre(1));
    EXPECT_THAT(follow_ups.take_due(), IsEmpty());
    follow_ups.finished(2);
    EXPECT_THAT(follow_ups.take_due(), IsEmpty());
}

TEST(FollowUps, ThatContinueHaveThePromptAndTheOutputBeforeTheirOwn) {
    const GivenRequests planned = session();
    FollowUps follow_ups(planned);
    follow_ups.keep_prompt(0, {1, 2});
    const PlannedRequest continued = follow_ups.make(1, 0, {5, 6});
    EXPECT_THAT(continued.prompt, ElementsAre(1, 2, 5, 6, 7));
    follow_ups.keep_prompt(1, continued.prompt);
    EXPECT_THAT(follow_ups.make(2, 1, {9}).prompt, ElementsAre(8));
}

TEST(FollowUps, ThatAreDroppedAreNeverDue) {
    const GivenRequests planned = session();
    FollowUps follow_ups(planned);
    follow_ups.finished(0);
    follow_ups.drop_rest();
    EXPECT_THAT(follow_ups.take_due(), IsEmpty());
}

}  // namespace
}  // namespace patchbay::experiment::follow_ups_test
