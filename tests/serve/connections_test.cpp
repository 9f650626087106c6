// What connections may do: keep alive, pipelining, faults, slow and vanishing clients.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::connections_test {
namespace {

using ::testing::HasSubstr;

Json streaming(const std::string& prompt, int max_tokens) {
    return {{"prompt", prompt}, {"temperature", 0}, {"max_tokens", max_tokens}, {"ignore_eos", true}, {"stream", true}};
}

TEST(Connections, AnswerPipelinedRequestsInTheirOrder) {
    HttpClient client(shared().port());
    const std::string body = Json{{"prompt", "The king"}, {"temperature", 0}, {"max_tokens", 3}}.dump();
    std::string all;
    for (int i = 0; i < 20; ++i) {
        all += "GET /version HTTP/1.1\r\nHost: x\r\n\r\n";
        all += "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n\r\n" + body;
    }
    client.send(all);
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(client.read_answer().body, "{\"version\":\"1.2.3\"}");
        EXPECT_EQ(Json::parse(client.read_answer().body)["choices"][0]["text"], expected_text("The king", 3));
    }
}

TEST(Connections, WaitUntilTheServerRuns) {
    HttpOptions options;
    options.port = 0;
    std::atomic<int> asked = 0;
    const auto server = HttpServer::listen(options, [&](const std::shared_ptr<Exchange>& e) {
        asked += 1;
        e->respond({});
    });
    ASSERT_TRUE(server) << server.error();
    HttpClient client((*server)->port());
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(asked, 0);
    EXPECT_EQ((*server)->connections(), 0u);
    (*server)->run();
    EXPECT_EQ(client.read_answer().status, 200);
    EXPECT_EQ(asked, 1);
}

TEST(Connections, OfAServerAtANameAreOfIPv4WhereTheNameHasSuchAnAddress) {
    for (const char* host : {"localhost", "127.0.0.1"}) {
        HttpOptions options;
        options.host = host;
        options.port = 0;
        const auto server = HttpServer::listen(options, [](const std::shared_ptr<Exchange>& e) { e->respond({}); });
        ASSERT_TRUE(server) << server.error();
        EXPECT_EQ((*server)->address(), "127.0.0.1") << host;
    }
}

TEST(Connections, TakeRequestsByteByByteAndInChunks) {
    HttpClient client(shared().port());
    for (const char c : std::string("GET /version HTTP/1.1\r\nHost: x\r\n\r\n")) client.send(std::string(1, c));
    EXPECT_EQ(client.read_answer().status, 200);
    client.send(
        "POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"prompt\r\n9\r\n\": "
        "\"wolf\"\r\n1\r\n}\r\n0\r\n\r\n");
    EXPECT_EQ(client.read_answer().status, 200);
    client.send("POST /tokenize HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 15\r\n\r\n");
    EXPECT_EQ(client.read_head().status, 100);
    client.send("{\"prompt\": \"a\"}");
    const Answer answer = client.read_answer();
    EXPECT_EQ(answer.status, 200) << answer.body;
}

TEST(Connections, TakeTheLastChunkInAnyPieces) {
    const std::string head = "POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string body = "f\r\n{\"prompt\": \"a\"}\r\n";
    for (const std::string& before : {head, head + body}) { // without a body it is no JSON, but a request
        for (const size_t cut : {1, 2, 3, 4}) {
            HttpClient client(shared().port());
            const std::string last = "0\r\n\r\n";
            client.send(before + last.substr(0, cut));
            for (const char c : last.substr(cut)) client.send(std::string(1, c));
            EXPECT_EQ(client.read_answer().status, before == head ? 400 : 200) << cut;
        }
    }
}

TEST(Connections, SpeakHttp10) {
    HttpClient client(shared().port());
    client.send("GET /version HTTP/1.0\r\n\r\n");
    const std::string all = client.read_rest();
    EXPECT_THAT(all, HasSubstr("Connection: close"));
    EXPECT_THAT(all, HasSubstr("{\"version\":\"1.2.3\"}"));
    HttpClient streamer(shared().port());
    const std::string body = streaming("The king", 3).dump();
    streamer.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                  body);
    const std::string events = streamer.read_rest(); // not in chunks
    EXPECT_TRUE(events.ends_with("\n\ndata: [DONE]\n\n")) << events;
}

