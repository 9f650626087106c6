// Swaps of all slots by the hundred while 64 clients stream: each stream has exactly its tokens, and the process holds
// no more mappings, descriptors, threads or memory than before. PATCHBAY_MANY_SWAPS=10000 has more of them.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "paths.hpp"
#include "serve/admin_client.hpp"
#include "serve/server_fixture.hpp"
#include "serve/temporary_folder.hpp"

namespace patchbay::serve::testing::many_swaps_test {
namespace {

namespace fs = std::filesystem;

struct Held {
    size_t libraries = 0, descriptors = 0, threads = 0;
    uint64_t resident_bytes = 0;
};

size_t entries(const char* folder) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

Held held() {
    Held out{0, entries("/proc/self/fd"), entries("/proc/self/task"), 0};
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) out.libraries += line.ends_with(".so");
    uint64_t pages = 0;
    std::ifstream statm("/proc/self/statm");
    statm >> pages >> pages;
    out.resident_bytes = pages * static_cast<uint64_t>(getpagesize());
    return out;
}

std::vector<int> streamed(HttpClient& client, const std::string& body) {
    client.post("/v1/completions", body);
    EXPECT_EQ(client.read_head().status, 200);
    return rest_of_ids(client);
}

class Many : public ::testing::Test {
  protected:
    static constexpr size_t kStreams = 64;

    static config::EngineConfig config() {
        config::EngineConfig c = Running::demo_model();
        c.engine.max_num_seqs = 24; // so that others wait
        c.engine.num_speculative_tokens = 2;
        c.proposer = config::PluginChoice{"ngram", {}};
        c.kv_policy = config::PluginChoice{"lru", {}};
        c.swap.probation_steps = 1;
        return c;
    }
    ServerOptions options() const {
        ServerOptions out;
        AdminAddress at;
        at.socket = folder.path() / "admin.sock";
        out.admin = AdminOptions{at, [] { return Result<host::Registry>(engine::testing::registry()); }, config()};
        return out;
    }

    Many() : server(options(), config()) {
        for (size_t i = 0; i < kStreams; ++i) {
            const Json body{{"prompt", "The king said to child " + std::to_string(i)},
                            {"temperature", 0}, {"max_tokens", 12 + i % 30}, {"ignore_eos", true},
                            {"return_token_ids", true}};
            expected.push_back(server.complete(body)["choices"][0]["token_ids"]);
            Json of_stream = body;
            of_stream["stream"] = true;
            bodies.push_back(of_stream.dump());
        }
    }

    Json ask(const char* method, const char* path, const std::string& body) const {
        const auto answer = ask_admin(server.server->admin()->address(), method, path, body);
        if (!answer) throw std::runtime_error(answer.error());
        return Json::parse(answer->body);
    }
    void swap_one(size_t n) {
        static const std::string demo = engine::testing::repository("models/demo-draft");
        const std::array<std::array<std::string, 3>, 6> slots = {{{"scheduler", "sjf", "fcfs"},
                                                                  {"sampler", "standard", "standard"},
                                                                  {"proposer", "suffix", "ngram"},
                                                                  {"kv_policy", "lfu", "lru"},
                                                                  {"attention", "paged", "paged"},
                                                                  {"model", demo, demo}}};
        const auto& slot = slots[n % slots.size()];
        const Json body{{"kind", slot[0]}, {"plugin", slot[1 + n / slots.size() % 2]}};
        Json got = ask("POST", "/swap", body.dump());
        while (got["outcome"] == "on probation" || got["outcome"] == "posted") { // between two requests of all clients
            Json status = ask("GET", "/status", "");
            if (status["swaps"]["pending"].empty()) got = status["swaps"]["last"][0];
        }
        EXPECT_EQ(got["outcome"], "committed") << got;
    }
    // So many more, while all clients stream; how many streams that were.
    size_t swap_while_streaming(size_t swaps) {
        std::atomic<bool> swapping = true;
        std::atomic<size_t> streams = 0;
        std::vector<std::thread> clients;
        for (size_t i = 0; i < kStreams; ++i)
            clients.emplace_back([&, i] {
                do {
                    HttpClient client(server.port());
                    EXPECT_EQ(streamed(client, bodies[i]), expected[i]) << bodies[i];
                    streams += 1;
                } while (swapping);
            });
        for (size_t i = 0; i < swaps; ++i) swap_one(done++);
        swapping = false;
        for (std::thread& client : clients) client.join();
        EXPECT_EQ(server.pages_in_use_when_idle(), 0u);
        server.wait_until_closed();
        return streams;
    }

    const TemporaryFolder folder;
    Running server;
    std::vector<std::string> bodies;
    std::vector<std::vector<int>> expected;
    size_t done = 0;
};

TEST_F(Many, SwapsOfAllSlotsUnderLoadLoseNothingAndHoldNothing) {
    size_t swaps = 96;
    if (const char* asked = std::getenv("PATCHBAY_MANY_SWAPS")) swaps = std::strtoull(asked, nullptr, 10);
    swap_while_streaming(72); // what grows once has grown, as the allocator's arenas of all clients' threads
    const Held before = held();
    const size_t streams = swap_while_streaming(swaps);
    const auto clients_have_gone = [&] { return held().threads <= before.threads; }; // one that is joined may be listed
    wait_until("end of the clients' threads", clients_have_gone);
    const Held after = held();
    EXPECT_GT(streams, kStreams) << "none has begun after a swap";
    EXPECT_LE(after.libraries, before.libraries + 20); // those of the components that are in now
    EXPECT_LE(after.descriptors, before.descriptors + 4);
    constexpr uint64_t kSpare = 32 << 20; // an allocator's
    EXPECT_LE(after.resident_bytes, before.resident_bytes + before.resident_bytes / 8 + kSpare);
    std::printf("%zu swaps, %zu streams, resident %.1f MB before and %.1f MB after\n", swaps, streams,
                static_cast<double>(before.resident_bytes) * 1e-6, static_cast<double>(after.resident_bytes) * 1e-6);
}

}  // namespace
}  // namespace patchbay::serve::testing::many_swaps_test
