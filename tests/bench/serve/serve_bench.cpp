// What serving over HTTP costs beside the engine: CPU time of the serving threads for each streamed token, throughput
// and time to first token against the same requests without HTTP. The clients are another process.
//   bench_serve [CONFIG]     an engine YAML; the demo model without
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "engine/metrics/engine_metrics.hpp"
#include "must.hpp"
#include "paths.hpp"
#include "serve/load_client.hpp"
#include "serve/server.hpp"
#include "serve/vllm_metrics.hpp"
#include "service/run_to_end.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::serve::testing {
namespace {

using Json = nlohmann::json;
constexpr uint32_t kStreams = 64, kTokens = 128, kRounds = 5, kFirstTokens = 200;

double seconds(const timespec& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9; }
double cpu(clockid_t which) {
    timespec t{};
    clock_gettime(which, &t);
    return seconds(t);
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

std::vector<int32_t> prompt_of(size_t i) {
    std::mt19937 draw(static_cast<unsigned>(i));
    std::vector<int32_t> out(16);
    for (int32_t& id : out) id = 10 + static_cast<int32_t>(draw() % 200);
    return out;
}

// ---- the clients, in a process of their own ----

// What the clients are to do, and what they say of it, over pipes.
struct Order {
    uint32_t requests = 0, at_once = 0, tokens = 0; // 0 requests: end
};
struct Said {
    double seconds = 0;       // from the first connection to the last event
    double first_token = 0;   // median time to it
    uint64_t tokens = 0;
};

Said drive(uint16_t port, const Order& order) {
    std::vector<LoadRequest> requests;
    for (uint32_t i = 0; i < order.requests; ++i) {
        const Json body = {{"model", "m"}, {"prompt", prompt_of(i)}, {"max_tokens", order.tokens}, {"stream", true},
                           {"temperature", 0}, {"ignore_eos", true}};
        requests.push_back({body.dump(), SIZE_MAX});
    }
    RealClock clock;
    Said out;
    if (order.at_once == 1) { // one after the other
        std::vector<double> firsts;
        for (const LoadRequest& r : requests) {
            const uint64_t begin = clock.now_ns();
            const auto answers = run_load(port, {r}, 1);
            firsts.push_back(static_cast<double>(answers[0].event_ns.at(0) - begin) * 1e-9);
        }
        out.first_token = median(firsts);
        return out;
    }
    const uint64_t begin = clock.now_ns();
    const auto answers = run_load(port, requests, order.at_once);
    out.seconds = static_cast<double>(clock.now_ns() - begin) * 1e-9;
    out.tokens = uint64_t{order.requests} * order.tokens;
    return out;
}

class Clients {
  public:
    Clients() {
        if (pipe(to_) != 0 || pipe(from_) != 0) throw std::runtime_error("pipe");
        child_ = fork();
        if (child_ != 0) return;
        uint16_t port = 0;
        read_all(to_[0], &port, sizeof port);
        for (Order order; read_all(to_[0], &order, sizeof order) && order.requests > 0;) {
            const Said said = drive(port, order);
            write_all(from_[1], &said, sizeof said);
        }
        _exit(0);
    }
    ~Clients() {
        const Order end;
        write_all(to_[1], &end, sizeof end);
        waitpid(child_, nullptr, 0);
    }
    void begin(uint16_t port) { write_all(to_[1], &port, sizeof port); }
    Said run(const Order& order) {
        write_all(to_[1], &order, sizeof order);
        Said said;
        if (!read_all(from_[0], &said, sizeof said)) throw std::runtime_error("the clients are gone");
        return said;
    }

  private:
    static bool read_all(int fd, void* to, size_t size) {
        for (char* at = static_cast<char*>(to); size > 0;) {
            const ssize_t n = read(fd, at, size);
            if (n <= 0) return false;
            at += n;
            size -= static_cast<size_t>(n);
        }
        return true;
    }
    static void write_all(int fd, const void* from, size_t size) {
        if (write(fd, from, size) != static_cast<ssize_t>(size)) std::fputs("the clients are gone\n", stderr);
    }

    int to_[2] = {}, from_[2] = {};
    pid_t child_ = 0;
};

// ---- the same requests without HTTP ----


engine::Request request_of(size_t i, uint32_t tokens, uint64_t now_ns) {
    engine::Request r;
    const auto prompt = prompt_of(i);
    r.prompt.assign(prompt.begin(), prompt.end());
    r.sampling.temperature = 0;
    r.sampling.max_tokens = tokens;
    r.sampling.ignore_eos = true;
    r.arrival_ns = now_ns;
    return r;
}

double plain_throughput(engine::Engine& engine, Clock& clock) {
    const uint64_t begin = clock.now_ns();
    for (uint32_t i = 0; i < kStreams; ++i) must(engine.add_request(request_of(i, kTokens, begin)));
    must(service::run_to_end(engine, {}));
    return double{kStreams} * kTokens / (static_cast<double>(clock.now_ns() - begin) * 1e-9);
}

double plain_first_token(engine::Engine& engine, Clock& clock) {
    std::vector<double> firsts;
    for (uint32_t i = 0; i < kFirstTokens; ++i) {
        const uint64_t begin = clock.now_ns();
        must(engine.add_request(request_of(i, 1, begin)));
        must(service::run_to_end(engine, {}));
        firsts.push_back(static_cast<double>(clock.now_ns() - begin) * 1e-9);
    }
    return median(firsts);
}

struct MetricsCost {
    double us_a_step, share; // median; of the steps' time
};

// Of the engine's metrics and vLLM's names together, as `serve` keeps them.
MetricsCost metrics_cost(engine::Engine& engine, Clock& clock) {
    metrics::Metrics all;
    engine::EngineMetrics own(all, engine.facts(), "bench");
    VllmMetrics vllm(all, "m", engine.facts());
    std::vector<engine::RequestOutput> outputs;
    const uint64_t begin = clock.now_ns();
    for (uint32_t i = 0; i < kStreams; ++i) {
        engine::Request request = request_of(i, kTokens, begin);
        request.on_output = [&](const engine::RequestOutput& out) { outputs.push_back(out); };
        const engine::Request copy = request;
        const engine::RequestId id = must(engine.add_request(std::move(request)));
        own.on_request(id, begin, static_cast<uint32_t>(copy.prompt.size()), 1);
        vllm.on_request(id, copy);
    }
    std::vector<double> costs;
    double steps = 0;
    const auto note = [&](const engine::StepReport& report) {
        const uint64_t before = clock.now_ns();
        for (const engine::RequestOutput& out : outputs) {
            own.on_output(out);
            vllm.on_output(out);
        }
        own.on_end(report);
        vllm.on_step(report);
        costs.push_back(static_cast<double>(clock.now_ns() - before) * 1e-3);
        steps += static_cast<double>(report.end_ns - report.start_ns) * 1e-3;
        outputs.clear();
    };
    must(service::run_to_end(engine, {{}, note}));
    double sum = 0;
    for (const double cost : costs) sum += cost;
    return {median(costs), sum / steps};
}

int run(const std::string& file) {
    Clients clients; // forked before there are threads
    allow_open_files(4096);
    config::EngineConfig config;
    config.model.path = std::string(kSourceDir) + "/models/demo-target";
    if (!file.empty()) config = must(config::load_engine_config(file, engine::testing::registry(), {})).config;
    config.engine.threads = 1;
    config.engine.max_num_seqs = kStreams;
    config.engine.enable_prefix_caching = false;
    RealClock clock;
    metrics::Metrics metrics;
    auto served = must(engine::Engine::create(config, engine::testing::registry(), clock));
    const auto plain = must(engine::Engine::create(config, engine::testing::registry(), clock));
    auto model = must(served_model(config, *served, {.served = {"m"}, .chat_template_file = {}}));
    ServerOptions options;
    options.http.port = 0;
    const auto server = must(Server::start(options, std::move(served), std::move(model), metrics));
    clients.begin(server->port());

    std::vector<double> over_http, without, serving_us;
    for (uint32_t round = 0; round <= kRounds; ++round) { // the first warms up
        clockid_t loop_clock{};
        server->engine().call([&](engine::Engine&) { pthread_getcpuclockid(pthread_self(), &loop_clock); });
        const double all = cpu(CLOCK_PROCESS_CPUTIME_ID), loop = cpu(loop_clock);
        const Said said = clients.run({kStreams, kStreams, kTokens});
        const double serving = (cpu(CLOCK_PROCESS_CPUTIME_ID) - all) - (cpu(loop_clock) - loop);
        const double alone = plain_throughput(*plain, clock);
        if (round == 0) continue;
        over_http.push_back(static_cast<double>(said.tokens) / said.seconds);
        without.push_back(alone);
        serving_us.push_back(serving * 1e6 / static_cast<double>(said.tokens));
    }
    const double first_http = clients.run({kFirstTokens, 1, 1}).first_token;
    const double first_plain = plain_first_token(*plain, clock);
    const MetricsCost cost = metrics_cost(*plain, clock);
    std::printf("%u streams of %u tokens, medians of %u rounds in turn\n", kStreams, kTokens, kRounds);
    std::printf("  serving threads          %8.2f us of CPU for each streamed token\n", median(serving_us));
    std::printf("  throughput over HTTP     %8.0f tokens/s\n", median(over_http));
    std::printf("  without HTTP             %8.0f tokens/s; over HTTP is %.1f %% of it\n", median(without),
                100 * median(over_http) / median(without));
    std::printf("  first token over HTTP    %8.3f ms, idle, one request after the other\n", first_http * 1e3);
    std::printf("  without HTTP             %8.3f ms; HTTP adds %.3f ms\n", first_plain * 1e3,
                (first_http - first_plain) * 1e3);
    std::printf("  metrics                  %8.2f us a step of %u sequences, %.2f %% of the steps' time\n",
                cost.us_a_step, kStreams, 100 * cost.share);
    return 0;
}

}  // namespace
}  // namespace patchbay::serve::testing

int main(int count, char** arguments) {
    try {
        return patchbay::serve::testing::run(count > 1 ? arguments[1] : "");
    } catch (const std::exception& e) {
        std::fprintf(stderr, "bench_serve: %s\n", e.what());
        return 1;
    }
}
