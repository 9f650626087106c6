#include "metrics/catalogue.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <regex>

#include "metrics/scrape.hpp"
#include "metrics/server.hpp"
#include "file_text.hpp"
#include "paths.hpp"

namespace patchbay::metrics::metrics_test {
namespace {

int connected_to(uint16_t port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
}

std::string http_get(uint16_t port, const std::string& path) {
    const int fd = connected_to(port);
    const std::string ask = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    EXPECT_EQ(write(fd, ask.data(), ask.size()), static_cast<ssize_t>(ask.size()));
    std::string got;
    char part[4096];
    for (ssize_t n; (n = ::read(fd, part, sizeof part)) > 0;) got.append(part, static_cast<size_t>(n));
    close(fd);
    return got;
}

TEST(Metrics, TheCompiledCatalogueIsTheFile) {
    EXPECT_EQ(catalogue_yaml(), file_text(std::string(kSourceDir) + "/metrics/metrics.yaml"));
}

TEST(Metrics, EveryNameFollowsPrometheusPractice) {
    for (const Entry& e : parse_catalogue(catalogue_yaml())) {
        EXPECT_TRUE(std::regex_match(e.name, std::regex("patchbay_[a-z0-9_]+"))) << e.name;
        EXPECT_EQ(e.type == "counter", e.name.ends_with("_total")) << e.name;
        EXPECT_FALSE(e.help.empty()) << e.name;
        EXPECT_EQ(e.type == "histogram", !e.buckets.empty()) << e.name;
        EXPECT_TRUE(std::is_sorted(e.buckets.begin(), e.buckets.end())) << e.name;
    }
}

TEST(Metrics, DocsNameEveryMetricAndNoOther) {
    const std::string docs = file_text(std::string(kSourceDir) + "/docs/metrics.md");
    for (const Entry& e : parse_catalogue(catalogue_yaml())) {
        std::string labels;
        for (const std::string& l : e.labels) labels += (labels.empty() ? " " : ", ") + l;
        const std::string row = "| `" + e.name + "` | " + e.type + " |" + labels + (labels.empty() ? "  | " : " | ") +
                                e.help + " |\n";
        EXPECT_NE(docs.find(row), std::string::npos) << row;
    }
    const std::regex row("\\| `(patchbay_[a-z0-9_]+)` \\|");
    for (auto at = std::sregex_iterator(docs.begin(), docs.end(), row); at != std::sregex_iterator(); ++at)
        EXPECT_NE(catalogue_yaml().find("  " + (*at)[1].str() + ":"), std::string::npos) << (*at)[1];
}

TEST(Metrics, AnUnknownNameTypeOrLabelIsAMistakeInTheProgram) {
    Metrics m;
    EXPECT_THROW(m.counter("patchbay_no_such_total"), std::logic_error);
    EXPECT_THROW(m.gauge("patchbay_steps_total"), std::logic_error);
    EXPECT_THROW(m.counter("patchbay_requests_finished_total"), std::logic_error);
    EXPECT_NO_THROW(m.counter("patchbay_requests_finished_total", {{"reason", "stop"}}));
}

TEST(Metrics, APluginCannotFloodTheRegistry) {
    Metrics m;
    for (int i = 0; i < 200; ++i) m.plugin_set("scheduler", "mine", "x" + std::to_string(i), 1);
    m.plugin_set("scheduler", "mine", "Bad Name", 1);
    m.plugin_add("scheduler", "mine", "x0", -1);
    m.plugin_set("scheduler", "other", "a_total", 1); // would be a counter's name
    m.plugin_add("scheduler", "other", "a", 2);
    m.plugin_add("sampler", "other", "a", 3);
    m.plugin_set("sampler", "other", "info", 5); // the catalogue's own
    const std::string text = m.text();
    EXPECT_NE(text.find("patchbay_plugin_x0{kind=\"scheduler\",plugin=\"mine\"} 1"), std::string::npos) << text;
    EXPECT_EQ(text.find("patchbay_plugin_x64"), std::string::npos);
    EXPECT_EQ(text.find("Bad"), std::string::npos);
    EXPECT_EQ(text.find("patchbay_plugin_info"), std::string::npos);
    EXPECT_NE(text.find("patchbay_plugin_a_total{kind=\"scheduler\",plugin=\"other\"} 2"), std::string::npos) << text;
    EXPECT_NE(text.find("patchbay_plugin_a_total{kind=\"sampler\",plugin=\"other\"} 3"), std::string::npos) << text;
}

TEST(Metrics, AScrapeOverHttpGivesTheTextFormat) {
    Metrics m;
    m.counter("patchbay_steps_total").Increment(3);
    m.histogram("patchbay_step_seconds").Observe(0.003);
    const Server server(0, m);
    const std::string got = http_get(server.port(), "/metrics");
    EXPECT_NE(got.find("200 OK"), std::string::npos) << got;
    EXPECT_NE(got.find("# TYPE patchbay_steps_total counter\npatchbay_steps_total 3"), std::string::npos) << got;
    EXPECT_NE(got.find("patchbay_step_seconds_bucket{le=\"0.005\"} 1"), std::string::npos) << got;
    EXPECT_NE(got.find("patchbay_step_seconds_bucket{le=\"0.002\"} 0"), std::string::npos) << got;
}

TEST(Metrics, HistogramsTellWhatSmallModelsLongQueuesAndLongPromptsTake) {
    Metrics m;
    for (const auto& [name, value] : {std::pair("patchbay_time_to_first_token_seconds", 0.00017),
                                      std::pair("patchbay_inter_token_latency_seconds", 0.00002),
                                      std::pair("patchbay_step_seconds", 90.0),
                                      std::pair("patchbay_request_prompt_tokens", 1e6)}) {
        m.histogram(name).Observe(value);
        const Scrape none, now(m.text());
        const double median = Interval(none, now, 1).quantile(name, 0.5);
        EXPECT_GE(median, value / 2) << name;
        EXPECT_LE(median, value * 2) << name;
    }
    m.histogram("patchbay_plugin_call_seconds", {{"kind", "model"}, {"plugin", "p"}, {"call", "forward"}}).Observe(90);
    const Scrape none, now(m.text());
    EXPECT_GE(Interval(none, now, 1).quantile("patchbay_plugin_call_seconds", 0.5), 45);
}

TEST(Metrics, AScrapeHasNothingThatIsNotDocumented) {
    const std::string documented = file_text(std::string(kSourceDir) + "/docs/metrics.md");
    Metrics m;
    m.counter("patchbay_steps_total").Increment();
    const Server server(0, m);
    http_get(server.port(), "/metrics");
    const std::string got = http_get(server.port(), "/metrics"); // the second one counts the first
    const std::regex family("# TYPE (\\w+)");
    size_t families = 0;
    for (auto at = std::sregex_iterator(got.begin(), got.end(), family); at != std::sregex_iterator(); ++at, ++families)
        EXPECT_NE(documented.find("| `" + (*at)[1].str() + "` |"), std::string::npos) << (*at)[1];
    EXPECT_GT(families, 1u) << got;
}

TEST(Metrics, AnOccupiedPortIsSaid) {
    Metrics m;
    const Server first(0, m);
    try {
        const Server second(first.port(), m);
        FAIL() << "both serve port " << first.port();
    } catch (const std::runtime_error& e) {
        EXPECT_EQ(e.what(),
                  "cannot serve metrics on port " + std::to_string(first.port()) + ": Address already in use");
    }
}

// The scrape has its answer from among more silent connections than the server has threads and places in line.
TEST(Server, AnswersBesideHundredsOfSilentConnections) {
    Metrics m;
    const Server server(0, m);
    std::vector<int> silent;
    for (int i = 0; i < 300; ++i) silent.push_back(connected_to(server.port()));
    const int scraper = connected_to(server.port());
    const timeval patience{60, 0};
    setsockopt(scraper, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const std::string ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    ASSERT_EQ(write(scraper, ask.data(), ask.size()), static_cast<ssize_t>(ask.size()));
    char answer[16] = {};
    ASSERT_GT(::read(scraper, answer, sizeof answer - 1), 0) << "no answer";
    EXPECT_TRUE(std::string(answer).starts_with("HTTP/1.1 200")) << answer;
    for (const int fd : silent) close(fd);
    close(scraper);
}

}  // namespace
}  // namespace patchbay::metrics::metrics_test
