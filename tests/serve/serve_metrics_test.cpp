// What the server counts of its own work: each series moves with what it counts.
#include "serve/serve_metrics.hpp"

#include <regex>
#include <set>

#include "serve/server_fixture.hpp"
#include "serve/tenant_tokens.hpp"

namespace patchbay::serve::testing::serve_metrics_test {
namespace {

// The value of a series as /metrics has it; nothing: it is not there.
std::optional<double> value_of(const std::string& text, const std::string& series) {
    const size_t at = text.find("\n" + series + " ");
    if (at == std::string::npos) return std::nullopt;
    return std::stod(text.substr(at + series.size() + 2));
}

std::optional<double> value_of(const Running& server, const std::string& series) {
    return value_of(get(server.port(), "/metrics").body, series);
}

std::string rejections(const std::string& reason) {
    return "patchbay_http_rejections_total{reason=\"" + reason + "\"}";
}

TEST(ServeMetrics, TokensAreCountedByTheKeyThatTheyAreFor) {
    ServerOptions options;
    options.api_keys = {"key-of-the-first", "key-of-the-other"};
    const Running server(options);
    const auto ask = [&](const char* path, Json body, const std::string& key) {
        body["model"] = "demo";
        return Json::parse(server.post(path, body, "Authorization: Bearer " + key + "\r\n").body)["usage"];
    };
    const Json text = ask("/v1/completions", {{"prompt", "Once upon"}, {"max_tokens", 7}, {"n", 2}},
                          "key-of-the-other");
    const Json embedding = ask("/v1/embeddings", {{"input", "The king"}}, "key-of-the-first");
    const std::string page = get(server.port(), "/metrics").body;
    const auto tokens = [&](const char* tenant, const char* kind) {
        const std::string labels = std::string("{kind=\"") + kind + "\",tenant=\"" + tenant + "\"}";
        return value_of(page, "patchbay_tenant_tokens_total" + labels);
    };
    EXPECT_EQ(tokens("1", "prompt"), text["prompt_tokens"].get<double>());
    EXPECT_EQ(tokens("1", "generation"), text["completion_tokens"].get<double>());
    EXPECT_EQ(tokens("0", "prompt"), embedding["prompt_tokens"].get<double>());
    EXPECT_EQ(tokens("0", "generation"), 0);
    EXPECT_EQ(page.find("key-of"), std::string::npos) << "a key is a secret";
}

TEST(ServeMetrics, ManyTenantsHaveFewSeries) {
    metrics::Metrics all;
    TenantTokens tenants(all);
    for (uint32_t i = 0; i < 1000; ++i) {
        engine::Request r;
        r.prompt = {1, 2, 3};
        r.tenant = i * 7;
        tenants.on_request(i, r);
        engine::RequestOutput out;
        out.id = i;
        out.tokens = {5};
        tenants.on_output(out);
        out.finish = engine::FinishReason::kLength;
        tenants.on_output(out);
        tenants.on_output(out); // of none that it knows
    }
    const std::string page = all.text();
    const std::regex series("patchbay_tenant_tokens_total\\{kind=\"prompt\"");
    EXPECT_EQ(std::distance(std::sregex_iterator(page.begin(), page.end(), series), std::sregex_iterator()),
              1 + 63 / 7 + 1);
    EXPECT_EQ(value_of(page, "patchbay_tenant_tokens_total{kind=\"prompt\",tenant=\"7\"}"), 3);
    EXPECT_EQ(value_of(page, "patchbay_tenant_tokens_total{kind=\"generation\",tenant=\"7\"}"), 2);
    EXPECT_EQ(value_of(page, "patchbay_tenant_tokens_total{kind=\"prompt\",tenant=\"other\"}"), 3 * (1000 - 10));
}

TEST(ServeMetrics, AStreamIsOpenFromItsFirstByteToItsLast) {
    const Running server;
    const auto none_is_open = [&] { return value_of(server, "patchbay_http_streams") == 0; };
    EXPECT_TRUE(none_is_open());
    HttpClient client(server.port());
    client.post("/v1/completions", long_stream().dump());
    ASSERT_EQ(client.read_head().status, 200);
    ASSERT_TRUE(client.read_event());
    EXPECT_EQ(value_of(server, "patchbay_http_streams"), 1);
    client.reset();
    wait_until("end of the stream", none_is_open); // it is seen to have gone
    HttpClient second(server.port());
    second.post("/v1/completions",
                Json{{"model", "demo"}, {"prompt", "Once"}, {"max_tokens", 3}, {"stream", true}}.dump());
    ASSERT_EQ(second.read_head().status, 200);
    while (second.read_event()) {
    }
    wait_until("end of the stream", none_is_open); // which is counted after its last byte is sent
}

TEST(ServeMetrics, WhatNoHandlerAnswersIsCountedAsRejected) {
    ServerOptions options;
    options.http.max_body_bytes = 100;
    options.http.max_connections = 2;
    const Running server(options);
    EXPECT_EQ(post(server.port(), "/v1/completions", std::string(500, ' ')).status, 413);
    EXPECT_EQ(value_of(server, rejections("too_large")), 1);
    server.wait_until_closed();
    HttpClient broken(server.port());
    broken.send("this is no HTTP\r\n\r\n");
    EXPECT_EQ(broken.read_answer().status, 400);
    broken.reset();
    server.wait_until_closed();
    {
        HttpClient first(server.port()), second(server.port());
        first.get("/health");
        second.get("/health");
        EXPECT_EQ(first.read_answer().status, 200);
        EXPECT_EQ(second.read_answer().status, 200);
        HttpClient third(server.port());
        EXPECT_EQ(third.read_answer().status, 503);
    }
    server.wait_until_closed();
    EXPECT_EQ(value_of(server, rejections("malformed")), 1);
    EXPECT_EQ(value_of(server, rejections("connections")), 1);
}

}  // namespace
}  // namespace patchbay::serve::testing::serve_metrics_test
