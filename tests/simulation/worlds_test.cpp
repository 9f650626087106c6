// Small random worlds of requests that begin alike, in an engine without a model. More of them:
//   PATCHBAY_SIMULATION=FIRST_SEED:SEEDS:STEPS test_simulation --gtest_filter=Worlds.*
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>

#include "execution/script.hpp"
#include "patchbay/sdk/philox.hpp"
#include "scenario/leave_out_model.hpp"
#include "scenario/scripted_engine.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::testing::worlds_test {
namespace {

constexpr uint32_t kVocab = 1000;
constexpr uint32_t kMaxSteps = 5000;

class Draws {
  public:
    explicit Draws(uint64_t seed) : seed_(seed) {}
    uint32_t below(uint32_t n) { return draw(seed_, count_++, Stream::kTest, 3)[0] % n; }
    uint32_t one_of(std::initializer_list<uint32_t> of) { return of.begin()[below(static_cast<uint32_t>(of.size()))]; }
    bool one_in(uint32_t n) { return below(n) == 0; }

  private:
    uint64_t seed_, count_ = 0;
};

struct World {
    config::EngineConfig config;
    std::vector<std::pair<uint32_t, Request>> requests; // and before which step each is added
    uint32_t sliding_window = 0;
};

// Prompts begin with parts of a few texts.
World world_of(uint64_t seed) {
    Draws d(seed);
    World w;
    config::EngineSettings& e = w.config.engine;
    e.threads = 1;
    e.block_size = d.one_of({2, 4, 8});
    e.num_blocks = 10'000;
    e.max_num_seqs = d.one_of({3, 8, 16});
    e.max_num_batched_tokens = std::max(e.max_num_seqs, d.one_of({16, 40, 100}));
    e.watermark = 0;
    if (d.one_in(3)) e.long_prefill_token_threshold = 2 + d.below(20);
    std::vector<std::vector<TokenId>> texts;
    for (uint32_t i = 0; i < 3; ++i) texts.push_back(random_prompt(seed * 3 + i, 60, kVocab));
    for (uint32_t n = 4 + d.below(20); n > 0; --n) {
        Request r;
        const auto& text = texts[d.below(3)];
        r.prompt.assign(text.begin(), text.begin() + d.below(60));
        for (uint32_t own = 1 + d.below(4); own > 0; --own) r.prompt.push_back(static_cast<TokenId>(d.below(kVocab)));
        r.sampling = greedy(1 + d.below(12));
        w.requests.emplace_back(d.one_in(2) ? 0 : d.below(30), std::move(r));
    }
    std::ranges::stable_sort(w.requests, {}, &std::pair<uint32_t, Request>::first);
    return w;
}

class Trial final : public execution::Script {
  public:
    explicit Trial(World w) : world_(std::move(w)) {
        scenario::leave_out_model(world_.config, kVocab);
        if (world_.sliding_window > 0) {
            world_.config.model.shape["architectures.0"] = "MistralForCausalLM";
            world_.config.model.shape["sliding_window"] = std::to_string(world_.sliding_window);
        }
        auto made = scenario::create_scripted(world_.config, registry(), clock_, {*this, {}, nullptr});
        if (!made) throw std::runtime_error(made.error());
        engine_ = *std::move(made);
    }

    Engine& engine() { return *engine_; }
    const std::vector<TokenId>& prompt(RequestId id) const { return prompts_.at(id); }
    std::function<void(std::span<const pb_plan_item>)> on_plan; // that was applied

    // Until all has ended; false: it does not.
    bool play(const std::function<void()>& before_step, const std::function<void(const StepReport&)>& after_step) {
        size_t next = 0;
        for (uint32_t step = 0; step < kMaxSteps; ++step) {
            for (; next < world_.requests.size() && world_.requests[next].first <= step; ++next) add(next);
            if (next == world_.requests.size() && !engine_->has_unfinished()) return true;
            clock_.advance_ns(1'000'000);
            before_step();
            const auto report = engine_->step();
            if (!report) throw std::runtime_error(report.error());
            after_step(*report);
        }
        return false;
    }

