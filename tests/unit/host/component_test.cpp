// One component: its settings, the services that it is given, its state, and that nothing it throws gets out.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <map>
#include <sstream>

#include "base/thread_pool.hpp"
#include "unit/host/host_fixture.hpp"

namespace patchbay::host::component_test {
namespace {

using ::testing::HasSubstr;

// What is logged while the object lives, a line a message: "warning text".
class CapturedLog {
  public:
    CapturedLog() : before_(spdlog::default_logger()) {
        auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
        logger->set_pattern("%l %v");
        logger->set_level(spdlog::level::trace);
        spdlog::set_default_logger(logger);
    }
    ~CapturedLog() { spdlog::set_default_logger(before_); }
    std::string text() const { return text_.str(); }

  private:
    std::ostringstream text_;
    std::shared_ptr<spdlog::logger> before_;
};

class Sums : public MetricSink {
  public:
    void add(const std::string& kind, const std::string& component, const std::string& name, double amount) override {
        values[kind + " " + component + " " + name] += amount;
    }
    void set(const std::string& kind, const std::string& component, const std::string& name, double value) override {
        values[kind + " " + component + " " + name] = value;
    }
    std::map<std::string, double> values;
};

class ComponentTest : public HostTest {
  protected:
    static Result<std::unique_ptr<Component>> make(const std::string& plugin, const Settings& settings,
                                                   const Services& services = {}, bool* unavailable = nullptr) {
        auto library = must(Library::open(built(plugin), ""));
        const pb_component* type = &library->components()[0].type();
        return Component::create(std::move(library), *type, settings, services, unavailable);
    }
    static std::string refusal(const std::string& plugin, const Settings& settings) {
        return error_of(make(plugin, settings));
    }

