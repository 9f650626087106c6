// What the contract calls [any] may come from any thread, from several at once.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <map>
#include <mutex>
#include <sstream>

#include "base/clock.hpp"
#include "unit/host/host_fixture.hpp"

namespace patchbay::host::threads_test {
namespace {

class Sums : public MetricSink {
  public:
    void add(const std::string&, const std::string&, const std::string& name, double amount) override {
        const std::lock_guard lock(mutex_);
        values_[name] += amount;
    }
    void set(const std::string&, const std::string&, const std::string& name, double value) override {
        const std::lock_guard lock(mutex_);
        values_[name] = value;
    }
    double of(const std::string& name) const {
        const std::lock_guard lock(mutex_);
        const auto at = values_.find(name);
        return at == values_.end() ? 0 : at->second;
    }

  private:
    mutable std::mutex mutex_;
    std::map<std::string, double> values_;
};

TEST(Threads, ManyMayLogFailMeasureAndCountAtOnce) {
    constexpr double kCalls = 4 * 500; // of crowd.cpp
    std::ostringstream text;
    const auto before = spdlog::default_logger();
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
    logger->set_pattern("%v");
    spdlog::set_default_logger(logger);
    RealClock real;
    Sums sums;
    const pb_clock clock{sizeof clock, PB_CLOCK_REVISION, &real,
                         [](void* ctx) { return static_cast<RealClock*>(ctx)->now_ns(); }};
    const auto library = must(Library::open(built("crowd"), ""));
    const auto crowd = must(Component::create(library, library->components()[0].type(), {}, {nullptr, &clock, &sums}));
    pb_scheduler_in in = sized<pb_scheduler_in>();
    in.sequence_stride = sizeof(pb_sequence);
    pb_scheduler_out out = sized<pb_scheduler_out>();
    const Result<> done = checked<&pb_scheduler::plan>(*crowd, &in, &out);
    spdlog::set_default_logger(before);
    ASSERT_TRUE(done) << done.error();
    EXPECT_EQ(crowd->why(), "the reason of one among many");
    EXPECT_EQ(sums.of("words"), kCalls);
    EXPECT_EQ(sums.of("latest"), 499);
    EXPECT_EQ(sums.of("steps_back"), 0);
    size_t lines = 0;
    std::istringstream said(text.str());
    for (std::string line; std::getline(said, line); ++lines)
        EXPECT_EQ(line, "scheduler crowd: a word of one among many");
    EXPECT_EQ(lines, kCalls);
}

}  // namespace
}  // namespace patchbay::host::threads_test