  private:
    void add(size_t i) {
        Request r = world_.requests[i].second;
        const std::vector<TokenId> prompt = r.prompt;
        const uint32_t count = sequences_of(r.sampling);
        const auto id = engine_->add_request(std::move(r));
        if (!id) return; // too large for this world
        for (uint32_t k = 0; k < count; ++k) prompts_[*id + k] = prompt;
    }
    void planned(std::span<const pb_plan_item> plan) override {
        if (on_plan) on_plan(plan);
    }
    void sampled(std::span<const execution::ScriptedRows>) override {}

    World world_;
    VirtualClock clock_;
    std::map<RequestId, std::vector<TokenId>> prompts_;
    std::unique_ptr<Engine> engine_;
};

template <class F>
void in_worlds(uint64_t seeds, F&& f) {
    unsigned long long first = 1, count = seeds, steps = 0;
    if (const char* asked = std::getenv("PATCHBAY_SIMULATION")) {
        ASSERT_EQ(std::sscanf(asked, "%llu:%llu:%llu", &first, &count, &steps), 3) << asked;
    }
    for (uint64_t seed = first; seed < first + count; ++seed) {
        SCOPED_TRACE("PATCHBAY_SIMULATION=" + std::to_string(seed) + ":1:0");
        f(seed);
        if (::testing::Test::HasFailure()) return;
    }
}

// ---- what is shown, and who has to wait ------------------------------------------------------

// Leading blocks of a prompt that a sequence which runs has computed, at most all but the last token.
uint32_t blocks_in_use(const Trial& run, const pb_sequence& waits, const View& view, uint32_t block_size) {
    const auto& prompt = run.prompt(waits.id);
    uint32_t max_blocks = 0;
    for (const pb_sequence& r : view.running) {
        const auto& other = run.prompt(r.id);
        const auto common = static_cast<uint32_t>(std::ranges::mismatch(prompt, other).in1 - prompt.begin());
        max_blocks = std::max(max_blocks, std::min(common, r.computed_tokens) / block_size);
    }
    return std::min(max_blocks, (static_cast<uint32_t>(prompt.size()) - 1) / block_size);
}

TEST(Worlds, NoRequestWaitsForBlocksThatOthersHold) {
    uint64_t held_back = 0, shared = 0;
    in_worlds(60, [&](uint64_t seed) {
        World w = world_of(seed);
        Draws d(seed + 1'000'000);
        w.config.engine.num_blocks = 80 / w.config.engine.block_size + d.below(60);
        w.config.engine.reserve_full_sequence = d.one_in(3);
        const config::EngineSettings e = w.config.engine;
        Trial run(std::move(w));
        View before;
        std::set<RequestId> queued; // those that have arrived since are not looked up yet
        run.on_plan = [&](std::span<const pb_plan_item> plan) {
            const View now = run.engine().view();
            const std::set<RequestId> known = queued;
            for (const pb_sequence& s : now.waiting) queued.insert(s.id);
            if (now.report.work.admitted + now.report.preemption.preemptions + now.report.work.trimmed > 0) return;
            if (before.waiting.empty() || !known.contains(before.waiting[0].id)) return;
            uint32_t tokens = e.max_num_batched_tokens;
            for (const pb_plan_item& i : plan) tokens -= i.tokens;
            if (tokens == 0 || before.running.size() >= e.max_num_seqs) return;
            const pb_sequence& first = before.waiting[0];
            uint32_t n = first.prompt_tokens + first.output_tokens - first.cached_tokens;
            if (!e.reserve_full_sequence) n = std::min(n, tokens);
            if (!e.reserve_full_sequence && e.long_prefill_token_threshold > 0)
                n = std::min(n, e.long_prefill_token_threshold);
            uint64_t pages = (first.cached_tokens + n + e.block_size - 1) / e.block_size - first.cached_pages_in_use;
            for (const pb_sequence& r : now.running) { // what they lack for all their tokens
                const uint32_t all = r.prompt_tokens + r.output_tokens, there = r.pages * e.block_size;
                if (e.reserve_full_sequence && all > there) pages += (all - there + e.block_size - 1) / e.block_size;
            }
            EXPECT_GT(pages, now.free_pages) << "sequence " << first.id << " could have been admitted";
            held_back += 1;
        };
        const auto look = [&] {
            before = run.engine().view();
            for (const pb_sequence& s : before.waiting) {
                if (!queued.contains(s.id) || s.preemptions > 0) continue; // of these the output may be cached, too
                const uint32_t in_use = blocks_in_use(run, s, before, e.block_size);
                EXPECT_EQ(s.cached_pages_in_use, in_use) << "of sequence " << s.id;
                EXPECT_GE(s.cached_tokens, in_use * e.block_size) << "of sequence " << s.id;
                shared += in_use > 0;
            }
        };
        const auto audit = [&](const StepReport&) {
            const auto sound = run.engine().audit();
            EXPECT_TRUE(sound) << sound.error();
        };
        EXPECT_TRUE(run.play(look, audit)) << "a request starves";
    });
    EXPECT_GT(held_back, 0u);
    EXPECT_GT(shared, 0u);
}

// ---- the steps that it takes -----------------------------------------------------------------

using Tokens = std::map<RequestId, uint32_t>; // of a step

// fcfs over a cache that never evicts, as plain as can be: a plan counts on what was cached before the step.
class PlainModel {
  public:
    explicit PlainModel(const World& w) : engine_(w.config.engine), requests_(w.requests) {}

