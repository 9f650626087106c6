// A model of another shape comes into a running server: streams end with the old one, requests that come meanwhile wait
// and are read for the new one, and where it cannot be had the old one goes on.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/json_file.hpp"
#include "engine/engine_control.hpp"
#include "metrics/scrape.hpp"
#include "serve/admin_client.hpp"
#include "serve/admin_fixture.hpp"
#include "serve/server_fixture.hpp"
#include "serve/temporary_folder.hpp"

namespace patchbay::serve::testing::model_replacement_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The larger demo model with another tokenizer, which knows fewer merges, and a chat template.
class OtherModel {
  public:
    OtherModel() {
        fs::copy(engine::testing::repository("models/demo-target"), path(), fs::copy_options::recursive);
        Json tokenizer = *read_json_file(path() + "/tokenizer.json");
        Json& merges = tokenizer["model"]["merges"];
        merges.erase(merges.begin() + 400, merges.end());
        std::ofstream(path() + "/tokenizer.json") << tokenizer.dump();
        std::ofstream(path() + "/chat_template.jinja") << "{% for m in messages %}[{{ m.content }}]{% endfor %}";
    }
    std::string path() const { return folder_.path() / "other"; }

  private:
    const TemporaryFolder folder_;
};

config::EngineConfig small_engine(uint32_t probation_steps = 2) {
    config::EngineConfig c = Running::demo_model();
    c.engine.max_num_seqs = 4;
    c.swap.probation_steps = probation_steps;
    return c;
}

const host::Registry& all_plugins() { // those that an admin address finds
    static const auto found = find_plugins();
    return *found;
}

config::EngineConfig small_engine_of(const std::string& path) {
    config::EngineConfig c = small_engine();
    c.model.path = path;
    return c;
}

class Replaced : public ::testing::Test {
  protected:
    explicit Replaced(const config::EngineConfig& config = small_engine(), uint32_t max_requests = 4096)
        : server(options(config, max_requests), config, all_plugins()) {}

    AdminAddress address() const { return server.server->admin()->address(); }
    Json status() const { return Json::parse(ask_admin(address(), "GET", "/status", "")->body); }
    // Its answer; on a thread of its own, since it waits for the streams.
    std::future<Json> swap(const std::string& to) const {
        return std::async(std::launch::async, [this, to] {
            const Json body{{"kind", "model"}, {"plugin", to}};
            return Json::parse(ask_admin(address(), "POST", "/swap", body.dump())->body);
        });
    }
    // What a swap that was asked for does once it has loaded the model; empty: it has ended already.
    std::string state_when_loaded(const std::future<Json>& swapped) const {
        while (swapped.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            std::string state;
            const Json pending = status()["swaps"]["pending"];
            for (const Json& swap : pending)
                if (swap["kind"] == "model") state = swap["state"];
            if (state != "" && state != "queued" && state != "preparing") return state;
        }
        return "";
    }
    std::vector<std::string> models() const {
        std::vector<std::string> out;
        const Json list = Json::parse(get(server.port(), "/v1/models").body);
        for (const Json& m : list["data"]) out.push_back(m["root"]);
        return out;
    }
    Json tokens(const Json& body) const { return Json::parse(server.post("/tokenize", body).body)["tokens"]; }
    double sum(const char* name) const { return metrics::Scrape(get(server.port(), "/metrics").body).sum(name); }
    double under_way() const { return sum("patchbay_http_requests_in_flight"); }

    const TemporaryFolder folder;
    const OtherModel other;
    Running server;

  private:
    ServerOptions options(const config::EngineConfig& config, uint32_t max_requests) const {
        ServerOptions out;
        out.max_requests = max_requests;
        AdminAddress at;
        at.socket = folder.path() / "admin.sock";
        out.admin = AdminOptions{at, find_plugins, config};
        return out;
    }
};

Json greedy(const Json& prompt, int max_tokens) {
    return {{"prompt", prompt},   {"temperature", 0}, {"max_tokens", max_tokens},
            {"ignore_eos", true}, {"return_token_ids", true}};
}

class Stream { // of one client, read as it comes
  public:
    Stream(uint16_t port, Json body) : client_(port) {
        body["stream"] = true;
        client_.post("/v1/completions", body.dump());
    }
    void read_head() { EXPECT_EQ(client_.read_head().status, 200); }
    std::vector<int> rest() { return rest_of_ids(client_); }

