// The libraries that were built on the day of the freeze, tests/abi/frozen, load and do to the letter what they did on
// that day: they pass every check, plan and sample what is written here, run in an engine as the same source built
// today does, and take a slot over from one another between steps.
#include <gmock/gmock.h>

#include <map>
#include <memory>

#include "conformance/run.hpp"
#include "engine/engine_control.hpp"
#include "host/prober.hpp"
#include "host/registry.hpp"
#include "patchbay/testing/sampler.hpp"
#include "patchbay/testing/scheduler.hpp"
#include "paths.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "unit/host/host_fixture.hpp"

namespace patchbay::frozen_test {
namespace {

using namespace engine::testing;
using engine::SwapSlot;
using engine::TokenId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Texts = std::vector<std::vector<TokenId>>;

// Of their bytes: they are those of that day.
const std::map<std::string, std::string> kDigests = {
    {"sampler-clang++.so", "0a61f689b00eb17c"},
    {"sampler-g++.so", "981ac9b24c6e3b33"},
    {"sampler-gcc.so", "bb19f3cb68aa74cd"},
    {"scheduler-clang++.so", "656c87217367b3d0"},
    {"scheduler-g++.so", "9385ea3d20d289b8"},
    {"scheduler-gcc.so", "0427d93cd97eaaec"},
};

constexpr const char *kGnu = "g++", *kClang = "clang++", *kC = "gcc", *kToday = "today";

host::fs::path library(const std::string& kind, const std::string& compiler) {
    if (compiler == kToday) return host::fs::path(kBuildDir) / "tests/growth" / ("frozen-" + kind + ".so");
    return host::fs::path(kSourceDir) / "tests/abi/frozen" / (kind + "-" + compiler + ".so");
}

std::string name_of(const std::string& compiler) { return compiler == kC ? "kept_c" : "frozen"; }

// A library in a folder of its own, with the manifest that `patchbay plugin test` writes, beside the tree's plugins.
class Installed {
  public:
    Installed(const std::string& kind, const std::string& compiler)
        : folder_(std::make_unique<host::Folder>()), registry(open(*folder_, kind, compiler)) {}

  private:
    static host::Registry open(const host::Folder& folder, const std::string& kind, const std::string& compiler) {
        const host::fs::path file = folder / (kind + ".so");
        host::write(file, host::bytes_of(library(kind, compiler)));
        if (const auto done = host::write_manifest(host::manifest_of(file), host::manifest_path(file)); !done)
            throw std::runtime_error(done.error());
        return must(host::Registry::open({folder.path(), host::fs::path(kBuildDir) / "lib/patchbay/plugins"}));
    }
    std::unique_ptr<host::Folder> folder_;

