// A plugin that throws inside a running engine: the step or the run fails with its words, and nothing else does.
#include "engine/engine.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "unit/host/host_fixture.hpp"

namespace patchbay::host::guard_test {
namespace {

using engine::FinishReason;
using ::testing::HasSubstr;

class Arrivals final : public MetricSink { // that a scheduler was notified of
  public:
    void add(const std::string&, const std::string&, const std::string& name, double amount) override {
        if (name == "arrivals") count += amount;
    }
    void set(const std::string&, const std::string&, const std::string&, double) override {}

    double count = 0;
};

class GuardTest : public HostTest {
  protected:
    GuardTest() {
        install("throwers", folder_ / "throwers.so");
        config_.engine.max_num_seqs = 4;
    }
    Result<std::unique_ptr<engine::Engine>> make() {
        registry_ = std::make_unique<Registry>(must(Registry::open({folder_.path()})));
        return engine::Engine::create(config_, *registry_, clock_, &arrivals_);
    }
    // Adds a request and steps until the engine fails or nothing is left; why it failed.
    std::string run(engine::Engine& e) {
        engine::Request r;
        r.prompt = {5, 6, 7};
        r.sampling = engine::testing::greedy(4);
        r.on_output = [this](const engine::RequestOutput& out) {
            finish_ = out.finish;
            stop_reason_ = out.stop_reason;
        };
        must(e.add_request(std::move(r)));
        while (e.has_unfinished()) {
            clock_.advance_ns(1000);
            const auto report = e.step();
            if (!report) return report.error();
            plan_faults_ += report->calls.plan_faults;
            proposer_faults_ += report->calls.proposer_faults;
        }
        return "";
    }

    config::EngineConfig config_ = engine::testing::tiny_model();
    VirtualClock clock_;
    Arrivals arrivals_;
    std::unique_ptr<Registry> registry_;
    FinishReason finish_ = FinishReason::kNone;
    std::string stop_reason_;
    uint32_t plan_faults_ = 0, proposer_faults_ = 0;
};

TEST_F(GuardTest, ASchedulerThatAlwaysThrowsFailsTheRunAfterAFewSteps) {
    config_.scheduler = {"thrower", {}};
    const auto e = must(make());
    EXPECT_EQ(run(*e), "scheduler 'thrower': plan: index 7 of 3 (8 bad plans in a row)");
    EXPECT_EQ(plan_faults_, 7u) << "each earlier step planned nothing and was counted";
    EXPECT_EQ(finish_, FinishReason::kError);
    EXPECT_THAT(stop_reason_, HasSubstr("index 7 of 3")) << "the caller gets the reason";
    EXPECT_FALSE(e->has_unfinished());
}

TEST_F(GuardTest, ASamplerThatThrowsFailsItsStep) {
    config_.sampler = {"thrower", {{"what", "number"}}};
    const auto e = must(make());
    EXPECT_EQ(run(*e), "sampler 'thrower': sample: unknown exception");
    EXPECT_EQ(finish_, FinishReason::kError);
}

TEST_F(GuardTest, AProposerThatThrowsCostsOnlyItsDrafts) {
    config_.proposer = {"thrower", {{"what", "error"}}};
    config_.engine.num_speculative_tokens = 2;
    const auto e = must(make());
    EXPECT_EQ(run(*e), "");
    EXPECT_GT(proposer_faults_, 0u) << "it was never asked";
    EXPECT_EQ(finish_, FinishReason::kLength);
}

TEST_F(GuardTest, AConstructorThatThrowsIsAnEngineThatIsNotMade) {
    config_.scheduler = {"thrower", {{"at", "create"}}};
    EXPECT_EQ(error_of(make()), "scheduler 'thrower': create: index 7 of 3");
}

TEST_F(GuardTest, ANotificationThatThrowsChangesNothing) {
    config_.scheduler = {"thrower", {{"at", "notice"}}};
    const auto e = must(make());
    EXPECT_EQ(run(*e), "");
    EXPECT_EQ(finish_, FinishReason::kLength);
    EXPECT_EQ(plan_faults_, 0u);
    EXPECT_EQ(arrivals_.count, 1);
}

}  // namespace
}  // namespace patchbay::host::guard_test
