// Who is let in: one limit after the other, each with its reason.
#include "serve/admission.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace patchbay::serve::admission_test {
namespace {

struct Bench {
    explicit Bench(uint32_t max_requests, KeyLimitOptions limits = {})
        : admission(max_requests, limits, [this] { return now_ns; }) {}
    uint64_t now_ns = 1'000'000'000;
    Admission admission;
};

TEST(Admission, LetsSoManyInAtOnce) {
    Bench b(2);
    auto first = b.admission.admit(0), second = b.admission.admit(1);
    EXPECT_TRUE(first.permit && second.permit);
    const auto third = b.admission.admit(2);
    EXPECT_FALSE(third.permit);
    EXPECT_STREQ(third.reason, "busy");
    EXPECT_EQ(third.why.code, StatusCode::kExhausted);
    EXPECT_EQ(third.why.text, "2 requests are under way, no more fit now");
    first.permit.reset();
    EXPECT_TRUE(b.admission.admit(2).permit) << "and what was refused holds nothing";
}

TEST(Admission, OfAKeyThatIsAtItsLimitSaysWhenToComeAgain) {
    Bench b(8, {.requests_per_minute = 1});
    EXPECT_TRUE(b.admission.admit(0).permit);
    const auto refused = b.admission.admit(0);
    EXPECT_FALSE(refused.permit);
    EXPECT_STREQ(refused.reason, "key_limit");
    EXPECT_EQ(refused.retry_after_s, 60u);
    EXPECT_TRUE(b.admission.admit(1).permit) << "another key";
}

TEST(Admission, ThatWasRefusedAsBusyLeavesTheKeyItsRequestsAtOnce) {
    Bench b(1, {.max_requests = 2});
    auto other = b.admission.admit(1);
    for (int i = 0; i < 5; ++i) EXPECT_STREQ(b.admission.admit(0).reason, "busy");
    other.permit.reset();
    EXPECT_TRUE(b.admission.admit(0).permit);
}

TEST(Admission, ThatWasRefusedAsBusyLeavesTheKeyItsAllowance) {
    Bench b(1, {.requests_per_minute = 1});
    auto other = b.admission.admit(1);
    for (int i = 0; i < 5; ++i) EXPECT_STREQ(b.admission.admit(0).reason, "busy");
    other.permit.reset();
    EXPECT_TRUE(b.admission.admit(0).permit);
    EXPECT_STREQ(b.admission.admit(0).reason, "key_limit");
    EXPECT_TRUE(b.admission.admit(2).permit) << "and what its key refused holds nothing";
}

TEST(Admission, IsClosedOnceAndForAll) {
    Bench b(2);
    const auto before = b.admission.admit(0);
    EXPECT_FALSE(b.admission.is_closed());
    EXPECT_TRUE(b.admission.close());
    EXPECT_FALSE(b.admission.close()) << "it was closed before";
    EXPECT_TRUE(b.admission.is_closed());
    const auto after = b.admission.admit(0);
    EXPECT_FALSE(after.permit);
    EXPECT_STREQ(after.reason, "draining");
    EXPECT_EQ(after.why.code, StatusCode::kUnavailable);
    EXPECT_TRUE(before.permit);
}

}  // namespace
}  // namespace patchbay::serve::admission_test
