#include "swap/swap_fixture.hpp"

#include "host/prober.hpp"
#include "host/registry.hpp"
#include "kv/cache_events.hpp"
#include "paths.hpp"

#include <filesystem>
#include <stdexcept>

namespace patchbay::engine::testing {
namespace {

const std::string kBuild = kBuildDir;

host::Registry open(const std::vector<std::filesystem::path>& folders) {
    auto opened = host::Registry::open(folders);
    if (!opened) throw std::runtime_error(opened.error());
    return *std::move(opened);
}

}  // namespace

const host::Registry& swap_registry() {
    static const host::Registry all = open({kBuild + "/lib/patchbay/plugins", kBuild + "/tests/swap_plugins"});
    return all;
}

const host::Registry& other_builds() {
    static const host::Registry all = open({kBuild + "/tests/swap_other_builds"});
    return all;
}

const host::Registry* other_compiler() {
    static const std::string folder = kBuild + "/tests/swap_other_compiler";
    static const bool exists = std::filesystem::exists(folder);
    static const host::Registry all = open({exists ? folder : kBuild + "/tests/swap_other_builds"});
    return exists ? &all : nullptr;
}

host::Prober& prober() {
    static host::Prober one(host::ProbeOptions{.program = kBuild + "/bin/patchbay-probe"});
    return one;
}

void Gauges::set(const std::string&, const std::string& component, const std::string& name, double value) {
    const std::lock_guard lock(mutex_);
    values_[component + "/" + name] = value;
}

double Gauges::at(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(name);
    return found == values_.end() ? 0 : found->second;
}

Swapping::Swapping(const config::EngineConfig& c, Clock* other, parallel::World* world)
    : clock(other ? *other : ticking) {
    auto made = Engine::create(c, swap_registry(), clock, &gauges, world);
    if (!made) throw std::runtime_error(made.error());
    engine = *std::move(made);
}

std::shared_ptr<host::Swap> Swapping::swap(SwapSlot slot, const config::PluginChoice& choice,
                                           const host::Registry& registry) {
    return engine->control().swap({slot, choice, registry, prober()});
}

void Swapping::add_requests() {
    for (uint64_t i = 0; i < 8; ++i) {
        Request r;
        r.prompt = random_prompt(i == 5 ? 4 : i, static_cast<uint32_t>(9 + i * 7 % 40));
        if (i % 3 == 0) r.prompt.insert(r.prompt.end(), r.prompt.begin(), r.prompt.end()); // something to draft from
        r.sampling = i % 2 == 0 ? greedy(12) : seeded(70 + i, 12);
        if (i == 3) r.sampling.logprobs = 2;
        r.on_output = [this](const RequestOutput& out) {
            auto& text = texts[out.id];
            text.insert(text.end(), out.tokens.begin(), out.tokens.end());
            endings[out.id] += out.finish != FinishReason::kNone;
            EXPECT_NE(out.finish, FinishReason::kError) << out.stop_reason;
        };
        const auto id = engine->add_request(std::move(r));
        if (!id) throw std::runtime_error(id.error());
    }
}

StepReport Swapping::step() {
    auto report = engine->step();
    if (!report) throw std::runtime_error(report.error());
    steps.push_back(*report);
    return *report;
}

const Texts& Swapping::run(const std::function<void()>& between) {
    while (engine->has_unfinished()) {
        between();
        step();
    }
    for (const auto& [id, count] : endings) EXPECT_EQ(count, 1u) << "request " << id;
    return texts;
}

config::EngineConfig busy_engine(const std::string& scheduler, const std::string& sampler) {
    config::EngineConfig c = tiny_model();
    c.engine.num_blocks = kBlocks;
    c.engine.max_num_seqs = 3;
    c.engine.max_num_batched_tokens = 24;
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 3;
    c.scheduler.plugin = scheduler;
    c.sampler.plugin = sampler;
    return c;
}

const Texts& undisturbed() {
    static const Texts texts = [] {
        Swapping s(busy_engine());
        s.add_requests();
        return s.run();
    }();
    return texts;
}

Texts greedy_undisturbed() {
    Swapping s(busy_engine("fcfs", "greedy"));
    s.add_requests();
    return s.run();
}

std::string name_in(const Engine& engine, const std::string& kind) {
    for (const host::Identity& p : engine.facts().plugins)
        if (p.kind == kind) return p.name;
    return "";
}

std::vector<host::SwapRecord> records(const std::vector<StepReport>& steps) {
    std::vector<host::SwapRecord> out;
    for (const StepReport& s : steps) out.insert(out.end(), s.swaps.begin(), s.swaps.end());
    return out;
}

BlockKeys first_blocks(Swapping& s, const std::function<void()>& asked) {
    BlockKeys keys;
    s.engine->on_kv_events([&keys](std::span<const kv::CacheEvent> events, uint64_t) {
        for (const kv::CacheEvent& e : events)
            if (e.kind == kv::CacheEvent::Kind::kStored && e.first) keys.emplace(e.key.high, e.key.low);
    });
    asked();
    s.run();
    s.engine->on_kv_events({});
    return keys;
}

}  // namespace patchbay::engine::testing