    // Calls a scheduler without sequences.
    static Result<> plan(const Component& c) {
        pb_scheduler_in in{};
        in.struct_size = sizeof in;
        in.sequence_stride = sizeof(pb_sequence);
        in.block_size = 16;
        pb_scheduler_out out{};
        out.struct_size = sizeof out;
        return c.check(static_cast<const pb_scheduler*>(c.type().vtable)->plan(c.self(), &in, &out), "plan");
    }
};

TEST_F(ComponentTest, GetsEverySettingOfItsSchemaWithDefaults) {
    CapturedLog log;
    must(make("talker", {{"word", "hello"}, {"volume", "10"}}));
    EXPECT_THAT(log.text(), HasSubstr("warning scheduler talker: hello 10 0.5 false low\n"));
}

TEST_F(ComponentTest, TakesNewValuesOfItsHotParametersOrKeepsAll) {
    CapturedLog log;
    Sums sums;
    const auto c = must(make("talker", {{"word", "a"}}, {.metrics = &sums}));
    const auto refusal_of = [&](const Settings& changes) { return error_of(c->configure(changes)); };
    ASSERT_TRUE(c->configure({{"volume", "7"}}));
    EXPECT_EQ(sums.values["scheduler talker volume"], 7);
    EXPECT_EQ(refusal_of({{"volume", "11"}}), "scheduler 'talker': configure: 'volume' is 11, expected 1 to 10 dB");
    EXPECT_EQ(refusal_of({{"volume", "8"}, {"pitch", "1"}}),
              "scheduler 'talker': configure: 'pitch' takes another value with a swap only");
    EXPECT_EQ(refusal_of({{"volume", "9"}}), "scheduler 'talker': configure: no breath left");
    EXPECT_EQ(c->configure({{"volume", "9"}}).code(), StatusCode::kExhausted);
    EXPECT_EQ(c->settings().at("volume"), "7");
    EXPECT_EQ(sums.values["scheduler talker volume"], 7);
    ASSERT_TRUE(c->configure({{"volume", "2"}, {"pitch", "0.5"}})) << "pitch stays as it is";
    EXPECT_EQ(c->settings().at("volume"), "2");
}

TEST_F(ComponentTest, IsNotConstructedWithSettingsThatItsSchemaRefuses) {
    CapturedLog log;
    EXPECT_EQ(refusal("talker", {{"word", "a"}, {"volum", "1"}}),
              "unknown key 'volum' of scheduler 'talker' (did you mean 'volume'?)");
    EXPECT_EQ(refusal("talker", {{"word", "a"}, {"volume", "11"}}), "'volume' is 11, expected 1 to 10 dB");
    EXPECT_EQ(refusal("talker", {{"word", "a"}, {"voice", "hihg"}}),
              "'voice' is 'hihg', expected one of high, low (did you mean 'high'?)");
    EXPECT_EQ(refusal("talker", {}), "scheduler 'talker' needs 'word': what to say");
    EXPECT_EQ(log.text(), "") << "it was constructed";
}

TEST_F(ComponentTest, LogsUnderItsOwnNameAtItsOwnLevel) {
    CapturedLog log;
    must(make("talker", {{"word", "a"}}));
    EXPECT_THAT(log.text(), ::testing::StartsWith("warning scheduler talker: "));
    EXPECT_THAT(log.text(), HasSubstr("debug scheduler talker: a detail\n"));
}

TEST_F(ComponentTest, HasTheHostsClockPoolAndMetrics) {
    CapturedLog log;
    ThreadPool pool(3);
    uint64_t now = 1234;
    const pb_clock clock{sizeof(pb_clock), 0, &now, [](void* ctx) { return *static_cast<const uint64_t*>(ctx); }};
    Sums sums;
    must(make("talker", {{"word", "a"}}, {&pool.service(), &clock, &sums}));
    EXPECT_EQ(sums.values,
              (std::map<std::string, double>{{"scheduler talker created_ns", 1234}, {"scheduler talker work", 28}}));
}

TEST_F(ComponentTest, DoesWithoutServicesThatTheHostDoesNotOffer) {
    CapturedLog log;
    EXPECT_TRUE(make("talker", {{"word", "a"}}));
}

TEST_F(ComponentTest, CarriesItsStateToAnotherObject) {
    CapturedLog log;
    const auto first = must(make("talker", {{"word", "a"}})), second = must(make("talker", {{"word", "b"}}));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(plan(*first));
    EXPECT_EQ(must(first->save()), "asked 3\n");
    ASSERT_TRUE(second->load("talker/1", must(first->save())));
    ASSERT_TRUE(plan(*second));
    EXPECT_EQ(must(second->save()), "asked 4\n");
    ASSERT_TRUE(second->load("talker/1", "whispered 9\n")) << "a field that is missing leaves the value";
    EXPECT_EQ(must(second->save()), "asked 4\n");
}

TEST_F(ComponentTest, RefusesStateThatItCannotReadAndKeepsItsOwn) {
    CapturedLog log;
    const auto talker = must(make("talker", {{"word", "a"}}));
    ASSERT_TRUE(plan(*talker));
    EXPECT_EQ(talker->load("parrot/1", "asked 7\n").error(), "scheduler 'talker': load: cannot read state 'parrot/1'");
    EXPECT_EQ(talker->load("talker/1", "asked 7").error(), "scheduler 'talker': load: saved state is torn");
    EXPECT_EQ(talker->load("talker/1", "asked much\n").error(), "scheduler 'talker': load: asked: cannot read 'much'");
    EXPECT_EQ(must(talker->save()), "asked 1\n");
}

TEST_F(ComponentTest, WithoutStateSavesNothingAndLoadsAnything) {
    const auto thrower = must(make("throwers", {{"at", "never"}}));
    EXPECT_EQ(must(thrower->save()), "");
    EXPECT_TRUE(thrower->load("whatever/1", "x"));
}

TEST_F(ComponentTest, WhatItsConstructorThrowsIsARefusal) {
    bool unavailable = false;
    EXPECT_EQ(error_of(make("throwers", {{"at", "create"}, {"what", "exception"}}, {}, &unavailable)),
              "scheduler 'thrower': create: index 7 of 3");
    EXPECT_FALSE(unavailable);
    EXPECT_EQ(error_of(make("throwers", {{"at", "create"}, {"what", "error"}}, {}, &unavailable)),
              "scheduler 'thrower': create: out of patience");
    EXPECT_TRUE(unavailable);
    EXPECT_EQ(refusal("throwers", {{"at", "create"}, {"what", "number"}}),
              "scheduler 'thrower': create: unknown exception");
}

TEST_F(ComponentTest, WhatACallThrowsIsItsFailureAndTheNextCallMayWork) {
    const auto thrower = must(make("throwers", {{"what", "exception"}})),
               calm = must(make("throwers", {{"at", "never"}}));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(plan(*thrower).error(), "scheduler 'thrower': plan: index 7 of 3");
    EXPECT_TRUE(plan(*calm)) << "an error is of one component";
    EXPECT_EQ(thrower->check(PB_FAILED, "plan").error(), "scheduler 'thrower': plan: failed")
        << "an error is of one call";
}

TEST_F(ComponentTest, AStatusWithoutWordsHasThemFromTheHost) {
    const auto c = must(make("throwers", {{"at", "never"}}));
    EXPECT_TRUE(c->check(PB_OK, "plan"));
    EXPECT_EQ(c->check(PB_INVALID, "plan").error(), "scheduler 'thrower': plan: invalid argument");
    EXPECT_EQ(c->check(PB_UNSUPPORTED, "plan").error(), "scheduler 'thrower': plan: not supported");
    EXPECT_EQ(c->check(PB_BAD_STATE, "plan").error(), "scheduler 'thrower': plan: bad state");
    EXPECT_EQ(c->check(PB_UNAVAILABLE, "plan").error(), "scheduler 'thrower': plan: not available on this machine");
    EXPECT_EQ(c->check(-7, "plan").error(), "scheduler 'thrower': plan: failed");
}

TEST_F(ComponentTest, WhatANotificationThrowsIsLogged) {
    CapturedLog log;
    const auto c = must(make("throwers", {{"at", "notice"}}));
    const pb_sequence s{};
    static_cast<const pb_scheduler*>(c->type().vtable)->arrived(c->self(), &s, sizeof s);  // has no status
    EXPECT_EQ(log.text(), "error scheduler thrower: arrived: index 7 of 3\n");
    EXPECT_TRUE(plan(*c));
}

}  // namespace
}  // namespace patchbay::host::component_test