    std::vector<Tokens> play() {
        std::vector<Tokens> steps;
        for (size_t next = 0; next < requests_.size() || !running_.empty() || !waiting_.empty();) {
            for (; next < requests_.size() && requests_[next].first <= steps.size(); ++next)
                add(next + 1, requests_[next].second);
            steps.push_back(step());
        }
        return steps;
    }

  private:
    struct Request {
        RequestId id;
        std::vector<TokenId> tokens;
        uint32_t outputs_left, computed = 0;
        uint32_t remaining() const { return static_cast<uint32_t>(tokens.size()) - computed; }
        bool decodes() const { return remaining() == 1; }
    };

    void add(RequestId id, const engine::Request& r) { waiting_.push_back({id, r.prompt, r.sampling.max_tokens}); }

    Tokens step() {
        uint32_t budget = engine_.max_num_batched_tokens;
        const auto take = [&](const Request& r, uint32_t wanted) {
            const uint32_t cap = engine_.long_prefill_token_threshold;
            const uint32_t n = std::min({wanted, budget, cap > 0 && !r.decodes() ? cap : UINT32_MAX});
            budget -= n;
            return n;
        };
        std::vector<std::pair<size_t, uint32_t>> plan; // of running_
        for (const bool decodes : {true, false})
            for (size_t i = 0; i < running_.size(); ++i)
                if (running_[i].decodes() == decodes)
                    if (const uint32_t n = take(running_[i], running_[i].remaining()); n > 0) plan.emplace_back(i, n);
        std::vector<uint32_t> admitted;
        for (const Request& r : waiting_) {
            if (budget == 0 || running_.size() + admitted.size() == engine_.max_num_seqs) break;
            admitted.push_back(take(r, r.remaining() - cached(r)));
        }
        for (const auto& [i, n] : plan) compute(running_[i], n);
        Tokens out;
        for (const auto& [i, n] : plan) out[running_[i].id] = n;
        for (const uint32_t planned : admitted) {
            Request r = std::move(waiting_.front());
            waiting_.erase(waiting_.begin());
            r.computed = cached(r);
            const uint32_t n = std::min(planned, r.remaining());
            compute(r, n);
            out[r.id] = n;
            running_.push_back(std::move(r));
        }
        for (Request& r : running_) {
            if (r.remaining() > 0) continue;
            r.tokens.push_back(-static_cast<TokenId>(r.id)); // which no other has
            r.outputs_left -= 1;
        }
        std::erase_if(running_, [](const Request& r) { return r.outputs_left == 0; });
        return out;
    }

