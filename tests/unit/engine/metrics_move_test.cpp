// Each metric of the catalogue moves when its subject does: one that is declared and never set is found here.
#include <gtest/gtest.h>

#include <set>

#include "engine/engine_control.hpp"
#include "engine/metrics/engine_metrics.hpp"
#include "host/probe.hpp"
#include "host/prober.hpp"
#include "parallel/world.hpp"
#include "unit/engine/engine_fixture.hpp"
#include "paths.hpp"

namespace patchbay::engine::metrics_move_test {
namespace {

using namespace testing;

// A microsecond passes between two looks at it.
class TickingClock final : public Clock {
  public:
    uint64_t now_ns() const override { return now_ns_ += 1000; }
    void wait_until_ns(uint64_t when_ns) override { now_ns_ = std::max(now_ns_, when_ns); }

  private:
    mutable uint64_t now_ns_ = 0;
};

// An engine whose metrics are looked at after each step.
class Watched {
  public:
    explicit Watched(const config::EngineConfig& c) { use(c); }

    // Another engine in place of the one before, on the same metrics.
    void use(const config::EngineConfig& c) {
        engine_.reset();
        metrics_.reset();
        auto made = Engine::create(c, registry(), clock_, nullptr, &world_);
        if (!made) throw std::runtime_error(made.error());
        engine_ = *std::move(made);
        metrics_.emplace(all_, engine_->facts(), "9.9");
        engine_->observe(*metrics_);
    }

    RequestId add(const std::vector<TokenId>& prompt, uint32_t max_tokens) { return add(prompt, greedy(max_tokens)); }
    RequestId add(const std::vector<TokenId>& prompt, const SamplingParams& sampling) {
        Request r;
        r.prompt = prompt;
        r.sampling = sampling;
        return add(std::move(r));
    }

    // The output is of a and b; in the prompt other letters follow them, which drafts are made of.
    void add_structured(uint32_t max_tokens) {
        Request r;
        r.prompt = engine_->tokenizer()->encode("a x a x b y b y ab z ab z ba q ba q aa r aa r bb s bb s");
        r.sampling = greedy(max_tokens);
        r.sampling.structured_outputs = grammar::StructuredOutputs{.regex = "[ab ]+"};
        add(std::move(r));
    }

    RequestId add(Request r) {
        const auto prompt_tokens = static_cast<uint32_t>(r.prompt.size()), n = r.sampling.n;
        r.on_output = [this](const RequestOutput& out) { metrics_->on_output(out); };
        const auto id = engine_->add_request(std::move(r));
        if (!id) throw std::runtime_error(id.error());
        metrics_->on_request(*id, clock_.now_ns(), prompt_tokens, n);
        return *id;
    }

    void abort(RequestId id) { engine_->abort(id); }

    void swap_scheduler(const char* name) {
        host::Prober prober(host::ProbeOptions{.program = std::string(kBuildDir) + "/bin/patchbay-probe"});
        engine_->control().swap({SwapSlot::kScheduler, {name, {}}, registry(), prober});
    }

    void step() {
        const auto report = engine_->step();
        if (!report) throw std::runtime_error(report.error());
        for (const prometheus::MetricFamily& family : all_.registry()->Collect())
            for (const prometheus::ClientMetric& m : family.metric)
                if (m.counter.value > 0 || m.gauge.value > 0 || m.histogram.sample_count > 0) {
                    std::string& labels = moved_[family.name];
                    for (const auto& label : m.label) labels += label.value + " ";
                }
    }

    void run() {
        while (engine_->has_unfinished()) step();
    }

    // Values of labels of what was ever above 0, by name.
    const std::map<std::string, std::string>& moved() const { return moved_; }

