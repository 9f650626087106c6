#include "base/line_fit.hpp"

#include <gtest/gtest.h>

namespace patchbay::line_fit_test {
namespace {

TEST(LineFit, WithEqualSharesIsTheLeastSquaresFit) {
    LineFit fit;
    const double x[] = {0, 1, 2, 4}, y[] = {1, 2, 2, 5};
    for (int i = 0; i < 4; ++i) fit.add(x[i], y[i], 1.0 / (i + 1));
    EXPECT_DOUBLE_EQ(fit.mean_x(), 1.75);
    EXPECT_DOUBLE_EQ(fit.mean_y(), 2.5);
    EXPECT_NEAR(fit.variance(), 8.75 / 4, 1e-12);
    EXPECT_NEAR(fit.slope(), 8.5 / 8.75, 1e-12);
}

TEST(LineFit, WithALargerShareFollowsLaterPoints) {
    LineFit equal, later;
    for (int i = 0; i < 40; ++i) {
        const double x = i % 2, y = i < 20 ? x : 3 * x;
        equal.add(x, y, 1.0 / (i + 1));
        later.add(x, y, i == 0 ? 1 : 0.5);
    }
    EXPECT_NEAR(equal.slope(), 2, 1e-12);
    EXPECT_NEAR(later.slope(), 3, 1e-3);
}

}  // namespace
}  // namespace patchbay::line_fit_test
