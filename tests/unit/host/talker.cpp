// A scheduler that logs what it is given and uses every service of the host. It keeps how often it was asked.
#include "patchbay/sdk/scheduler.hpp"

namespace {

class Talker {
  public:
    static constexpr const char* kVoices[] = {"high", "low", nullptr};
    static constexpr pb_param kParams[] = {
        patchbay::param::text("word", nullptr, "what to say"),
        patchbay::param::integer("volume", "3", 1, 10, "dB", "how loud to say it", PB_PARAM_HOT),
        patchbay::param::real("pitch", "0.5", 0, 1, nullptr, "how to say it"),
        patchbay::param::boolean("twice", "false", "whether to say it again"),
        patchbay::param::choice("voice", "low", kVoices, "who says it"),
    };

    explicit Talker(const patchbay::Context& context) : metrics_(context.host()) {
        const pb_host& host = context.host();
        patchbay::log(host, PB_LOG_WARN,
                      context.get<std::string>("word") + " " + context.get<std::string>("volume") + " " +
                          context.get<std::string>("pitch") + " " + context.get<std::string>("twice") + " " +
                          context.get<std::string>("voice"));
        patchbay::log(host, PB_LOG_DEBUG, "a detail");
        const auto* clock = static_cast<const pb_clock*>(host.service(host.ctx, PB_SERVICE_CLOCK));
        if (clock) metrics_.set("created_ns", static_cast<double>(clock->now_ns(clock->ctx)));
        uint32_t done[8] = {};
        patchbay::Pool(host).run(8, [&](uint32_t i) { done[i] = i; });
        for (const uint32_t i : done) metrics_.add("work", i);
        if (host.service(host.ctx, "patchbay.teapot/1"))
            throw patchbay::Error(PB_INVALID, "the host offers an unknown service");
    }

    void configure(const patchbay::Context& context) {
        const auto volume = context.get<uint32_t>("volume");
        if (volume == 9) throw patchbay::Error(PB_EXHAUSTED, "no breath left");
        metrics_.set("volume", volume);
    }
    void plan(const patchbay::SchedulerStep&, patchbay::Plan&) { asked_ += 1; }
    void save(patchbay::Writer& out) const { out.put("asked", asked_); }
    void load(const patchbay::Reader& in) {
        if (in.schema() != "talker/1")
            throw patchbay::Error(PB_BAD_STATE, "cannot read state '" + std::string(in.schema()) + "'");
        in.get("asked", asked_);
    }

  private:
    patchbay::Metrics metrics_;
    uint64_t asked_ = 0;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::scheduler<Talker>(
    {.name = "talker", .version = "1.2.3", .summary = "logs what it is given", .state = "talker/1"}))