    void compute(Request& r, uint32_t n) {
        r.computed += n;
        for (uint32_t end = engine_.block_size; end <= r.computed; end += engine_.block_size)
            cached_.emplace(r.tokens.begin(), r.tokens.begin() + end);
    }

    uint32_t cached(const Request& r) const {
        uint32_t out = 0;
        for (uint32_t end = engine_.block_size; end < r.tokens.size(); end += engine_.block_size) {
            if (!cached_.contains({r.tokens.begin(), r.tokens.begin() + end})) break;
            out = end;
        }
        return out;
    }

    const config::EngineSettings& engine_;
    const std::vector<std::pair<uint32_t, engine::Request>>& requests_;
    std::vector<Request> waiting_, running_;
    std::set<std::vector<TokenId>> cached_;
};

TEST(Worlds, TakeTheStepsOfAPlainModel) {
    uint64_t hits = 0;
    in_worlds(100, [&](uint64_t seed) {
        World w = world_of(seed);
        const std::vector<Tokens> expected = PlainModel(w).play();
        Trial run(std::move(w));
        std::vector<Tokens> steps;
        run.on_plan = [&](std::span<const pb_plan_item> plan) {
            for (const pb_plan_item& i : plan) steps.back()[i.id] = i.tokens;
        };
        const auto count = [&](const StepReport& r) { hits += r.kv.prefix_hit_tokens; };
        EXPECT_TRUE(run.play([&] { steps.emplace_back(); }, count));
        EXPECT_EQ(steps.size(), expected.size());
        for (size_t i = 0; i < std::min(steps.size(), expected.size()); ++i)
            ASSERT_EQ(steps[i], expected[i]) << "step " << i;
    });
    EXPECT_GT(hits, 0u);
}

// ---- orca ------------------------------------------------------------------------------------

TEST(Worlds, OrcaPreemptsNoRequest) {
    uint64_t waited = 0, forked = 0;
    in_worlds(150, [&](uint64_t seed) {
        World w = world_of(seed);
        Draws d(seed + 2'000'000);
        config::EngineSettings& e = w.config.engine;
        w.config.scheduler = {"orca", {}};
        e.num_blocks = 80 / e.block_size + d.below(60);
        e.enable_prefix_caching = d.one_in(2);
        e.async_scheduling = d.one_in(2) ? config::AsyncScheduling::kOn : config::AsyncScheduling::kOff;
        if (d.one_in(3)) w.sliding_window = 1 + d.below(20);
        for (auto& [step, r] : w.requests) {
            SamplingParams& p = r.sampling;
            if (d.one_in(3)) {
                p = seeded(d.below(1000), p.max_tokens);
                p.n = 2 + d.below(3);
            } else if (d.one_in(3)) {
                p.temperature = 1;
                p.beam_width = 2 + d.below(2);
            }
        }
        Trial run(std::move(w));
        const auto look = [&](const StepReport& r) {
            EXPECT_EQ(r.preemption.preemptions, 0u) << "in step " << r.step;
            waited += r.queues.waiting_requests > 0 && r.kv.used_pages < r.kv.total_pages;
            forked += r.work.forked;
        };
        EXPECT_TRUE(run.play([] {}, look));
    });
    EXPECT_GT(waited, 0u);
    EXPECT_GT(forked, 0u);
}

}  // namespace
}  // namespace patchbay::engine::testing::worlds_test
