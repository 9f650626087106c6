// Host time of a step beside its model: plan + check + apply + batch build, by scheduler, sequences that decode and
// sequences that wait. `patchbay bench scheduler` prints the parts.
#include <benchmark/benchmark.h>

#include <cstdio>

#include "bench/scheduler_bench.hpp"
#include "paths.hpp"

namespace {

using namespace patchbay;

constexpr uint32_t kSteps = 1000;

void step(benchmark::State& state, const host::Registry& registry, const char* scheduler) {
    config::EngineConfig config;
    config.scheduler.plugin = scheduler;
    const bench::SchedulerCase asked{.running = static_cast<uint32_t>(state.range(0)),
                                     .waiting = static_cast<uint32_t>(state.range(1)),
                                     .steps = kSteps};
    const auto steps = bench::decoding_steps(config, registry, asked);
    if (!steps) return state.SkipWithError(steps.error().c_str());
    auto at = steps->begin();
    for (auto _ : state) state.SetIterationTime((at++)->times.sum); // kSteps iterations
}

}  // namespace

int main(int argc, char** argv) {
    const auto registry = host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"});
    if (!registry) return std::fprintf(stderr, "%s\n", registry.error().c_str()), 1;
    for (const char* scheduler : {"fcfs", "priority", "sjf", "edf"})
        benchmark::RegisterBenchmark((std::string("step/") + scheduler).c_str(),
                                     [&registry, scheduler](benchmark::State& state) {
                                         step(state, *registry, scheduler);
                                     })
            ->ArgNames({"running", "waiting"})
            ->Args({256, 0})
            ->Args({256, 10'000})
            ->UseManualTime()
            ->Iterations(kSteps)
            ->Unit(benchmark::kMicrosecond);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
