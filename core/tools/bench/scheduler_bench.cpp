#include "bench/scheduler_bench.hpp"

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "bench/times.hpp"
#include "engine/engine.hpp"
#include "patchbay/sdk/philox.hpp"
#include "scenario/leave_out_model.hpp"
#include "service/run_to_end.hpp"

namespace patchbay::bench {
namespace {

constexpr uint32_t kVocabSize = 32'000, kWarmUp = 64; // steps

// The host's own time: what the device charges is never waited for.
class HostClock final : public Clock {
  public:
    uint64_t now_ns() const override { return clock_.now_ns(); }
    void wait_until_ns(uint64_t) override {}

  private:
    RealClock clock_;
};

// Until all decode: policies that cut prompts to chunks, with decodes among them, take several steps a prompt.
uint32_t steps_to_fill(const SchedulerCase& asked) { return 8 * asked.running + kWarmUp; }

void size_engine(config::EngineConfig& c, const SchedulerCase& asked) {
    config::EngineSettings& e = c.engine;
    const uint32_t length = asked.prompt + asked.steps + kWarmUp + steps_to_fill(asked) + 1;
    e.max_model_len = length;
    e.max_num_seqs = asked.running;
    e.max_num_batched_tokens = std::max(2 * asked.running, 16 * asked.prompt);
    e.num_blocks = (asked.running + 1) * ((length + e.block_size - 1) / e.block_size + 1);
    e.max_waiting = 0;
    e.async_scheduling = config::AsyncScheduling::kOff;
    c.proposer.reset();
    scenario::leave_out_model(c, kVocabSize);
}

Result<> add(engine::Engine& e, const SchedulerCase& asked, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) {
        engine::Request request;
        for (uint32_t t = 0; t < asked.prompt; ++t)
            request.prompt.push_back(static_cast<int32_t>(draw(i, t, Stream::kTest, 0)[0] % kVocabSize));
        request.sampling.temperature = 0;
        request.sampling.ignore_eos = true;
        request.sampling.max_tokens = e.facts().max_model_len - asked.prompt;
        request.expected_output_tokens = request.sampling.max_tokens;
        request.on_output = [](const engine::RequestOutput&) {};
        if (const auto id = e.add_request(std::move(request)); !id) return id.failure();
    }
    return {};
}

double seconds_in(const engine::StepReport& r, engine::Phase phase) {
    return static_cast<double>(r.phase_ns[static_cast<size_t>(phase)]) * 1e-9;
}

StepTimes times_of(const engine::StepReport& r) {
    using engine::Phase;
    StepTimes t;
    t.plugin = static_cast<double>(r.calls.plan_ns) * 1e-9;
    t.plan = seconds_in(r, Phase::kPlan);
    t.apply = seconds_in(r, Phase::kApply);
    t.build = seconds_in(r, Phase::kBuild);
    t.sum = t.plan + t.apply + t.build;
    t.rest = static_cast<double>(r.end_ns - r.start_ns) * 1e-9 - t.sum - seconds_in(r, Phase::kRun) -
             seconds_in(r, Phase::kSample);
    return t;
}

constexpr double StepTimes::*kStepParts[] = {&StepTimes::plugin, &StepTimes::plan, &StepTimes::apply,
                                         &StepTimes::build,  &StepTimes::sum,  &StepTimes::rest};
constexpr const char* kNames[] = {"plugin", "plan", "apply", "build", "sum", "rest"};

StepTimes summary_of(const std::vector<StepTimes>& steps, double share) {
    StepTimes out;
    for (const auto part : kStepParts) {
        std::vector<double> values;
        for (const StepTimes& s : steps) values.push_back(s.*part);
        out.*part = at_share(std::move(values), share);
    }
    return out;
}

nlohmann::json json_of(const StepTimes& t) {
    nlohmann::json out;
    for (size_t i = 0; i < std::size(kStepParts); ++i) out[std::string(kNames[i]) + "_seconds"] = t.*kStepParts[i];
    return out;
}

}  // namespace