  private:
    HttpClient client_;
};

TEST_F(Replaced, StreamsEndWithTheOldModelAndThoseThatWaitAreReadForTheNewOne) {
    // So many, of so many texts, that they go on for long after the new model is loaded.
    constexpr int kStreams = 36, kTexts = 6, kWaiting = 5, kLong = 900;
    const auto prompt = [](int i) { return "The king said to child " + std::to_string(i); };
    std::vector<std::vector<int>> before, after;
    for (int i = 0; i < kTexts; ++i)
        before.push_back(server.complete(greedy(prompt(i), kLong))["choices"][0]["token_ids"]);
    const std::vector<int> given_ids = tokens({{"prompt", prompt(0)}});
    {
        Running fresh({}, small_engine_of(other.path()));
        for (int i = 0; i < kWaiting; ++i)
            after.push_back(fresh.complete(greedy(prompt(i), 20))["choices"][0]["token_ids"]);
        after.push_back(fresh.complete(greedy(given_ids, 20))["choices"][0]["token_ids"]);
        EXPECT_NE(after.front(), after.back()) << "both tokenizers are alike";
    }
    std::vector<std::unique_ptr<Stream>> streams, waiting;
    for (int i = 0; i < kStreams; ++i)
        streams.push_back(std::make_unique<Stream>(server.port(), greedy(prompt(i % kTexts), kLong)));
    streams.front()->read_head(); // it runs
    auto swapped = swap(other.path());
    ASSERT_EQ(state_when_loaded(swapped), "draining");
    for (int i = 0; i < kWaiting; ++i)
        waiting.push_back(std::make_unique<Stream>(server.port(), greedy(prompt(i), 20)));
    waiting.push_back(std::make_unique<Stream>(server.port(), greedy(given_ids, 20)));
    for (int i = 1; i < kStreams; ++i) streams[i]->read_head();
    for (int i = 0; i < kStreams; ++i) EXPECT_EQ(streams[i]->rest(), before[i % kTexts]) << i;
    for (size_t i = 0; i < waiting.size(); ++i) {
        waiting[i]->read_head();
        EXPECT_EQ(waiting[i]->rest(), after[i]) << i;
    }
    const Json got = swapped.get();
    EXPECT_EQ(got["outcome"], "committed") << got;
    EXPECT_EQ(got["to"]["plugin"], other.path());
    EXPECT_GT(got["step"], 1);
    EXPECT_GT(got["pause_us"], 0);
    const Json now = status();
    EXPECT_EQ(now["model"]["path"], other.path());
    for (const Json& s : now["slots"]) {
        if (s["kind"] == "model") { EXPECT_EQ(s["plugin"], "llama"); }
    }
    EXPECT_EQ(now["swaps"]["last"].size(), 1u);
    EXPECT_EQ(models(), std::vector<std::string>(2, other.path()));
    EXPECT_EQ(tokens({{"messages", {{{"role", "user"}, {"content", "x"}}}}}), tokens({{"prompt", "[x]"}}));
    EXPECT_EQ(server.pages_in_use_when_idle(), 0u);
    EXPECT_THAT(get(server.port(), "/metrics").body,
                HasSubstr("patchbay_plugin_swaps_total{kind=\"model\",outcome=\"committed\"} 1\n"));
}

TEST_F(Replaced, ThePluginsThatWereSwappedInStay) {
    const auto swapped = [&](const Json& body) {
        return Json::parse(ask_admin(address(), "POST", "/swap", body.dump())->body)["outcome"];
    };
    swapped({{"kind", "scheduler"}, {"plugin", "sjf"}, {"params", {{"ageing", 10}}}}); // stays on probation: it is idle
    EXPECT_EQ(swap(other.path()).get()["outcome"], "committed");
    server.complete(greedy("The king", 5));
    server.pages_in_use_when_idle();
    const Json now = status();
    EXPECT_EQ(now["swaps"]["pending"], Json::array());
    bool committed = false;
    for (const Json& s : now["slots"]) EXPECT_FALSE(s["on_probation"]) << s;
    for (const Json& s : now["swaps"]["last"])
        committed = committed || (s["kind"] == "scheduler" && s["outcome"] == "committed");
    EXPECT_TRUE(committed) << now["swaps"]["last"];
    server.server->engine().call([](engine::Engine& engine) {
        const auto c = engine.control().configuration();
        EXPECT_EQ(c.scheduler.plugin, "sjf");
        EXPECT_EQ(c.scheduler.settings.at("ageing"), "10");
    });
    EXPECT_EQ(swap(engine::testing::repository("models/demo-draft")).get()["outcome"], "committed"); // and back
    EXPECT_EQ(server.complete(greedy("The owl", 30))["choices"][0]["text"], expected_text("The owl", 30));
}

