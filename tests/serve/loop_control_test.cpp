// Live control of an engine whose loop is not a server's: of `generate`, and of the runs of experiments.
#include "serve/loop_control.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "ends.hpp"
#include "engine/metrics/engine_metrics.hpp"
#include "paths.hpp"
#include "serve/admin_client.hpp"
#include "serve/temporary_folder.hpp"
#include "service/run_to_end.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::serve::testing::loop_control_test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

config::EngineConfig demo() {
    config::EngineConfig c;
    c.model.path = engine::testing::repository("models/demo-draft");
    c.engine.threads = 1;
    c.engine.num_blocks = 512;
    c.engine.max_num_seqs = 4;
    c.swap.probation_steps = 1;
    return c;
}

// An engine that always has eight requests, on a thread of its own, until end().
class Loop {
  public:
    Loop() {
        auto made = engine::Engine::create(demo(), engine::testing::registry(), clock_);
        if (!made) throw std::runtime_error(made.error());
        engine_ = *std::move(made);
        engine_metrics_.emplace(metrics_, engine_->facts(), "1.2.3");
        engine_->observe(*engine_metrics_);
        AdminAddress address;
        address.socket = folder_.path() / "admin.sock";
        const auto find = [] { return host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"}); };
        auto started = LoopControl::start(
            {AdminOptions{address, find, demo()}, "generate", "1.2.3", [this] { drained_ = true; }}, *engine_,
            metrics_);
        if (!started) throw std::runtime_error(started.error());
        control_ = *std::move(started);
        thread_ = std::thread([this] { run(); });
    }
    ~Loop() { end(); }

    void end() {
        ending_ = true;
        if (thread_.joinable()) thread_.join();
        control_->end();
    }
    Result<HttpResponse> ask(const std::string& method, const std::string& path, const std::string& body = {}) const {
        return ask_admin(control_->address(), method, path, body);
    }
    Json json(const std::string& method, const std::string& path, const Json& body = {}) const {
        const auto answer = ask(method, path, body.is_null() ? "" : body.dump());
        if (!answer) throw std::runtime_error(answer.error());
        return Json::parse(answer->body);
    }
    bool drained() const { return drained_; }
    size_t finished() const { return finished_; }
    std::vector<std::string> changes() const { return control_->changes(); }
    std::vector<std::vector<engine::TokenId>> outputs; // after end()

  private:
    void add(size_t which) {
        engine::Request request;
        request.prompt = engine::testing::random_prompt(which % 8, 12);
        request.sampling = engine::testing::greedy(40);
        request.arrival_ns = clock_.now_ns();
        request.on_output = [this, which](const engine::RequestOutput& out) {
            engine_metrics_->on_output(out);
            outputs.resize(std::max(outputs.size(), which + 1));
            outputs[which].insert(outputs[which].end(), out.tokens.begin(), out.tokens.end());
            if (out.finish == engine::FinishReason::kNone) return;
            open_ -= 1;
            finished_ += 1;
        };
        const auto id = engine_->add_request(std::move(request));
        EXPECT_TRUE(id);
        open_ += 1;
    }
    void run() {
        size_t next = 0;
        const auto go_on = [&] {
            control_->between_steps();
            while (!ending_ && open_ < 8) add(next++);
            return true;
        };
        EXPECT_TRUE(service::run_to_end(*engine_, {.go_on = go_on, .on_step = {}}));
    }

    RealClock clock_;
    const TemporaryFolder folder_;
    metrics::Metrics metrics_;
    std::unique_ptr<engine::Engine> engine_;
    std::optional<engine::EngineMetrics> engine_metrics_;
    std::unique_ptr<LoopControl> control_;
    std::atomic<bool> ending_ = false, drained_ = false;
    std::atomic<size_t> finished_ = 0;
    size_t open_ = 0; // the loop's
    std::thread thread_;
};

TEST(LoopControl, SaysWhatTheEngineIsAndDoes) {
    Loop loop;
    Json status;
    const Json full{{"running", 4}, {"waiting", 4}, {"inbox", 0}}; // in most of its steps, though not in all
    do status = loop.json("GET", "/status");
    while (status["queues"] != full);
    EXPECT_EQ(status["state"], "running");
    EXPECT_EQ(status["task"], "generate");
    EXPECT_EQ(status["model"]["name"], "demo-draft");
    EXPECT_GT(status["pages"]["used"], 0);
    const auto metrics = loop.ask("GET", "/metrics");
    ASSERT_TRUE(metrics);
    EXPECT_THAT(metrics->body, HasSubstr("patchbay_steps_total"));
    EXPECT_THAT(metrics->body, HasSubstr("patchbay_plugin_info{"));
    EXPECT_FALSE(loop.drained());
    EXPECT_EQ(loop.json("POST", "/drain")["state"], "draining");
    EXPECT_TRUE(loop.drained());
}

TEST(LoopControl, SwapsAndSetsBetweenStepsAndChangesNoToken) {
    Loop loop;
    Json done;
    do done = loop.json("POST", "/swap", {{"kind", "scheduler"}, {"plugin", "sjf"}});
    while (done["outcome"] == "on probation" || done["outcome"] == "posted"); // it was idle just then
    EXPECT_EQ(done["outcome"], "committed") << done;
    EXPECT_EQ(loop.json("POST", "/set", {{"kind", "scheduler"}, {"params", {{"ageing", "20"}}}})["params"]["ageing"],
              "20");
    EXPECT_EQ(loop.json("POST", "/swap", {{"kind", "scheduler"}, {"plugin", "no-such"}})["outcome"], "refused");
    for (const size_t before = loop.finished(); loop.finished() < before + 16;) std::this_thread::yield();
    EXPECT_THAT(loop.changes(), AllOf(Contains("swap scheduler sjf"), Contains("set scheduler ageing=20"),
                                      Not(Contains(HasSubstr("no-such")))));
    loop.end();
    engine::testing::Harness plain(demo());
    for (size_t i = 0; i < loop.outputs.size(); ++i) {
        const auto id = plain.add(engine::testing::random_prompt(i % 8, 12), engine::testing::greedy(40));
        ASSERT_EQ(loop.outputs[i], plain.run(id).tokens) << i;
    }
}

TEST(LoopControl, AnswersWhatIsAskedWhenTheLoopHasEnded) {
    Loop loop;
    const Json first = loop.json("GET", "/status");
    loop.end();
    const auto after = loop.ask("GET", "/status");
    ASSERT_FALSE(after);
    EXPECT_THAT(after.error(), HasSubstr("no engine listens on"));
}

void end_while_clients_ask() {
    Loop loop;
    std::atomic<int> asked = 0;
    std::thread setter([&] {
        for (bool answered = true; answered; ++asked)
            answered =
                static_cast<bool>(loop.ask("POST", "/set", R"({"kind": "scheduler", "params": {"none": "1"}})"));
    });
    std::thread swapper([&] {
        while (loop.ask("POST", "/swap", R"({"kind": "sampler", "plugin": "standard"})")) asked += 1;
    });
    while (asked < 2) std::this_thread::yield();
    loop.end();
    setter.join();
    swapper.join();
}

// What comes in the middle of the end is answered, and waits for no step that never comes.
TEST(LoopControl, LetsNoClientWaitAtTheEnd) {
    for (int round = 0; round < 20; ++round)
        ASSERT_TRUE(ends(end_while_clients_ask)) << "a client waits on, in round " << round;
}

}  // namespace
}  // namespace patchbay::serve::testing::loop_control_test
