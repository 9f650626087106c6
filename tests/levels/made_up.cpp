#include "made_up.hpp"

#include <cmath>
#include <random>

#include "experiment/matrix.hpp"

namespace patchbay::experiment::levels {
namespace {

using Random = std::mt19937_64;

double normal(Random& random) { return std::normal_distribution<double>()(random); }

// Of a run or of one of its metrics, in logarithms; the scale is the one that bars are set for: 2 % of normal noise.
double noise_of(Noise noise, Random& random) {
    switch (noise) {
        case Noise::kLognormal: return 0.3 * normal(random);
        case Noise::kHeavy: return 0.02 * std::student_t_distribution<double>(2)(random);
        default: return 0.02 * normal(random);
    }
}

// Machines that get slower as they get warm, and wander: in logarithms, by the position of a run.
std::vector<double> drift(Noise noise, size_t runs, Random& random) {
    std::vector<double> out(runs, 0.0);
    if (noise != Noise::kDrift) return out;
    const double slope = 0.1 * normal(random) / static_cast<double>(runs);
    double wandering = 0;
    for (size_t i = 0; i < runs; ++i) {
        wandering += 0.01 * normal(random);
        out[i] = slope * static_cast<double>(i) + wandering;
    }
    return out;
}

}  // namespace

const char* name_of(Noise n) {
    switch (n) {
        case Noise::kNormal: return "normal";
        case Noise::kLognormal: return "lognormal";
        case Noise::kDrift: return "drift";
        case Noise::kHeavy: return "heavy tails";
    }
    return "";
}

Question question() {
    return {.baseline = 0, .primary = default_primary({100, {}, {}}), .windows = {}, .first_stage = {}};
}

Measured made_up(const Plan& plan, uint64_t seed) {
    Random random(seed);
    const size_t metrics = metric_infos().size();
    Measured m;
    m.values.assign(plan.variants, std::vector(metrics, std::vector<double>(plan.repeats)));
    std::vector<double> workload(plan.repeats * metrics);
    for (double& w : workload) w = 0.3 * normal(random);
    const auto order = run_order(plan.variants, plan.repeats, seed);
    const auto drifts = drift(plan.noise, order.size(), random);
    const double half = std::sqrt(0.5);
    for (size_t position = 0; position < order.size(); ++position) {
        const RunSlot& run = order[position];
        const double shared = noise_of(plan.noise, random);
        for (size_t i = 0; i < metrics; ++i) {
            const double own = half * (shared + noise_of(plan.noise, random)) + drifts[position];
            const bool affected = !plan.effects.empty() && plan.affected.value_or(i) == i;
            const double effect = affected ? std::log(plan.effects[run.variant]) : 0;
            const bool amount = metric_infos()[i].is_amount;
            const double of_repeat = amount ? workload[run.repeat * metrics + i] : 0;
            m.values[run.variant][i][run.repeat] = 60 * std::exp(of_repeat + own + effect);
        }
    }
    return m;
}

std::vector<RunSummary> made_up_runs(size_t variants, uint32_t repeats, uint64_t seed) {
    constexpr uint32_t kRequests = 40, kTokens = 3;
    Random random(seed);
    std::vector<std::vector<double>> sizes(repeats, std::vector<double>(kRequests));
    for (auto& of_repeat : sizes)
        for (double& size : of_repeat) size = 50 * std::exp(normal(random)); // ms
    std::vector<RunSummary> runs;
    for (const RunSlot& slot : run_order(variants, repeats, seed)) {
        RunRecord run;
        run.variant = slot.variant;
        run.repeat = slot.repeat;
        run.position = static_cast<uint32_t>(runs.size());
        const double speed = std::exp(0.02 * normal(random));
        for (uint32_t k = 0; k < kRequests; ++k) {
            RequestRecord& r = run.requests.emplace_back();
            r.arrival_ns = k * 20'000'000ull;
            r.prompt_tokens = 8;
            double at = static_cast<double>(r.arrival_ns);
            for (uint32_t t = 0; t < kTokens; ++t) {
                at += 1e6 * speed * (t == 0 ? sizes[slot.repeat][k] : 10) * std::exp(0.1 * normal(random));
                r.token_ns.push_back(static_cast<uint64_t>(at));
            }
            r.output.assign(kTokens, 1);
            r.finish_ns = r.token_ns.back();
            r.finish = engine::FinishReason::kLength;
            run.duration_ns = std::max(run.duration_ns, r.finish_ns);
        }
        runs.push_back(summary_of(run, {.slo = {100, {}, {}}}));
    }
    return runs;
}

}  // namespace patchbay::experiment::levels