TEST_F(Replaced, OtherWeightsThatAreOnProbationAreCommitted) {
    const std::string same = engine::testing::repository("models/demo-draft");
    EXPECT_EQ(swap(same).get()["outcome"], "on probation"); // it is idle
    EXPECT_EQ(swap(other.path()).get()["outcome"], "committed");
    server.complete(greedy("The king", 5));
    server.pages_in_use_when_idle();
    const Json last = status()["swaps"]["last"];
    ASSERT_EQ(last.size(), 2u) << last;
    EXPECT_EQ(last[0]["to"]["plugin"], other.path());
    EXPECT_EQ(last[1]["to"]["plugin"], same);
    for (const Json& s : last) EXPECT_EQ(s["outcome"], "committed") << s;
    EXPECT_THAT(get(server.port(), "/metrics").body,
                HasSubstr("patchbay_plugin_swaps_total{kind=\"model\",outcome=\"committed\"} 2\n"));
}

// What happens to the slots while the requests of the old engine run to their end holds for the new one, too.
class ReplacedLate : public Replaced {
  protected:
    explicit ReplacedLate(const config::EngineConfig& config = small_engine(1'000'000)) : Replaced(config) {}

    // Fails while the requests of the old engine run to their end.
    static Json faulty() {
        const Json fault{{"fault", "over_budget"}, {"at", 5000}, {"blocks", small_engine().engine.num_blocks}};
        return {{"kind", "scheduler"}, {"plugin", "faulty"}, {"params", fault}};
    }
    Json ask(const char* what, const Json& body) const {
        return Json::parse(ask_admin(address(), "POST", what, body.dump())->body);
    }
    // Some thousand steps, of which most are still to come when it returns: the new model is loaded.
    std::future<Json> replace_while_streaming() {
        for (int i = 0; i < 36; ++i)
            streams_.push_back(std::make_unique<Stream>(server.port(), greedy("The king", 900)));
        streams_.front()->read_head();
        auto swapped = swap(other.path());
        EXPECT_EQ(state_when_loaded(swapped), "draining");
        return swapped;
    }
    config::PluginChoice scheduler() const {
        config::PluginChoice out;
        server.server->engine().call(
            [&](engine::Engine& engine) { out = engine.control().configuration().scheduler; });
        return out;
    }

  private:
    std::vector<std::unique_ptr<Stream>> streams_;
};

TEST_F(ReplacedLate, ARollbackOfMeanwhileHoldsForTheNewOne) {
    const Json answer = ask("/swap", faulty());
    EXPECT_EQ(answer["outcome"], "on probation") << answer;
    auto swapped = replace_while_streaming();
    EXPECT_EQ(scheduler().plugin, "faulty");
    EXPECT_EQ(swapped.get()["outcome"], "committed");
    EXPECT_EQ(server.complete(greedy("The king", 5))["usage"]["completion_tokens"], 5);
    EXPECT_EQ(scheduler().plugin, "fcfs");
}

class ReplacedOfFaulty : public ReplacedLate { // of the plugin that is to fail, with settings with which it does not
  protected:
    ReplacedOfFaulty() : ReplacedLate(config()) {}

  private:
    static config::EngineConfig config() {
        config::EngineConfig out = small_engine(1'000'000);
        out.scheduler = {"faulty", {}};
        return out;
    }
};

