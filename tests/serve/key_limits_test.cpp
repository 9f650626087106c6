// What one key may ask, by a clock that the test moves; and that a server keeps to it.
#include "serve/key_limits.hpp"

#include <atomic>
#include <thread>

#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::key_limits_test {
namespace {

using ::testing::HasSubstr;

struct Bench {
    explicit Bench(KeyLimitOptions options) : limits(options, [this] { return now_ns; }) {}
    uint64_t now_ns = 1'000'000'000;
    KeyLimits limits;
};

TEST(KeyLimits, BoundWhatIsUnderWayOfEachKeyAlone) {
    Bench b({.max_requests = 2});
    auto first = b.limits.admit(0), second = b.limits.admit(0);
    EXPECT_TRUE(first.permit && second.permit);
    const auto third = b.limits.admit(0);
    EXPECT_FALSE(third.permit);
    EXPECT_EQ(third.why, "2 requests of this key are under way, no more may be");
    EXPECT_TRUE(b.limits.admit(1).permit) << "another key";
    first.permit.reset();
    EXPECT_TRUE(b.limits.admit(0).permit);
}

TEST(KeyLimits, BoundTheRateAndSayWhenToComeAgain) {
    Bench b({.requests_per_minute = 6});
    for (int i = 0; i < 6; ++i) EXPECT_TRUE(b.limits.admit(0).permit) << "after a quiet minute, request " << i;
    auto refused = b.limits.admit(0);
    EXPECT_FALSE(refused.permit);
    EXPECT_EQ(refused.why, "this key may send 6 requests per minute");
    EXPECT_EQ(refused.retry_after_s, 10u);
    b.now_ns += 4'000'000'000;
    EXPECT_EQ(b.limits.admit(0).retry_after_s, 6u) << "a refusal costs nothing";
    b.now_ns += 6'000'000'000;
    EXPECT_TRUE(b.limits.admit(0).permit);
    EXPECT_FALSE(b.limits.admit(0).permit);
    b.now_ns += 3'600'000'000'000;
    int admitted = 0;
    while (b.limits.admit(0).permit) admitted += 1;
    EXPECT_EQ(admitted, 6) << "an hour's silence is worth a minute's requests";
}

TEST(KeyLimits, ReadTheClockInTheOrderOfThoseWhoAsk) {
    struct Locked { // a clock that only one may read at a time, and that says when two do
        std::atomic<int> inside = 0;
        std::atomic<bool> crossed = false;
        std::atomic<uint64_t> now_ns = 1'000'000'000;
    } clock;
    KeyLimits limits({.requests_per_minute = 1}, [&] {
        if (clock.inside++ > 0) clock.crossed = true;
        std::this_thread::yield();
        clock.inside--;
        return clock.now_ns++;
    });
    std::atomic<int> admitted = 0;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 500; ++i) admitted += limits.admit(0).permit != nullptr;
        });
    threads.clear();
    EXPECT_FALSE(clock.crossed);
    EXPECT_EQ(admitted, 1);
}

TEST(KeyLimits, AreOffUnlessTheyAreAskedFor) {
    Bench b({});
    std::vector<KeyLimits::Admitted> all;
    for (int i = 0; i < 1000; ++i) all.push_back(b.limits.admit(0));
    for (const auto& a : all) EXPECT_TRUE(a.permit);
}

TEST(KeyLimits, OfAServerAnswer429WithRetryAfter) {
    ServerOptions options;
    options.api_keys = {"first", "second"};
    options.key_limits.requests_per_minute = 2;
    const Running server(options);
    const auto ask = [&](const std::string& key) {
        return server.post("/v1/completions", {{"model", "demo"}, {"prompt", "Once"}, {"max_tokens", 1}},
                           "Authorization: Bearer " + key + "\r\n");
    };
    EXPECT_EQ(ask("first").status, 200);
    EXPECT_EQ(ask("first").status, 200);
    const Answer refused = ask("first");
    EXPECT_EQ(refused.status, 429);
    EXPECT_THAT(refused.body, HasSubstr("this key may send 2 requests per minute"));
    const int retry_after_s = std::stoi(refused.headers.at("retry-after")); // less what has passed since the first
    EXPECT_TRUE(0 < retry_after_s && retry_after_s <= 30) << retry_after_s;
    EXPECT_EQ(ask("second").status, 200);
    EXPECT_THAT(get(server.port(), "/metrics").body,
                HasSubstr("patchbay_http_rejections_total{reason=\"key_limit\"} 1"));
}

TEST(KeyLimits, OfAServerCountRequestsForTokensToo) {
    ServerOptions options;
    options.key_limits = {.max_requests = 1, .requests_per_minute = 3};
    const Running server(options);
    HttpClient client(server.port());
    const auto ask = [&](const std::string& path, const Json& body) {
        client.post(path, body.dump());
        return client.read_answer().status;
    };
    EXPECT_EQ(ask("/tokenize", {{"prompt", "Once"}}), 200);
    EXPECT_EQ(ask("/detokenize", {{"tokens", {1, 2}}}), 200) << "the one before it is no longer under way";
    EXPECT_EQ(ask("/tokenize", Json::object()), 400);
    EXPECT_EQ(ask("/tokenize", {{"prompt", "Once"}}), 429);
    EXPECT_EQ(ask("/v1/completions", {{"prompt", "Once"}, {"max_tokens", 1}}), 429);
    EXPECT_THAT(get(server.port(), "/metrics").body,
                HasSubstr("patchbay_http_rejections_total{reason=\"key_limit\"} 2"));
}

TEST(PrefixCachePerKey, SharesNothingBetweenKeys) {
    for (const bool apart : {false, true}) {
        ServerOptions options;
        options.api_keys = {"first", "second"};
        options.prefix_cache_per_key = apart;
        const Running server(options);
        const auto cached = [&](const std::string& key) {
            std::string prompt;
            for (int i = 0; i < 20; ++i) prompt += "the wolf said to the king ";
            const Answer answer =
                server.post("/v1/completions", {{"model", "demo"}, {"prompt", prompt}, {"max_tokens", 1}},
                            "Authorization: Bearer " + key + "\r\n");
            const Json usage = Json::parse(answer.body).at("usage");
            return usage.at("prompt_tokens_details").at("cached_tokens").get<int>();
        };
        EXPECT_EQ(cached("first"), 0);
        EXPECT_GT(cached("first"), 0);
        const int of_other = cached("second");
        EXPECT_EQ(of_other > 0, !apart) << "one key cannot find out what others asked";
    }
}

TEST(PrefixCachePerKey, TakesASaltOfTheLongestAndRefusesALongerOneByItsLength) {
    ServerOptions options;
    options.api_keys = {"first"};
    options.prefix_cache_per_key = true;
    const Running server(options);
    const auto ask = [&](size_t bytes) {
        return server.post("/v1/completions",
                           {{"model", "demo"}, {"prompt", "Once"}, {"max_tokens", 1},
                            {"cache_salt", std::string(bytes, 'x')}},
                           "Authorization: Bearer first\r\n");
    };
    EXPECT_EQ(ask(4096).status, 200);
    const Answer refused = ask(4097);
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("cache_salt has 4097 bytes, expected at most 4096"));
}

}  // namespace
}  // namespace patchbay::serve::testing::key_limits_test