  public:
    const host::Registry registry;
};

config::EngineConfig config_of(const std::string& kind, const std::string& name) {
    config::EngineConfig c = tiny_model();
    c.engine.num_blocks = 40; // not enough for all at once
    c.engine.max_num_batched_tokens = 48;
    (kind == "scheduler" ? c.scheduler.plugin : c.sampler.plugin) = name;
    return c;
}

void add_requests(Harness& h) {
    for (uint32_t i = 0; i < 8; ++i)
        h.add(random_prompt(i, 20 + 13 * (i % 6)), i % 2 == 0 ? greedy(24) : seeded(70 + i, 24));
}

Texts texts_of(Harness& h) {
    Texts out;
    for (const auto& [id, output] : h.run_all()) out.push_back(output.tokens);
    return out;
}

struct EngineRun {
    Texts texts;
    size_t steps;
    uint32_t preemptions = 0;
};

EngineRun run(const std::string& kind, const std::string& compiler) {
    const Installed its(kind, compiler);
    Harness h(config_of(kind, name_of(compiler)), its.registry);
    add_requests(h);
    EngineRun out{texts_of(h), h.steps.size()};
    for (const auto& [id, output] : h.outputs) out.preemptions += output.preemptions;
    return out;
}

struct Frozen : ::testing::TestWithParam<std::pair<std::string, std::string>> { // kind, compiler
    const std::string& kind() const { return GetParam().first; }
    const std::string& compiler() const { return GetParam().second; }
};

TEST_P(Frozen, LoadsAndPassesEveryCheckOfItsKind) {
    std::vector<std::string> failed;
    std::string name;
    size_t passed = 0;
    conformance::Listener listener;
    listener.begin = [&](const std::string&, const std::string& check) { name = check; };
    listener.end = [&](const conformance::Outcome& outcome) {
        if (outcome.what == conformance::Outcome::What::kFailed) failed.push_back(name + ": " + outcome.reason);
        passed += outcome.what == conformance::Outcome::What::kOk;
    };
    const auto manifest = conformance::run_all(library(kind(), compiler()), std::nullopt, listener);
    EXPECT_THAT(failed, IsEmpty());
    EXPECT_GT(passed, 20u);
    ASSERT_TRUE(manifest);
    EXPECT_EQ(manifest->sha256.substr(0, 16), kDigests.at(library(kind(), compiler()).filename().string()))
        << "these libraries are never built again: tests/abi/frozen/README.md";
    EXPECT_EQ(manifest->abi_minor, 0) << "it is of the day of the freeze";
    EXPECT_EQ(manifest->components.at(0).revision, 2u);
}

TEST_P(Frozen, RunsInAnEngineAsTheSameSourceBuiltToday) {
    const EngineRun its = run(kind(), compiler());
    ASSERT_EQ(its.texts.size(), 8u);
    for (const auto& text : its.texts) EXPECT_EQ(text.size(), 24u);
    if (compiler() == kC) return; // its source of today is in growth_test.cpp
    const EngineRun today = run(kind(), kToday);
    EXPECT_EQ(its.texts, today.texts);
    EXPECT_EQ(its.steps, today.steps);
    EXPECT_EQ(its.preemptions, today.preemptions);
    EXPECT_GT(its.preemptions, 0u) << "or there is too much memory to show anything";
}

INSTANTIATE_TEST_SUITE_P(Of, Frozen, ::testing::ValuesIn([] {
    std::vector<std::pair<std::string, std::string>> all;
    for (const char* kind : {"scheduler", "sampler"})
        for (const char* compiler : {kGnu, kClang, kC}) all.emplace_back(kind, compiler);
    return all;
}()), [](const auto& test) {
    std::string name = test.param.first + "_" + test.param.second;
    std::ranges::replace(name, '+', 'x');
    return name;
});

// At each boundary the other compiler's library takes over, its state with it; no text and no step changes.
TEST(FrozenLibraries, TakeASlotOverFromOneAnotherAtEveryStep) {
    host::Prober prober(host::ProbeOptions{.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
    for (const std::string kind : {"scheduler", "sampler"}) {
        const Installed gnu(kind, kGnu), clang(kind, kClang);
        const EngineRun alone = run(kind, kGnu);
        config::EngineConfig c = config_of(kind, "frozen");
        c.swap.probation_steps = 1;
        Harness h(c, gnu.registry);
        add_requests(h);
        std::vector<std::shared_ptr<host::Swap>> swaps;
        for (size_t n = 0; h.engine->has_unfinished() && n < 1000; ++n) {
            const auto& next = n % 2 == 0 ? clang.registry : gnu.registry;
            const SwapSlot slot = kind == "scheduler" ? SwapSlot::kScheduler : SwapSlot::kSampler;
            swaps.push_back(h.engine->control().swap({slot, config::PluginChoice{"frozen", {}}, next, prober}));
            h.step();
        }
        for (const auto& swap : swaps) // the last one perhaps in the step that ended all
            EXPECT_TRUE(swap->record().state == host::SwapState::kCommitted || swap == swaps.back())
                << swap->record().text();
        EXPECT_GT(swaps.size(), 20u) << kind;
        Texts texts;
        for (const auto& [id, output] : h.outputs) texts.push_back(output.tokens);
        EXPECT_EQ(texts, alone.texts) << kind;
        EXPECT_EQ(h.steps.size(), alone.steps) << kind;
    }
}

// ---- what they said on the day of the freeze ----------------------------------------------------

TEST(FrozenScheduler, PlansWhatItPlannedOnTheDayOfTheFreeze) {
    for (const char* compiler : {kGnu, kClang}) {
        testing::Scheduler s(testing::Plugin(library("scheduler", compiler)), {{"ageing", "1000"}});
        testing::Step step;
        step.max_num_batched_tokens = 300;
        step.max_num_seqs = 6;
        step.free_pages = 40;
        step.running = {testing::decoding(1, 40), testing::decoding(2, 64), testing::decoding(3, 100, 13)};
        step.waiting = {testing::waiting(4, 200, 999'000), testing::waiting(5, 90, 1'000'000),
                        testing::waiting(6, 500, 500'000)};
        for (const auto& all : {step.running, step.waiting})
            for (const pb_sequence& q : all) s.arrived(q);
        const auto plan = [&] {
            std::vector<std::pair<uint64_t, uint32_t>> out;
            for (const pb_plan_item& i : s.plan(step).items) out.emplace_back(i.id, i.tokens);
            return out;
        };
        using ::testing::Pair;
        EXPECT_THAT(plan(), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1), Pair(6, 297))) << compiler;
        s.component.configure({{"ageing", "0"}});
        EXPECT_THAT(plan(), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1), Pair(5, 90), Pair(4, 200), Pair(6, 7)))
            << compiler;
        step.free_pages = 0; // one of them begins a page
        const testing::Planned tight = s.plan(step);
        EXPECT_EQ(tight.preempts.size(), 1u) << compiler;
        EXPECT_TRUE(tight.preempts_sequence(3)) << compiler << ": of equal arrival the highest id";

        s.finished(1, 10);
        s.finished(2, 20, PB_FINISH_ABORT);
        s.finished(3, 30, PB_FINISH_LENGTH);
        EXPECT_EQ(s.host.metrics.at("ended"), 2) << compiler;
        EXPECT_EQ(s.host.metrics.at("mean_output_tokens"), 20) << compiler;
        EXPECT_EQ(s.component.save(), "ended 2\nmean 20\n") << compiler;
        s.component.load("ended 5\nmean 7.5\nof a later version 1\n");
        EXPECT_EQ(s.component.save(), "ended 5\nmean 7.5\n") << compiler;
    }
}

std::vector<testing::LogitRow> rows_of_that_day(const std::vector<pb_logit_bias>& bias) {
    std::vector<testing::LogitRow> rows;
    for (uint32_t i = 0; i < 12; ++i) {
        testing::LogitRow r;
        for (uint32_t t = 0; t < 40; ++t) r.logits.push_back(static_cast<float>((t * 7919 + i * 104729) % 64) / 8.0f);
        r.seed = 1000 + i;
        r.position = 3 * i;
        r.params.temperature = i == 0 ? 0.0f : 0.25f * static_cast<float>(i);
        if (i == 4) r.params.logit_bias = bias.data(), r.params.logit_bias_count = static_cast<uint32_t>(bias.size());
        if (i % 5 == 3) r.allowed = {0x00f0f00fu, 0x3u};
        if (i == 9) r.logits.assign(40, NAN);
        if (i == 10) r.params.logprobs = 3;
        rows.push_back(std::move(r));
    }
    return rows;
}

TEST(FrozenSampler, SamplesWhatItSampledOnTheDayOfTheFreeze) {
    const std::vector<pb_logit_bias> bias = {{17, 100.0f}};
    for (const char* compiler : {kGnu, kClang}) {
        testing::Sampler s(testing::Plugin(library("sampler", compiler)), {{"floor", "0.1"}});
        const testing::Sampled got = s.sample(rows_of_that_day(bias));
        EXPECT_THAT(got.tokens, ElementsAre(34, 13, 3, 12, 17, 4, 9, 33, 32, 0, 34, 17)) << compiler;
        EXPECT_THAT(got.faults, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0)) << compiler;
        EXPECT_NEAR(got.logprobs[10], -2.55858, 1e-5) << compiler;
        const auto& table = s.component.table<pb_sampler>();
        pb_sampling_params p = plain_params();
        EXPECT_EQ(table.accepts(s.component.self(), &p), PB_OK);
        p.mirostat_tau = 3;
        EXPECT_EQ(table.accepts(s.component.self(), &p), PB_UNSUPPORTED);
        EXPECT_EQ(s.host.error, "mirostat_tau") << compiler;
    }
}

}  // namespace
}  // namespace patchbay::frozen_test