TEST_F(ReplacedOfFaulty, ARollbackToOtherSettingsOfThePluginHoldsForTheNewOne) {
    const Json answer = ask("/swap", faulty());
    EXPECT_EQ(answer["outcome"], "on probation") << answer;
    auto swapped = replace_while_streaming();
    EXPECT_EQ(scheduler().settings.at("fault"), "over_budget");
    EXPECT_EQ(swapped.get()["outcome"], "committed");
    EXPECT_EQ(server.complete(greedy("The king", 5))["usage"]["completion_tokens"], 5);
    EXPECT_EQ(scheduler().plugin, "faulty");
    EXPECT_EQ(scheduler().settings.at("fault"), "none");
}

TEST_F(ReplacedLate, AParameterOfMeanwhileHoldsForTheNewOne) {
    EXPECT_EQ(ask("/swap", {{"kind", "scheduler"}, {"plugin", "sjf"}})["outcome"], "on probation");
    auto swapped = replace_while_streaming();
    EXPECT_EQ(ask("/set", {{"kind", "scheduler"}, {"params", {{"ageing", "77"}}}})["params"]["ageing"], "77");
    EXPECT_EQ(swapped.get()["outcome"], "committed");
    EXPECT_EQ(scheduler().settings.at("ageing"), "77");
}

TEST_F(Replaced, WhereTheNewOneCannotBeHadTheOldOneGoesOn) {
    const fs::path broken = folder.path() / "broken";
    fs::create_directories(broken);
    fs::copy(other.path() + "/config.json", broken / "config.json");
    const std::vector<int> expected = server.complete(greedy("The wolf", 60))["choices"][0]["token_ids"];
    Stream stream(server.port(), greedy("The wolf", 60));
    const Json none = swap(broken).get();
    EXPECT_EQ(none["outcome"], "refused") << none;
    std::ofstream(broken / "model.safetensors") << "nothing that could be read";
    const Json got = swap(broken).get();
    EXPECT_EQ(got["outcome"], "refused") << got;
    stream.read_head();
    EXPECT_EQ(stream.rest(), expected);
    EXPECT_EQ(server.complete(greedy("The wolf", 60))["choices"][0]["token_ids"], expected);
    EXPECT_EQ(models(), std::vector<std::string>(2, engine::testing::repository("models/demo-draft")));
}

class ReplacedWithTwoPlaces : public Replaced {
  protected:
    ReplacedWithTwoPlaces() : Replaced(small_engine(), 2) {}
    double turned_away() const { return sum("patchbay_http_rejections_total"); }
};

TEST_F(ReplacedWithTwoPlaces, AClientThatLeavesWhileItWaitsLeavesItsPlace) {
    auto runs = std::make_unique<Stream>(server.port(), long_stream());
    runs->read_head();
    auto swapped = swap(other.path());
    ASSERT_EQ(state_when_loaded(swapped), "draining");
    HttpClient next(server.port());
    {
        const HeldEngine held(server); // so that the request that runs does not end
        HttpClient leaves(server.port());
        leaves.post("/v1/completions", greedy("The owl", 5).dump());
        wait_until("second request", [&] { return under_way() == 2; });
        leaves.reset();
        wait_until("end of it", [&] { return under_way() == 1; });
        next.post("/v1/completions", greedy("The owl", 5).dump());
        wait_until("next request", [&] { return under_way() == 2 || turned_away() > 0; });
    }
    runs.reset();
    EXPECT_EQ(next.read_answer().status, 200);
    EXPECT_EQ(swapped.get()["outcome"], "committed");
}

TEST_F(Replaced, AServerThatEndsMeanwhileAnswersTheRequestsThatWait) {
    std::vector<std::unique_ptr<Stream>> streams;
    for (int i = 0; i < 40; ++i) streams.push_back(std::make_unique<Stream>(server.port(), greedy("The king", 1900)));
    wait_until("streams", [&] { return under_way() == 40; });
    auto swapped = swap(other.path());
    ASSERT_EQ(state_when_loaded(swapped), "draining");
    HttpClient waits(server.port());
    {
        const HeldEngine held(server); // so that no stream ends
        const double streaming = under_way();
        waits.post("/v1/completions", greedy("The owl", 5).dump());
        wait_until("request that waits", [&] { return under_way() == streaming + 1; });
    }
    server.server->stop();
    EXPECT_EQ(waits.read_answer().status, 503);
    const Json got = swapped.get();
    EXPECT_TRUE(got.contains("error")) << got;
}

}  // namespace
}  // namespace patchbay::serve::testing::model_replacement_test
