// The page of GET /dashboard as it is sent; dashboard_page.py has a browser show it.
#include <regex>

#include "metrics/catalogue.hpp"
#include "serve/dashboard.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::dashboard_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Dashboard, IsSentWithoutAKeyAndMayLoadNothingElse) {
    ServerOptions options;
    options.api_keys = {"secret"};
    const Running server(options);
    const Answer page = get(server.port(), "/dashboard");
    EXPECT_EQ(page.status, 200);
    EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
    EXPECT_THAT(page.headers.at("content-security-policy"), StartsWith("default-src 'none';"));
    EXPECT_THAT(page.body, StartsWith("<!doctype html>"));
    EXPECT_THAT(page.body, HasSubstr("</html>"));
    EXPECT_THAT(page.body, Not(HasSubstr("://"))) << "it has no other address";
}

TEST(Dashboard, DrawsOnlyMetricsThatThereAre) {
    const std::string& page = dashboard_html();
    const std::regex name("P \\+ \"([a-z_]+?)(_sum)?\""); // _sum: of a histogram
    size_t count = 0;
    for (std::sregex_iterator at(page.begin(), page.end(), name), end; at != end; ++at, ++count)
        EXPECT_THAT(metrics::catalogue_yaml(), HasSubstr("  patchbay_" + (*at)[1].str() + ":"));
    EXPECT_GT(count, 20u);
}

TEST(Dashboard, OfTheAdminAddressIsOpenAndItsMetricsNeedTheToken) {
    ServerOptions options;
    const auto plugins = [] { return host::Registry::open({}); };
    options.admin = AdminOptions{{.socket = {}, .host = "127.0.0.1", .port = 0, .token = "secret"}, plugins,
                                 Running::demo_model()};
    const Running server(options);
    const uint16_t port = server.server->admin()->address().port;
    EXPECT_EQ(get(port, "/dashboard").status, 200);
    EXPECT_EQ(get(port, "/metrics").status, 401);
    const Answer metrics = get(port, "/metrics", "Authorization: Bearer secret\r\n");
    EXPECT_EQ(metrics.status, 200);
    EXPECT_THAT(metrics.body, HasSubstr("patchbay_requests_running"));
}

}  // namespace
}  // namespace patchbay::serve::testing::dashboard_test
