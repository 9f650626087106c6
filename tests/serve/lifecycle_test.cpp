// Keys, draining, stopping, and an engine that fails.
#include <set>
#include <thread>

#include "metrics/scrape.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::lifecycle_test {
namespace {

using ::testing::HasSubstr;

const Json kLong{
    {"prompt", "The king"}, {"temperature", 0}, {"max_tokens", 200}, {"ignore_eos", true}, {"stream", true}};

TEST(Keys, AreNeededForAllButWhatOperatorsAsk) {
    ServerOptions options;
    options.api_keys = {"one", "second-key"};
    const Running server(options);
    const Json body{{"prompt", "a"}, {"max_tokens", 1}};
    for (const char* header : {"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer on\r\n",
                               "Authorization: one\r\n", "Authorization: Bearer \r\n"}) {
        const Answer answer = server.post("/v1/completions", body, header);
        EXPECT_EQ(answer.status, 401) << header;
        EXPECT_EQ(answer.headers.at("www-authenticate"), "Bearer");
    }
    EXPECT_EQ(server.post("/v1/completions", body, "Authorization: Bearer one\r\n").status, 200);
    EXPECT_EQ(server.post("/v1/completions", body, "authorization: bearer second-key\r\n").status, 200);
    EXPECT_EQ(get(server.port(), "/v1/models").status, 401);
    for (const char* path : {"/health", "/ready", "/version", "/metrics"})
        EXPECT_EQ(get(server.port(), path).status, 200);
}

TEST(Keys, AreAskedForBeforeABodyIsRead) {
    ServerOptions options;
    options.api_keys = {"one"};
    const Running server(options);
    const struct {
        const char *line, *key;
        int status;
    } cases[] = {{"POST /v1/completions", "two", 401},
                 {"POST /no/such", "one", 404},
                 {"PUT /v1/completions", "one", 405}};
    for (const auto& c : cases) {
        HttpClient client(server.port());
        client.send(std::string(c.line) + " HTTP/1.1\r\nAuthorization: Bearer " + c.key +
                    "\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n{"); // no more comes
        const Answer answer = client.read_answer();
        EXPECT_EQ(answer.status, c.status) << c.line;
        EXPECT_EQ(answer.headers.at("connection"), "close");
        EXPECT_EQ(client.read_rest(), "");
    }
    EXPECT_THAT(get(server.port(), "/metrics").body,
                HasSubstr("patchbay_http_requests_total{route=\"/v1/completions\",status=\"401\"} 1"));
}

TEST(Metrics, BearTheNamesOfVllmWhereThatIsAsked) {
    ServerOptions options;
    options.vllm_metrics = true;
    const Running server(options);
    for (int i = 0; i < 2; ++i)
        server.complete({{"prompt", "Once upon a time"}, {"temperature", 0}, {"max_tokens", 5}, {"ignore_eos", true}});
    server.pages_in_use_when_idle(); // the last step is counted
    const std::string got = get(server.port(), "/metrics").body;
    const Json tokens = Json::parse(server.post("/tokenize", {{"prompt", "Once upon a time"}}).body);
    const auto prompt = tokens["count"].get<int>();
    const std::string labels = "{engine=\"0\",model_name=\"demo\"";
    for (const std::string& line : std::initializer_list<std::string>{
             "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running" + labels + "} 0\n",
             "vllm:num_requests_waiting" + labels + "} 0\n",
             "# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total" + labels + "} " +
                 std::to_string(2 * prompt) + "\n",
             "vllm:generation_tokens_total" + labels + "} 10\n",
             "vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"demo\"} 2\n",
             "vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",model_name=\"demo\",position=\"0\"} 0\n",
             "vllm:request_generation_tokens_bucket" + labels + ",le=\"5\"} 2\n",
             "vllm:request_generation_tokens_bucket" + labels + ",le=\"2\"} 0\n",
             "vllm:request_params_max_tokens_count" + labels + "} 2\n",
             "vllm:inter_token_latency_seconds_count" + labels + "} 8\n",
             "vllm:kv_cache_usage_perc" + labels + "} 0\n",
         })
        EXPECT_THAT(got, HasSubstr(line));
    EXPECT_EQ(get(shared().port(), "/metrics").body.find("vllm:"), std::string::npos);
}

struct VllmName {
    const char *name, *type, *label; // label: beside model_name and engine; empty: none
};

// vLLM's own dashboard and the clients that read its /metrics need every one of these as it is.
TEST(Metrics, OfVllmAllHaveTheirTypesAndLabels) {
    ServerOptions options;
    options.vllm_metrics = true;
    const Running server(options);
    server.complete({{"prompt", "Once upon a time"}, {"max_tokens", 5}});
    server.pages_in_use_when_idle();
    const std::string got = get(server.port(), "/metrics").body;
    const VllmName names[] = {
        {"num_requests_running", "gauge", ""},
        {"num_requests_waiting", "gauge", ""},
        {"kv_cache_usage_perc", "gauge", ""},
        {"prefix_cache_queries_total", "counter", ""},
        {"prefix_cache_hits_total", "counter", ""},
        {"num_preemptions_total", "counter", ""},
        {"prompt_tokens_total", "counter", ""},
        {"generation_tokens_total", "counter", ""},
        {"request_success_total", "counter", "finished_reason"},
        {"spec_decode_num_drafts_total", "counter", ""},
        {"spec_decode_num_draft_tokens_total", "counter", ""},
        {"spec_decode_num_accepted_tokens_total", "counter", ""},
        {"spec_decode_num_accepted_tokens_per_pos_total", "counter", "position"},
        {"time_to_first_token_seconds", "histogram", ""},
        {"inter_token_latency_seconds", "histogram", ""},
        {"request_time_per_output_token_seconds", "histogram", ""},
        {"e2e_request_latency_seconds", "histogram", ""},
        {"request_queue_time_seconds", "histogram", ""},
        {"request_inference_time_seconds", "histogram", ""},
        {"request_prefill_time_seconds", "histogram", ""},
        {"request_decode_time_seconds", "histogram", ""},
        {"iteration_tokens_total", "histogram", ""},
        {"request_prompt_tokens", "histogram", ""},
        {"request_generation_tokens", "histogram", ""},
        {"request_params_n", "histogram", ""},
        {"request_params_max_tokens", "histogram", ""},
        {"cache_config_info", "gauge", "block_size"},
    };
    const metrics::Scrape scrape(got);
    for (const VllmName& n : names) {
        const std::string name = std::string("vllm:") + n.name;
        EXPECT_THAT(got, HasSubstr("# TYPE " + name + " " + n.type + "\n"));
        const bool histogram = n.type == std::string("histogram");
        const auto& series = scrape.series(name + (histogram ? "_bucket" : ""));
        ASSERT_FALSE(series.empty()) << name;
        std::set<std::string> wanted = {"engine"}, labels;
        if (histogram) wanted.insert("le");
        if (*n.label) wanted.insert(n.label);
        if (n.name == std::string("cache_config_info")) // has no model_name
            wanted.insert({"cache_dtype", "enable_prefix_caching", "num_gpu_blocks"});
        else wanted.insert("model_name");
        for (const auto& [label, value] : series.front().labels) labels.insert(label);
        EXPECT_EQ(labels, wanted) << name;
    }
    std::set<std::string> reasons;
    for (const metrics::ScrapedSeries& s : scrape.series("vllm:request_success_total"))
        reasons.insert(s.labels.at("finished_reason"));
    EXPECT_EQ(reasons, (std::set<std::string>{"stop", "length", "abort", "error", "repetition"}));
}

// An output that ends because it repeats itself has a reason of its own, which is counted as the others are.
TEST(Metrics, OfVllmCountOutputsThatRepeatThemselves) {
    ServerOptions options;
    options.vllm_metrics = true;
    const Running server(options);
    const Json choice = server.complete({{"prompt", "Once upon a time"},
                                         {"max_tokens", 200},
                                         {"allowed_token_ids", {20}},
                                         {"ignore_eos", true},
                                         {"repetition_detection", {{"max_pattern_size", 4}}}})["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "repetition");
    EXPECT_EQ(choice["stop_reason"], "repetition_detected");
    server.pages_in_use_when_idle();
    EXPECT_THAT(get(server.port(), "/metrics").body,
                HasSubstr("finished_reason=\"repetition\",model_name=\"demo\"} 1\n"));
}

TEST(Draining, EndsWhatIsUnderWayAndTakesNothingMore) {
    const Running server;
    HttpClient streaming(server.port()), other(server.port());
    auto held = std::make_unique<HeldEngine>(server); // so that the request lasts
    streaming.post("/v1/completions", kLong.dump());
    wait_until("request", [&] { return server.server->engine().status().inbox == 1; });
    other.get("/ready");
    EXPECT_EQ(other.read_answer().status, 200);
    server.server->drain();
    other.get("/ready");
    const Answer not_ready = other.read_answer();
    EXPECT_EQ(not_ready.status, 503);
    EXPECT_THAT(not_ready.body, HasSubstr("draining"));
    HttpClient late(server.port());
    late.post("/v1/completions", kLong.dump());
    const Answer refused = late.read_answer();
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.headers.at("retry-after"), "1");
    other.post("/tokenize", R"({"prompt": "a"})");
    EXPECT_EQ(other.read_answer().status, 503);
    held.reset();
    ASSERT_EQ(streaming.read_head().status, 200);
    std::string last, text;
    while (const auto event = streaming.read_event()) {
        if (*event != "[DONE]") text += Json::parse(*event)["choices"][0]["text"].get<std::string>();
        last = *event;
    }
    EXPECT_EQ(last, "[DONE]");
    EXPECT_FALSE(text.empty());
    streaming.read_rest();
    server.server->wait();
    EXPECT_EQ(server.server->engine().status().state, service::ServiceState::kStopped);
}

TEST(Stopping, EndsStreamsAtOnce) {
    const Running server;
    HttpClient client(server.port());
    Json body = kLong;
    body["max_tokens"] = 1500;
    body["return_token_ids"] = true;
    client.post("/v1/completions", body.dump());
    ASSERT_EQ(client.read_head().status, 200);
    ASSERT_TRUE(client.read_event());
    server.server->stop();
    size_t tokens = 0; // an event may have several
    while (const auto event = client.read_event()) {
        if (*event == "[DONE]") continue;
        const Json choice = Json::parse(*event)["choices"][0];
        tokens += choice["token_ids"].size();
        EXPECT_NE(choice["finish_reason"], "length");
    }
    EXPECT_LT(tokens, 1400u);
    server.server->wait();
    EXPECT_FALSE(server.server->failure());
}

TEST(Failures, OfTheEngineAreSaid) {
    config::EngineConfig config = Running::demo_model();
    config.scheduler = {"fails_on_request", {{"overplans", "true"}}};
    config.engine.max_num_batched_tokens = 8; // fewer than the prompt has
    const Running server({}, config);
    const Answer answer =
        server.post("/v1/completions", {{"prompt", "Once upon a time there was a king, and he said"}});
    EXPECT_EQ(answer.status, 500) << answer.body;
    server.server->wait();
    EXPECT_THAT(server.server->failure().value_or(""), HasSubstr("max_num_batched_tokens"));
    EXPECT_EQ(get(server.port(), "/health").status, 503);
    EXPECT_EQ(get(server.port(), "/ready").status, 503);
    EXPECT_EQ(server.post("/v1/completions", {{"prompt", "a"}}).status, 503);
}

}  // namespace
}  // namespace patchbay::serve::testing::lifecycle_test
