// The server under load: thousands of streams at once, each with exactly its own tokens, and clients that go away at
// any moment.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>

#include "metrics/scrape.hpp"
#include "serve/load_client.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::load_test {
namespace {

// Memory that this process has in RAM, in bytes.
uint64_t resident() {
    uint64_t size = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> size >> pages;
    return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

constexpr uint32_t kTokens = 64;

constexpr bool kCountsMemory = !kIsSanitized; // a sanitizer keeps what is freed for a while
constexpr size_t kStreams = kIsSanitized ? 100 : 2000, kLeaving = kIsSanitized ? 250 : 5000;
constexpr size_t kRude = kIsSanitized ? 40 : 400; // clients of each kind

config::EngineConfig many_at_once() {
    config::EngineConfig c = Running::demo_model();
    c.engine.max_num_seqs = 256;
    c.engine.num_blocks = 8192;
    return c;
}

// The same with so few pages that two rounds of clients use, and so touch, all of them: a third one's memory is not
// theirs.
config::EngineConfig few_pages() {
    config::EngineConfig c = many_at_once();
    c.engine.num_blocks = 2048;
    return c;
}

ServerOptions many_connections() {
    ServerOptions out;
    out.max_requests = 16'384;
    out.http.max_connections = 16'384;
    return out;
}

std::vector<int32_t> prompt_of(size_t i) { // no two are alike
    std::mt19937 draw(static_cast<unsigned>(i));
    std::vector<int32_t> out(3 + i % 20);
    for (int32_t& id : out) id = 10 + static_cast<int32_t>(draw() % 200);
    out[0] = 10 + static_cast<int32_t>(i % 200);
    out[1] = 10 + static_cast<int32_t>(i / 200 % 200);
    return out;
}

LoadRequest request_of(size_t i, uint32_t max_tokens = kTokens) {
    const Json body = {{"model", "demo"},         {"prompt", prompt_of(i)}, {"max_tokens", max_tokens},
                       {"stream", true},          {"temperature", 0.8},     {"seed", i},
                       {"return_token_ids", true}, {"ignore_eos", true}};
    return {body.dump(), SIZE_MAX};
}

engine::SamplingParams params_of(size_t i) {
    engine::SamplingParams p;
    p.temperature = 0.8f;
    p.seed = i;
    p.max_tokens = kTokens;
    p.ignore_eos = true;
    return p;
}

std::vector<int32_t> expected_tokens(engine::testing::Harness& plain, size_t i) {
    const auto prompt = prompt_of(i);
    return plain.run(plain.add({prompt.begin(), prompt.end()}, params_of(i))).tokens;
}

std::vector<std::vector<int32_t>> all_expected_tokens(size_t count) {
    engine::testing::Harness plain(many_at_once());
    std::vector<engine::RequestId> ids;
    for (size_t i = 0; i < count; ++i) {
        const auto prompt = prompt_of(i);
        ids.push_back(plain.add({prompt.begin(), prompt.end()}, params_of(i)));
    }
    plain.run_all();
    std::vector<std::vector<int32_t>> out;
    for (const engine::RequestId id : ids) out.push_back(plain.outputs.at(id).tokens);
    return out;
}

double step_p99_ms(const std::string& text) { // of /metrics
    const metrics::Scrape none, all(text);
    return 1e3 * metrics::Interval(none, all, 1).quantile("patchbay_step_seconds", 0.99);
}

TEST(ServerLoad, ThousandsOfStreamsHaveEachItsOwnTokens) {
    const size_t streams = std::min<size_t>(kStreams, allow_open_files(10'000) / 2 - 200);
    const Running server(many_connections(), many_at_once());
    std::vector<LoadRequest> requests;
    for (size_t i = 0; i < streams; ++i) requests.push_back(request_of(i));
    const size_t files = open_files();
    const std::vector<LoadAnswer> answers = run_load(server.port(), requests, streams);
    EXPECT_EQ(server.pages_in_use_when_idle(), 0u);

    const std::vector<std::vector<int32_t>> expected = all_expected_tokens(streams);
    std::vector<uint64_t> gaps;
    for (size_t i = 0; i < streams; ++i) {
        ASSERT_FALSE(answers[i].closed_early) << "stream " << i;
        ASSERT_EQ(expected[i].size(), kTokens);
        ASSERT_EQ(streamed_tokens(answers[i].stream), expected[i]) << "stream " << i;
        for (size_t e = 1; e < answers[i].event_ns.size(); ++e)
            gaps.push_back(answers[i].event_ns[e] - answers[i].event_ns[e - 1]);
    }
    std::ranges::sort(gaps);
    const double step_ms = step_p99_ms(get(server.port(), "/metrics").body);
    const auto ms = [](uint64_t ns) { return static_cast<double>(ns) * 1e-6; };
    std::printf("%zu streams: between events of a stream p50 %.1f ms, p99 %.1f ms, longest %.1f ms, which is %.1f "
                "times the p99 of a step, %.1f ms\n",
                streams, ms(gaps[gaps.size() / 2]), ms(gaps[gaps.size() * 99 / 100]), ms(gaps.back()),
                ms(gaps.back()) / step_ms, step_ms);
    server.wait_until_closed();
    EXPECT_LE(open_files(), files + 8) << "connections of clients that are done are closed";
}

// Requests of which one in fifty stays; the others leave at once, within the head, or after some events.
std::vector<LoadRequest> mostly_leaving(size_t count) {
    std::mt19937 draw(7);
    std::vector<LoadRequest> out;
    for (size_t i = 0; i < count; ++i) {
        out.push_back(request_of(i, i % 50 == 0 ? kTokens : 1000));
        if (i % 50 == 0) continue;
        const size_t when = draw() % 10;
        out.back().leave_after = when == 0 ? 0 : when == 1 ? 1 + draw() % 150 : 200 + draw() % 8000;
    }
    return out;
}

TEST(ServerLoad, ClientsThatGoAtAnyMomentLeaveNothing) {
    allow_open_files(10'000);
    const Running server(many_connections(), many_at_once());
    engine::testing::Harness plain(many_at_once());
    const std::vector<LoadRequest> requests = mostly_leaving(kLeaving);
    const size_t files = open_files();
    uint64_t before = 0;
    for (const int round : {1, 2}) {
        const std::vector<LoadAnswer> answers = run_load(server.port(), requests, 200);
        for (size_t i = 0; i < answers.size(); ++i) {
            if (i % 50 != 0) {
                EXPECT_TRUE(answers[i].left) << i;
            } else {
                ASSERT_EQ(streamed_tokens(answers[i].stream), expected_tokens(plain, i)) << "whatever the others did";
            }
        }
        EXPECT_EQ(server.pages_in_use_when_idle(), 0u);
        server.wait_until_closed();
        EXPECT_LE(open_files(), files + 8);
        constexpr uint64_t kSlack = 32 << 20;
        if (round == 2 && kCountsMemory) {
            EXPECT_LE(resident(), before + kSlack) << "the second round takes no more memory";
        }
        before = resident();
    }
}

// Clients of one kind, again and again: whatever they do, the server holds no more than the time before.
void expect_nothing_left(const Running& server, const std::function<void()>& clients) {
    const size_t files = open_files();
    uint64_t before = 0;
    for (const int round : {1, 2, 3}) {
        clients();
        EXPECT_EQ(server.pages_in_use_when_idle(), 0u);
        server.wait_until_closed();
        EXPECT_LE(open_files(), files + 8);
        constexpr uint64_t kSlack = 32 << 20; // of the allocator, for more threads than one
        if (round == 3 && kCountsMemory) {
            EXPECT_LE(resident(), before + kSlack) << "the third round takes no more memory than the second";
        }
        before = resident();
    }
    EXPECT_EQ(get(server.port(), "/health").status, 200);
}

double open_streams(const std::string& text) { return metrics::Scrape(text).sum("patchbay_http_streams"); }

// A socket that listens, whose connections hold little of what is sent; the server closes it.
int listener_of_small_buffers() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = 2048;
    sockaddr_in any_port{};
    any_port.sin_family = AF_INET;
    any_port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&any_port), sizeof any_port) != 0 || listen(fd, 1000) != 0)
        throw std::runtime_error("cannot listen");
    return fd;
}

// They read nothing until all of it is computed, from sockets that hold less than a stream.
TEST(ServerLoad, ManySlowReadersLoseNothingAndLeaveNothing) {
    allow_open_files(10'000);
    ServerOptions options = many_connections();
    options.http.listener = listener_of_small_buffers();
    const Running server(options, few_pages());
    const size_t count = std::min<size_t>(kRude, 200);
    const std::vector<std::vector<int32_t>> expected = all_expected_tokens(count);
    double waited = 0; // answers that were not wholly sent when the reading began
    expect_nothing_left(server, [&] {
        const uint64_t before = server.finished();
        std::vector<std::unique_ptr<HttpClient>> clients;
        for (size_t i = 0; i < count; ++i) {
            Json body = Json::parse(request_of(i).body);
            body["logprobs"] = 20; // more bytes
            clients.push_back(std::make_unique<HttpClient>(server.port(), kSmallBuffer));
            clients.back()->post("/v1/completions", body.dump(), "Connection: close\r\n");
        }
        server.wait_until_finished(before + count);
        waited += open_streams(get(server.port(), "/metrics").body);
        std::vector<std::jthread> readers; // at once: each may have to wait for its connection to resume
        for (size_t i = 0; i < count; ++i)
            readers.emplace_back([&, i] {
                EXPECT_EQ(clients[i]->read_head().status, 200);
                std::string stream;
                while (const auto event = clients[i]->read_event()) stream += "data: " + *event + "\n\n";
                EXPECT_EQ(streamed_tokens(stream), expected[i]) << "stream " << i;
            });
    });
    EXPECT_GT(waited, static_cast<double>(count));
}

TEST(ServerLoad, ManyHalfClosedSocketsLeaveNothing) {
    allow_open_files(10'000);
    const Running server(many_connections(), few_pages());
    expect_nothing_left(server, [&] {
        std::vector<std::unique_ptr<HttpClient>> clients;
        for (size_t i = 0; i < kRude; ++i) {
            clients.push_back(std::make_unique<HttpClient>(server.port()));
            clients.back()->post("/v1/completions", request_of(i, 1000).body);
            if (i % 4 == 1) clients.back()->read_head();
            if (i % 4 == 2) clients.back()->read_head(), clients.back()->read_event();
            clients.back()->half_close();
        }
        for (const auto& client : clients) client->read_rest(); // the server closes its side
    });
}

TEST(ServerLoad, ManyPipelinedRequestsAreAnsweredInTheirOrder) {
    allow_open_files(10'000);
    const Running server(many_connections(), few_pages());
    constexpr size_t kEach = 25;
    const std::string body = Json{{"prompt", prompt_of(1)}, {"temperature", 0}, {"max_tokens", 2}}.dump();
    const std::string text = Json::parse(server.post("/v1/completions", Json::parse(body)).body)["choices"][0]["text"];
    std::string sent;
    for (size_t i = 0; i < kEach; ++i)
        sent += "GET /version HTTP/1.1\r\nHost: x\r\n\r\nPOST /v1/completions HTTP/1.1\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body;
    expect_nothing_left(server, [&] {
        std::vector<std::unique_ptr<HttpClient>> clients;
        for (size_t i = 0; i < kRude / 8; ++i) {
            clients.push_back(std::make_unique<HttpClient>(server.port()));
            clients.back()->send(sent);
        }
        for (size_t i = 0; i < clients.size(); ++i)
            for (size_t n = 0; n < kEach && i % 5 != 4; ++n) { // each fifth goes without reading
                ASSERT_EQ(clients[i]->read_answer().body, "{\"version\":\"1.2.3\"}");
                ASSERT_EQ(Json::parse(clients[i]->read_answer().body)["choices"][0]["text"], text);
            }
    });
}

// Requests with bytes changed, cut off, or repeated: each gets an answer of its kind or none, and nothing is left.
TEST(ServerLoad, ManyMalformedRequestsLeaveNothing) {
    allow_open_files(10'000);
    const Running server(many_connections(), few_pages());
    const std::string body = request_of(3, 4).body;
    const std::string whole = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                              std::to_string(body.size()) + "\r\n\r\n" + body;
    expect_nothing_left(server, [&] {
        std::mt19937 draw(11);
        for (size_t i = 0; i < 5 * kRude; ++i) {
            std::string bad = whole;
            for (size_t n = 1 + draw() % 4; n > 0; --n) bad[draw() % bad.size()] = static_cast<char>(draw());
            if (draw() % 4 == 0) bad.resize(draw() % bad.size());
            if (draw() % 8 == 0) bad.insert(draw() % bad.size(), std::string(1 + draw() % 2000, 'x'));
            HttpClient client(server.port());
            client.send(bad);
            client.half_close();
            const std::string said = client.read_rest();
            EXPECT_TRUE(said.empty() || said.starts_with("HTTP/1.1 ")) << said;
        }
    });
}

}  // namespace
}  // namespace patchbay::serve::testing::load_test
