#include "serve/server_fixture.hpp"

#include <map>
#include <stdexcept>
#include <vector>

#include "metrics/scrape.hpp"

namespace patchbay::serve::testing {

config::EngineConfig Running::demo_model() {
    config::EngineConfig c;
    c.model.path = engine::testing::repository("models/demo-draft");
    c.engine.threads = 1;
    c.engine.num_blocks = 2048;
    return c;
}

Running::Running(ServerOptions options, config::EngineConfig config, const host::Registry& registry) {
    options.make_engine = [this](const config::EngineConfig& c, const host::Registry& plugins) -> Result<NewEngine> {
        PB_TRY(auto made, engine::Engine::create(c, plugins, clock));
        PB_TRY(auto of_it, served_model(c, *made, {.served = {"demo", "alias"}, .chat_template_file = {}}));
        return NewEngine{std::move(made), std::move(of_it)};
    };
    auto engine = engine::Engine::create(config, registry, clock);
    if (!engine) throw std::runtime_error(engine.error());
    auto model = served_model(config, **engine, {.served = {"demo", "alias"}, .chat_template_file = {}});
    if (!model) throw std::runtime_error(model.error());
    auto parsed = text::ChatTemplate::parse(kTemplate, "template");
    if (!parsed) throw std::runtime_error(parsed.error());
    model->chat_template = *parsed;
    options.http.port = 0;
    options.version = "1.2.3";
    auto started = Server::start(options, *std::move(engine), *std::move(model), metrics);
    if (!started) throw std::runtime_error(started.error());
    server = *std::move(started);
}

Json Running::complete(Json body) const {
    const Answer answer = post("/v1/completions", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.status == 200 ? Json::parse(answer.body) : Json();
}

uint64_t Running::finished() const {
    const metrics::Scrape all(get(port(), "/metrics").body);
    return static_cast<uint64_t>(all.sum("patchbay_requests_finished_total"));
}

void Running::wait_until_finished(uint64_t requests) const {
    while (finished() < requests)
        if (server->engine().status().has_ended()) throw std::runtime_error("the engine has stopped");
}

uint32_t Running::pages_in_use_when_idle() const {
    uint32_t pages = 0;
    bool idle = false;
    const auto look = [&](engine::Engine& engine) {
        idle = !engine.has_unfinished();
        const engine::View view = engine.view();
        pages = view.total_pages - view.free_pages; // cached ones are free
    };
    while (!idle) // each call waits for a step to end
        if (!server->engine().call(look)) throw std::runtime_error("the engine has stopped");
    server->engine().call([](engine::Engine&) {}); // and for the one that reports what was aborted last
    return pages;
}

void Running::wait_until_closed() const {
    wait_until("end of the connections", [this] { return server->http().connections() == 0; });
}

Running& shared() {
    static Running all;
    return all;
}

void wait_until(const std::string& what, const std::function<bool()>& holds) {
    const RealClock clock;
    const uint64_t limit_ns = clock.now_ns() + 60'000'000'000;
    while (!holds()) {
        if (clock.now_ns() > limit_ns) throw std::runtime_error("no " + what + " within a minute");
        std::this_thread::yield();
    }
}

HeldEngine::HeldEngine(const Running& running)
    : thread_([this, &engine = running.server->engine()] {
          const auto hold = [this](engine::Engine&) {
              held_ = true;
              held_.notify_all();
              released_.wait(false);
          };
          if (engine.call(hold)) return;
          held_ = true; // it has stopped
          held_.notify_all();
      }) {
    held_.wait(false);
}

HeldEngine::~HeldEngine() {
    released_ = true;
    released_.notify_all();
    thread_.join();
}

Json long_stream() {
    return {{"prompt", std::vector<std::string>(kLongPrompts, "The king")},
            {"temperature", 0}, {"max_tokens", 1500}, {"ignore_eos", true}, {"stream", true}};
}

std::string expected_text(const std::string& prompt, uint32_t max_tokens) {
    static engine::testing::Harness plain(Running::demo_model());
    engine::SamplingParams greedy;
    greedy.temperature = 0;
    greedy.max_tokens = max_tokens;
    return plain.run(plain.add(plain.engine->tokenizer()->encode(prompt), greedy)).text;
}

std::vector<int> rest_of_ids(HttpClient& client) {
    std::vector<int> ids;
    while (const auto event = client.read_event()) {
        if (*event == "[DONE]") continue;
        const Json chunk = Json::parse(*event);
        for (const Json& id : chunk["choices"][0]["token_ids"]) ids.push_back(id);
    }
    return ids;
}

}  // namespace patchbay::serve::testing
