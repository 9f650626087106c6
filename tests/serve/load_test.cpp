// The server under load: thousands of streams at once, each with exactly its own tokens, and clients that go away at
// any moment.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>

#include "serve/load_client.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing {
namespace {

// Memory that this process has in RAM, in bytes.
uint64_t resident() {
    uint64_t size = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> size >> pages;
    return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

constexpr uint32_t kTokens = 64;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCountsMemory = false; // a sanitizer keeps what is freed for a while
constexpr size_t kStreams = 100, kLeaving = 250; // and takes its time
#else
constexpr bool kCountsMemory = true;
constexpr size_t kStreams = 2000, kLeaving = 5000;
#endif

config::EngineConfig many_at_once() {
    config::EngineConfig c = Running::demo_model();
    c.engine.max_num_seqs = 256;
    c.engine.num_blocks = 8192;
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

// The tokens of a stream in order; throws where an event is torn or the stream does not end as it must.
std::vector<int32_t> tokens_of(const std::string& stream) {
    std::vector<int32_t> out;
    std::string rest = stream;
    bool done = false;
    while (!rest.empty()) {
        const size_t end = rest.find("\n\n");
        if (end == rest.npos || !rest.starts_with("data: ") || done) throw std::runtime_error("torn: " + rest);
        const std::string event = rest.substr(6, end - 6);
        rest.erase(0, end + 2);
        if (event == "[DONE]") {
            done = true;
            continue;
        }
        const Json json = Json::parse(event);
        for (const Json& choice : json.at("choices"))
            if (choice.contains("token_ids") && !choice["token_ids"].is_null())
                for (const Json& id : choice["token_ids"]) out.push_back(id.get<int32_t>());
    }
    if (!done) throw std::runtime_error("no [DONE] at the end of " + stream);
    return out;
}

std::vector<int32_t> expected_tokens(engine::testing::Harness& plain, size_t i) {
    engine::SamplingParams p;
    p.temperature = 0.8f;
    p.seed = i;
    p.max_tokens = kTokens;
    p.ignore_eos = true;
    const auto prompt = prompt_of(i);
    return plain.run(plain.add({prompt.begin(), prompt.end()}, p)).tokens;
}

TEST(Load, ThousandsOfStreamsHaveEachItsOwnTokens) {
    const size_t streams = std::min<size_t>(kStreams, allow_open_files(10'000) / 2 - 200);
    const Running server(many_connections(), many_at_once());
    std::vector<LoadRequest> requests;
    for (size_t i = 0; i < streams; ++i) requests.push_back(request_of(i));
    const size_t files = open_files();
    const std::vector<LoadAnswer> answers = run_load(server.port(), requests, streams);
    EXPECT_EQ(server.pages_in_use_when_idle(), 0u);

    engine::testing::Harness plain(many_at_once());
    std::vector<uint64_t> gaps;
    for (size_t i = 0; i < streams; ++i) {
        ASSERT_FALSE(answers[i].closed_early) << "stream " << i;
        const std::vector<int32_t> tokens = tokens_of(answers[i].stream);
        ASSERT_EQ(tokens.size(), kTokens) << "stream " << i;
        if (i % 16 == 0) {
            ASSERT_EQ(tokens, expected_tokens(plain, i)) << "stream " << i;
        }
        for (size_t e = 1; e < answers[i].event_ns.size(); ++e)
            gaps.push_back(answers[i].event_ns[e] - answers[i].event_ns[e - 1]);
    }
    std::ranges::sort(gaps);
    std::printf("%zu streams: between events of a stream p50 %.1f ms, p99 %.1f ms, longest %.1f ms\n", streams,
                static_cast<double>(gaps[gaps.size() / 2]) * 1e-6,
                static_cast<double>(gaps[gaps.size() * 99 / 100]) * 1e-6, static_cast<double>(gaps.back()) * 1e-6);
    while (server.server->connections() > 0) std::this_thread::yield();
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

TEST(Load, ClientsThatGoAtAnyMomentLeaveNothing) {
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
                ASSERT_EQ(tokens_of(answers[i].stream), expected_tokens(plain, i)) << "whatever the others did";
            }
        }
        EXPECT_EQ(server.pages_in_use_when_idle(), 0u);
        while (server.server->connections() > 0) std::this_thread::yield();
        EXPECT_LE(open_files(), files + 8);
        constexpr uint64_t kSlack = 32 << 20;
        if (round == 2 && kCountsMemory) {
            EXPECT_LE(resident(), before + kSlack) << "the second round takes no more memory";
        }
        before = resident();
    }
}

}  // namespace
}  // namespace patchbay::serve::testing
