// What operators ask, of an engine that a test plays.
#include "serve/operator_routes.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>

namespace patchbay::serve::operator_routes_test {
namespace {

using ::testing::HasSubstr;
using service::ServiceState;

class PlayedEngine final : public service::LiveEngine {
  public:
    service::ServiceStatus now;

    service::ServiceStatus status() const override { return now; }
    bool call(const std::function<void(engine::Engine&)>&) override { return false; }
    std::vector<std::shared_ptr<host::Swap>> swap_together(std::vector<engine::SwapRequest>) override { return {}; }
};

class Asked final : public Exchange { // an exchange that keeps its answer
  public:
    explicit Asked(std::string path) : request_{.method = "GET", .path = std::move(path), .headers = {}, .body = {}} {}
    HttpResponse answer;

    const HttpRequest& request() const override { return request_; }
    void respond(HttpResponse response) override { answer = std::move(response); }
    void begin_stream(HttpResponse) override {}
    void write(std::string_view) override {}
    void end_stream() override {}
    bool busy() const override { return false; }
    void set_callbacks(std::function<void()>, std::function<void()>) override {}
    void post(std::function<void()> f) override { f(); }
    void offload(std::function<void()> f) override { f(); }

  private:
    const HttpRequest request_;
};

struct Bench {
    Bench() {
        const auto text = [] { return HttpResponse{200, "m 1\n"}; };
        routes.add(operator_routes({engine, admission, routes, text, "1.2.3"}));
    }
    HttpResponse get(const std::string& path) const {
        const auto asked = std::make_shared<Asked>(path);
        routes.handle(asked);
        return asked->answer;
    }

    metrics::Metrics all;
    ServeMetrics metrics{all};
    PlayedEngine engine;
    Admission admission{8, {}, [] { return uint64_t{0}; }};
    Routes routes{{"a key"}, metrics};
};

TEST(OperatorRoutes, NeedNoKey) {
    const Bench b;
    for (const char* path : {"/health", "/ready", "/version", "/metrics", "/dashboard"})
        EXPECT_EQ(b.get(path).status, 200u) << path;
    EXPECT_EQ(b.get("/version").body, R"({"version":"1.2.3"})");
    EXPECT_EQ(b.get("/metrics").body, "m 1\n");
    EXPECT_THAT(b.get("/dashboard").body, HasSubstr("<html"));
}

TEST(OperatorRoutes, AreHealthyUntilTheEngineFails) {
    Bench b;
    for (const ServiceState state : {ServiceState::kRunning, ServiceState::kDraining, ServiceState::kStopped}) {
        b.engine.now.state = state;
        EXPECT_EQ(b.get("/health").status, 200u) << service::name_of(state);
    }
    b.engine.now.state = ServiceState::kFailed;
    b.engine.now.reason = "no memory";
    const HttpResponse failed = b.get("/health");
    EXPECT_EQ(failed.status, 503u);
    EXPECT_THAT(failed.body, HasSubstr("the engine has failed: no memory"));
}

TEST(OperatorRoutes, AreReadyWhileRequestsAreTaken) {
    Bench b;
    EXPECT_EQ(b.get("/ready").status, 200u);
    for (const ServiceState state : {ServiceState::kDraining, ServiceState::kStopped, ServiceState::kFailed}) {
        b.engine.now.state = state;
        const HttpResponse answer = b.get("/ready");
        EXPECT_EQ(answer.status, 503u);
        EXPECT_THAT(answer.body, HasSubstr("the engine is " + std::string(service::name_of(state))));
    }
    b.engine.now.state = ServiceState::kRunning;
    b.admission.close();
    const HttpResponse draining = b.get("/ready");
    EXPECT_EQ(draining.status, 503u) << "the engine runs, and the server takes nothing more";
    EXPECT_THAT(draining.body, HasSubstr("the engine is draining"));
}

}  // namespace
}  // namespace patchbay::serve::operator_routes_test
