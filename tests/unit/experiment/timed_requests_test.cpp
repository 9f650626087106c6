#include "experiment/timed_requests.hpp"

#include <gmock/gmock.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace patchbay::experiment::timed_requests_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

GivenRequests arriving_at(const std::vector<uint64_t>& times) {
    std::vector<PlannedRequest> out(times.size());
    for (size_t i = 0; i < times.size(); ++i) out[i].arrival_ns = times[i];
    return GivenRequests(std::move(out));
}

std::vector<uint32_t> all_by(TimedRequests& timed, uint64_t now_ns) {
    std::vector<uint32_t> out;
    while (const auto i = timed.next(now_ns)) out.push_back(*i);
    return out;
}

constexpr uint64_t kStart = 1000;

TEST(TimedRequests, ComeByTheirTimeAndOneArrivalAhead) {
    const GivenRequests planned = arriving_at({30, 10, 20, 20, 40});
    TimedRequests timed(planned, kStart);
    EXPECT_THAT(all_by(timed, kStart + 10), ElementsAre(1, 2, 3)) << "of those at 20 both";
    EXPECT_THAT(all_by(timed, kStart + 19), IsEmpty()) << "there is one to wait for";
    EXPECT_THAT(all_by(timed, kStart + 20), ElementsAre(0));
    EXPECT_THAT(all_by(timed, kStart + 100), ElementsAre(4));
    EXPECT_THAT(all_by(timed, kStart + 100), IsEmpty());
}

TEST(TimedRequests, ComeAllAtOnceAtTheEndOfTime) {
    const GivenRequests planned = arriving_at({30, 10});
    TimedRequests timed(planned, kStart);
    EXPECT_THAT(all_by(timed, ~uint64_t{0}), ElementsAre(1, 0));
}

TEST(TimedRequests, ThatFollowOthersAreNotAmongThem) {
    std::vector<PlannedRequest> requests(3);
    requests[1].follows = 0;
    const GivenRequests planned(std::move(requests));
    TimedRequests timed(planned, kStart);
    EXPECT_THAT(all_by(timed, kStart), ElementsAre(0, 2));
}

TEST(TimedRequests, ThatAreDroppedDoNotCome) {
    const GivenRequests planned = arriving_at({10, 20, 30});
    TimedRequests timed(planned, kStart);
    EXPECT_EQ(timed.next(kStart), std::optional<uint32_t>(0));
    timed.drop_rest();
    EXPECT_THAT(all_by(timed, kStart + 100), IsEmpty());
}

}  // namespace
}  // namespace patchbay::experiment::timed_requests_test