  private:
    TickingClock clock_;
    parallel::World world_{std::string(kBuildDir) + "/bin/patchbay"};
    metrics::Metrics all_;
    std::unique_ptr<Engine> engine_;
    std::optional<EngineMetrics> metrics_;
    std::map<std::string, std::string> moved_;
};

// Repeats itself, so that drafts are made and some are accepted.
std::vector<TokenId> repetitive(uint64_t seed) {
    auto prompt = random_prompt(seed, 24);
    const std::vector<TokenId> head(prompt.begin(), prompt.begin() + 12);
    prompt.insert(prompt.end(), head.begin(), head.end());
    return prompt;
}

TEST(MetricsMove, EachOfTheCatalogueWhenAnEngineIsShortOfEverything) {
    auto c = tiny_model();
    c.engine.num_blocks = 16; // of 8 tokens: three requests of up to 84 do not fit
    c.engine.max_model_len = 100;
    c.engine.max_num_seqs = 3;
    c.engine.watermark = 0;
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 4;
    c.speculative.max_paths = 3; // more than there are seats for
    c.sampler = {"fails_on_request", {{"bad_at", "8"}}};
    Watched w(c);
    w.add(random_prompt(9, 6), 10); // gets a bad token as its third
    for (uint64_t i = 0; i < 8; ++i) w.add(repetitive(i / 2), 40); // the second of two finds the prefix of the first
    w.swap_scheduler("sjf");
    w.swap_scheduler("none_such"); // refused
    w.run();
    c = tiny_model();
    c.engine.num_blocks = 6;
    c.scheduler = {"fails_on_request", {{"overplans", "true"}}}; // the others plan what fits
    w.use(c);
    for (const uint64_t i : {1, 2}) w.add(random_prompt(i, 40), 2);
    w.step();
    c = tiny_model();
    c.model.dtype = config::DType::kBf16;
    c.device = {"sim", {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e9"},
                        {"memory_bytes", "100000000"}}};
    c.engine.cudagraph_mode = config::GraphMode::kFullDecodeOnly;
    w.use(c);
    for (const uint64_t i : {1, 2, 3}) w.add(random_prompt(i, 40), 2);
    w.run();
    c.engine.num_blocks = 16;
    c.engine.max_model_len = 100;
    c.engine.watermark = 0;
    c.engine.preemption_mode = config::PreemptionMode::kSwap;
    c.engine.num_swap_blocks = 8; // not enough for all
    w.use(c);
    for (const uint64_t i : {1, 2, 3}) w.add(random_prompt(i, 30), 40);
    w.run();
    c = tiny_model();
    c.model = {};
    c.model.path = repository("models/demo-target");
    c.proposer = config::PluginChoice{"draft_model", {{"model", repository("models/demo-draft")}}};
    c.engine.num_speculative_tokens = 2;
    c.speculative.max_paths = 4;
    w.use(c);
    for (const uint64_t i : {1, 2, 3}) w.add(random_prompt(i, 30), 40); // now and then the second guess is right
    w.run();
    c = tiny_model();
    c.model.shape["vocab_size"] = "2048";
    c.model.tokenizer = repository("models/demo-target");
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 4;
    w.use(c);
    w.add_structured(30);
    w.run();
    c = tiny_model();
    c.engine.num_blocks = 16;
    c.engine.max_model_len = 100;
    c.kv_policy = config::PluginChoice{"lru", {}};
    w.use(c);
    for (const uint64_t i : {1, 2, 3, 4}) w.add(random_prompt(i, 50), 2); // more than can stay cached
    w.run();
    c = tiny_model();
    c.engine.tensor_parallel_size = 2;
    w.use(c);
    w.add(random_prompt(1, 8), 2);
    w.abort(w.add(random_prompt(3, 8), 2)); // while it waits
    SamplingParams twice = seeded(1, 2);
    twice.n = 2;
    twice.logits_statistics = true;
    w.add(random_prompt(2, 11), twice); // its last page is shared and then written to
    w.run();
    auto moved = w.moved();
    const auto takes = [&](const char* name) { EXPECT_EQ(moved.erase(name), 1u) << name; };
    for (const metrics::Entry& e : metrics::parse_catalogue(metrics::catalogue_yaml())) {
        const bool of_tools = e.name == "patchbay_experiment_info" || e.name == "patchbay_tokenize_seconds_total" ||
                              e.name == "patchbay_tenant_tokens_total" ||
                              e.name == "patchbay_plugin_new_builds_total" || e.name == "patchbay_restarts_total" ||
                              e.name.starts_with("patchbay_http_");
        if (of_tools) continue; // `patchbay run` and `patchbay serve` set them
        if (e.name == "patchbay_plugin_swap_transactions_total") continue; // engine_metrics_test.cpp
        takes(e.name.c_str());
    }
    EXPECT_TRUE(moved.empty()) << moved.begin()->first << " is not in the catalogue";
}

TEST(MetricsMove, EachKindOfPluginCallTakesTime) {
    auto c = tiny_model();
    c.proposer = config::PluginChoice{"ngram", {}};
    c.engine.num_speculative_tokens = 2;
    Watched w(c);
    w.add(repetitive(1), 4);
    w.run();
    const std::string calls = w.moved().at("patchbay_plugin_call_seconds");
    for (const char* call : {"plan", "sample", "propose", "forward", "append_kv", "run", "begin_step", "end_step"})
        EXPECT_NE((" " + calls).find(" " + std::string(call) + " "), std::string::npos) << call << " in " << calls;
    c.proposer.reset();
    c.model.dtype = config::DType::kBf16;
    c.device = {"sim", {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e9"},
                        {"memory_bytes", "100000000"}}};
    c.engine.cudagraph_mode = config::GraphMode::kFullDecodeOnly;
    w.use(c);
    w.add(repetitive(1), 4);
    w.run();
    EXPECT_NE(w.moved().at("patchbay_plugin_call_seconds").find(" graph_launch "), std::string::npos);
    const std::string phases = w.moved().at("patchbay_step_phase_seconds_total");
    for (size_t i = 0; i < kPhaseCount; ++i)
        EXPECT_NE((" " + phases).find(" " + std::string(name_of(static_cast<Phase>(i))) + " "), std::string::npos) << i;
}

TEST(MetricsMove, NoVerifiedDraftIsLeftOutHoweverLongTheDrafts) {
    auto c = tiny_model();
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 40;
    Harness h(c);
    for (uint64_t i = 0; i < 4; ++i) h.add(repetitive(i), greedy(60));
    h.run_all();
    uint64_t drafted = 0, accepted = 0, after_last = 0, by_position = 0, accepted_by_position = 0;
    for (const StepReport& r : h.steps) {
        drafted += r.drafts.drafted_tokens;
        accepted += r.drafts.accepted_tokens;
        after_last += r.drafts.drafted_at.back();
        for (const uint32_t n : r.drafts.drafted_at) by_position += n;
        for (const uint32_t n : r.drafts.accepted_at) accepted_by_position += n;
    }
    EXPECT_GT(after_last, h.steps.size()) << "no drafts are longer than there are positions, so nothing was shown";
    EXPECT_EQ(by_position, drafted);
    EXPECT_EQ(accepted_by_position, accepted);
}

}  // namespace
}  // namespace patchbay::engine::metrics_move_test