TEST(Connections, TakeTargetsAsProxiesAreAsked) {
    HttpClient client(shared().port());
    for (const char* target : {"http://localhost:8000/version", "https://x/version?a=b"}) {
        client.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_EQ(client.read_answer().status, 200) << target;
    }
    client.send("GET http://localhost HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(client.read_answer().status, 404);
}

TEST(Connections, StayOpenForHttp10ThatAsksForIt) {
    HttpClient client(shared().port());
    for (int i = 0; i < 3; ++i) {
        client.send("GET /version HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        const Answer answer = client.read_answer();
        EXPECT_EQ(answer.status, 200);
        EXPECT_EQ(answer.headers.at("connection"), "keep-alive");
    }
}

TEST(Connections, LetPagesOfAllowedOriginsReadTheAnswers) {
    ServerOptions options;
    options.http.allowed_origins = {"https://good.example"};
    options.api_keys = {"secret"};
    const Running server(options);
    const auto preflight = [&](const std::string& origin) {
        HttpClient client(server.port());
        client.send("OPTIONS /v1/completions HTTP/1.1\r\nOrigin: " + origin +
                    "\r\nAccess-Control-Request-Method: POST\r\n"
                    "Access-Control-Request-Headers: authorization,content-type\r\nConnection: close\r\n\r\n");
        const Answer head = client.read_head();
        return head;
    };
    const Answer allowed = preflight("https://good.example");
    EXPECT_EQ(allowed.status, 204);
    EXPECT_EQ(allowed.headers.at("access-control-allow-origin"), "https://good.example");
    EXPECT_EQ(allowed.headers.at("access-control-allow-headers"), "authorization,content-type");
    EXPECT_FALSE(allowed.headers.contains("content-length"));
    const Answer stranger = preflight("https://bad.example");
    EXPECT_EQ(stranger.status, 405);
    EXPECT_FALSE(stranger.headers.contains("access-control-allow-origin"));
    const std::string headers = "Authorization: Bearer secret\r\nOrigin: https://good.example\r\n";
    EXPECT_EQ(get(server.port(), "/v1/models", headers).headers.at("access-control-allow-origin"),
              "https://good.example");
    HttpClient client(server.port());
    client.post("/v1/completions", streaming("The king", 3).dump(), headers);
    EXPECT_EQ(client.read_head().headers.at("access-control-allow-origin"), "https://good.example");
    EXPECT_FALSE(get(shared().port(), "/version", "Origin: https://good.example\r\n")
                     .headers.contains("access-control-allow-origin"));
}

TEST(Connections, RefuseWhatIsNoRequestAndClose) {
    ServerOptions options;
    options.http.max_body_bytes = 1000;
    options.http.max_header_bytes = 500;
    const Running server(options);
    struct Case {
        std::string sent;
        int status;
    };
    const Case cases[] = {
        {"nonsense\r\n\r\n", 400},
        {"GET /version HTTP/9.9\r\n\r\n", 400},
        {std::string("\0\1\2\3\r\n\r\n", 8), 400},
        {"GET /version HTTP/1.1\r\nHeader: " + std::string(2000, 'x') + "\r\n\r\n", 431},
        {"POST /tokenize HTTP/1.1\r\nContent-Length: 5000\r\n\r\n" + std::string(5000, 'x'), 413},
        {"POST /tokenize HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
        {"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        {"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\nGET /version HTTP/1.1\r\n\r\n", 501},
    };
    for (const Case& c : cases) {
        HttpClient client(server.port());
        client.send(c.sent);
        const Answer answer = client.read_answer();
        EXPECT_EQ(answer.status, c.status) << c.sent.substr(0, 60);
        EXPECT_EQ(answer.headers.at("connection"), "close");
        EXPECT_TRUE(Json::parse(answer.body).contains("error"));
        EXPECT_EQ(client.read_rest(), "");
    }
    EXPECT_EQ(get(server.port(), "/health").status, 200);
}

TEST(Connections, AbortTheRequestOfAClientThatGoes) {
    const Running server;
    for (const char* how : {"close", "reset", "half close"}) {
        {
            HttpClient client(server.port());
            client.post("/v1/completions", long_stream().dump());
            ASSERT_EQ(client.read_head().status, 200);
            ASSERT_TRUE(client.read_event()); // it runs
            if (how == std::string("reset")) client.reset();
            if (how == std::string("half close")) {
                client.half_close();
                client.read_rest(); // the server closes, too
            }
        }
        EXPECT_EQ(server.pages_in_use_when_idle(), 0u) << how;
    }
    { // before there is an answer
        HttpClient client(server.port());
        Json body = long_stream();
        body["stream"] = false;
        const service::EngineThread& engine = server.server->engine();
        const uint64_t before = engine.status().steps;
        client.post("/v1/completions", body.dump());
        wait_until("step of the request", [&] { return engine.status().steps >= before + 20; });
    }
    EXPECT_EQ(server.pages_in_use_when_idle(), 0u);
    const std::string metrics = get(server.port(), "/metrics").body;
    EXPECT_THAT(metrics, HasSubstr("patchbay_requests_finished_total{reason=\"abort\"} " +
                                   std::to_string(4 * kLongPrompts) + "\n"));
    EXPECT_THAT(metrics, HasSubstr("patchbay_requests_running 0")); // also where no step came after the abort
}

TEST(Connections, GiveSlowReadersAllOfTheText) {
    HttpClient client(shared().port(), kSmallBuffer);
    const uint64_t before = shared().finished();
    Json body = streaming("The king", 400);
    body["return_token_ids"] = true; // more bytes
    client.post("/v1/completions", body.dump());
    shared().wait_until_finished(before + 1); // and none of it is read
    ASSERT_EQ(client.read_head().status, 200);
    std::string text;
    size_t tokens = 0;
    while (const auto event = client.read_event()) {
        if (*event == "[DONE]") continue;
        const Json choice = Json::parse(*event)["choices"][0];
        text += choice["text"].get<std::string>();
        tokens += choice["token_ids"].size();
    }
    EXPECT_EQ(tokens, 400u);
    Json whole = body;
    whole["stream"] = false;
    EXPECT_EQ(text, shared().complete(whole)["choices"][0]["text"].get<std::string>());
}

TEST(Connections, ServeManyStreamsAtOnceEachExactly) {
    constexpr size_t kStreams = 64;
    constexpr int kTokens = 24;
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (size_t i = 0; i < kStreams; ++i) {
        clients.push_back(std::make_unique<HttpClient>(shared().port()));
        clients[i]->post("/v1/completions", streaming("Story " + std::to_string(i) + ": the", kTokens).dump());
    }
    for (size_t i = 0; i < kStreams; ++i) {
        ASSERT_EQ(clients[i]->read_head().status, 200);
        std::string text;
        bool done = false;
        while (const auto event = clients[i]->read_event()) {
            done = *event == "[DONE]";
            if (!done) text += Json::parse(*event)["choices"][0]["text"].get<std::string>();
        }
        EXPECT_TRUE(done);
        Json whole = streaming("Story " + std::to_string(i) + ": the", kTokens);
        whole["stream"] = false;
        EXPECT_EQ(text, shared().complete(whole)["choices"][0]["text"].get<std::string>()) << i;
    }
}

TEST(Connections, TurnAwayWhatDoesNotFit) {
    ServerOptions options;
    options.http.max_connections = 2;
    options.max_requests = 1;
    const Running server(options);
    HttpClient first(server.port()), second(server.port());
    auto held = std::make_unique<HeldEngine>(server); // so that the first request lasts
    first.post("/v1/completions", streaming("The king", 2).dump());
    wait_until("request", [&] { return server.server->engine().status().inbox == 1; });
    second.post("/v1/completions", streaming("The king", 2).dump());
    const Answer busy = second.read_answer();
    EXPECT_EQ(busy.status, 429);
    EXPECT_EQ(busy.headers.at("retry-after"), "1");
    EXPECT_EQ(Json::parse(busy.body)["error"]["type"], "rate_limit_error");
    HttpClient third(server.port());
    EXPECT_EQ(third.read_answer().status, 503);
    second.get("/metrics");
    EXPECT_THAT(second.read_answer().body, HasSubstr("patchbay_http_rejections_total{reason=\"busy\"} 1"));
    held.reset();
    EXPECT_EQ(first.read_head().status, 200);
}

TEST(Connections, CloseThoseThatSendNothing) {
    ServerOptions options;
    options.http.keep_alive_seconds = 1;
    options.http.read_seconds = 1;
    const Running server(options);
    HttpClient silent(server.port()), half(server.port());
    half.send("GET /hea");
    EXPECT_EQ(silent.read_rest(), "");
    EXPECT_EQ(half.read_rest(), "");
}

// The listener is also a supervisor's, who starts another server after one that has crashed.
TEST(Connections, WaitForTheNextServerOfAListenerUnlessItStopsListening) {
    const auto respond = [](const std::shared_ptr<Exchange>& e) { e->respond({}); };
    const int kept = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(kept, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    ASSERT_EQ(listen(kept, 8), 0);
    uint16_t port = 0;
    for (const bool last : {false, true}) {
        HttpOptions options;
        options.listener = dup(kept);
        const auto server = HttpServer::listen(options, respond);
        ASSERT_TRUE(server) << server.error();
        port = (*server)->port();
        (*server)->run();
        EXPECT_EQ(get(port, "/").status, 200);
        if (last) (*server)->stop_listening();
        (*server)->stop();
        if (!last) const HttpClient waits(port);
    }
    EXPECT_THROW(HttpClient{port}, std::runtime_error) << "the connection is refused";
    close(kept);
}

size_t sockets_of_another_program() {
    FILE* const pipe = popen("ls -l /proc/self/fd", "r");
    size_t count = 0;
    char line[4096];
    while (pipe && fgets(line, sizeof line, pipe)) count += std::string_view(line).find("socket:") != std::string::npos;
    pclose(pipe);
    return count;
}

// Probes of plugins are such programs.
TEST(Connections, AreNotInheritedByProgramsThatAreStarted) {
    const size_t before = sockets_of_another_program();
    const Running server;
    HttpClient client(server.port());
    client.get("/version");
    ASSERT_EQ(client.read_answer().status, 200);
    EXPECT_EQ(sockets_of_another_program(), before + 1); // the client's own end, which is the test's
}

}  // namespace
}  // namespace patchbay::serve::testing::connections_test