Result<std::vector<DecodingStep>> decoding_steps(config::EngineConfig config, const host::Registry& registry,
                                                 const SchedulerCase& asked) {
    size_engine(config, asked);
    HostClock clock;
    PB_TRY(const auto engine, engine::Engine::create(config, registry, clock));
    PB_CHECK(add(*engine, asked, 0, asked.running));
    uint32_t decoding = 0, taken = 0;
    const auto fills = [&] { return decoding < asked.running && taken <= steps_to_fill(asked); };
    const auto look = [&](const engine::StepReport& r) {
        decoding = r.work.decode_tokens;
        taken += 1;
    };
    PB_CHECK(service::run_to_end(*engine, {fills, look}));
    if (decoding < asked.running)
        return fail("scheduler '" + config.scheduler.plugin + "' decodes " + std::to_string(decoding) +
                    " sequences at once, expected " + std::to_string(asked.running) +
                    " (perhaps decodes leave no tokens of its budget for prompts: run fewer)");
    PB_CHECK(add(*engine, asked, asked.running, asked.waiting));
    std::vector<DecodingStep> out;
    const auto goes_on = [&] { return out.size() < size_t{kWarmUp} + asked.steps; };
    const auto note = [&](const engine::StepReport& r) { out.push_back({times_of(r), r.work.decode_tokens}); };
    PB_CHECK(service::run_to_end(*engine, {goes_on, note}));
    out.erase(out.begin(), out.begin() + kWarmUp);
    return out;
}

Result<SchedulerResult> bench_scheduler(const config::EngineConfig& config, const host::Registry& registry,
                                        const SchedulerCase& asked) {
    PB_TRY(const auto decoding, decoding_steps(config, registry, asked));
    SchedulerResult out{asked, {}, {}, 0};
    std::vector<StepTimes> steps;
    for (const DecodingStep& step : decoding) {
        steps.push_back(step.times);
        out.decoding += static_cast<double>(step.decoding) / asked.steps;
    }
    out.median = summary_of(steps, 0.5);
    out.p99 = summary_of(steps, 0.99);
    return out;
}

std::string table_of(const std::string& scheduler, const std::vector<SchedulerResult>& results) {
    std::string out = "scheduler " + scheduler + "; µs a step, medians\n\n";
    out += printed("%8s %8s %8s | %8s %8s %8s %8s | %8s %8s | %8s\n", "running", "waiting", "prompt", "plugin", "plan",
                   "apply", "build", "sum", "p99", "rest");
    for (const SchedulerResult& r : results) {
        const StepTimes& m = r.median;
        out += printed("%8u %8u %8u | %8.1f %8.1f %8.1f %8.1f | %8.1f %8.1f | %8.1f\n", r.asked.running,
                       r.asked.waiting, r.asked.prompt, m.plugin * 1e6, m.plan * 1e6, m.apply * 1e6, m.build * 1e6,
                       m.sum * 1e6, r.p99.sum * 1e6, m.rest * 1e6);
    }
    out += "\nplugin: inside the scheduler; plan: with what it is shown and the check of its plan; sum: plan + apply + "
           "build;\nrest: of the step, outside the forward pass and the sampler\n";
    for (const SchedulerResult& r : results)
        if (r.decoding < 0.99 * r.asked.running) {
            out += printed("with %u waiting %.0f of %u decode in a step: others move in\n", r.asked.waiting, r.decoding,
                           r.asked.running);
        }
    return out;
}

std::string json_of(const std::string& scheduler, const std::vector<SchedulerResult>& results) {
    nlohmann::json out = {{"scheduler", scheduler}, {"cases", nlohmann::json::array()}};
    for (const SchedulerResult& r : results)
        out["cases"].push_back({{"running", r.asked.running},
                                {"waiting", r.asked.waiting},
                                {"prompt", r.asked.prompt},
                                {"steps", r.asked.steps},
                                {"decoding", r.decoding},
                                {"median", json_of(r.median)},
                                {"p99", json_of(r.p99)}});
    return out.dump(2);
}

}  // namespace patchbay::bench
