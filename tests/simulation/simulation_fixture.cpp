#include "simulation/simulation_fixture.hpp"

#include "engine/engine_control.hpp"
#include "engine/simulation.hpp"
#include "host/prober.hpp"
#include "patchbay/sdk/philox.hpp"
#include "scenario/scripted_engine.hpp"
#include "simulation/alone_fixture.hpp"
#include "paths.hpp"

namespace patchbay::engine::testing {
namespace {

constexpr uint32_t kVocab = 1000;
constexpr TokenId kStop = 7;
constexpr uint64_t kMs = 1'000'000; // ns
const std::string kBuild = kBuildDir;

const host::Registry& all_plugins() {
    static const auto all =
        host::Registry::open({kBuild + "/lib/patchbay/plugins", kBuild + "/tests/swap_plugins"});
    if (!all) throw std::runtime_error(all.error());
    return *all;
}

host::Prober& prober() {
    static host::Prober one(host::ProbeOptions{.program = kBuild + "/bin/patchbay-probe"});
    return one;
}

class Simulation final : execution::Script {
  public:
    explicit Simulation(uint64_t seed) : seed_(seed), chooses_(seed % 2 == 1) {}

    Result<> run(uint32_t steps) {
        PB_CHECK(create());
        for (step_ = 1; step_ <= steps; ++step_) {
            disturb();
            PB_CHECK(one_step());
        }
        arrivals_over_ = true;
        for (uint32_t left = kMaxToDrain; engine_->has_unfinished(); --left, ++step_) {
            if (unsound_) swap_to({scheduler(), {}});
            if (left == 0) return fail(std::to_string(open_.size()) + " outputs do not end: starved, or lost");
            PB_CHECK(one_step());
        }
        if (!open_.empty()) return fail(std::to_string(open_.size()) + " outputs never ended");
        const View view = engine_->view();
        if (view.free_pages != view.total_pages)
            return fail(std::to_string(view.total_pages - view.free_pages) + " blocks are not free in the end");
        return engine_->reset_prefix_cache();
    }
    uint32_t step() const { return step_; }

  private:
    static constexpr uint32_t kMaxToDrain = 20'000;
    using Key = std::pair<RequestId, uint32_t>; // request, index of its output
    struct Expected {
        uint64_t seed;
        size_t prompt;
        SamplingParams sampling;
        std::vector<TokenId> got;
        bool aborted = false;
        std::optional<RequestOutput> alone{}; // where it is chosen among others: what it has to be
    };
    struct Running { // a sequence of the engine
        Key output; // where it is to be chosen: the first of its request
        uint64_t seed;
    };

    uint32_t below(uint32_t n) { return n == 0 ? 0 : draw(seed_, draws_++, Stream::kTest, 0)[0] % n; }
    template <class T>
    T one_of(std::initializer_list<T> of) {
        return *(of.begin() + below(static_cast<uint32_t>(of.size())));
    }
    bool one_in(uint32_t n) { return below(n) == 0; }

    // ---- the engine, of a kind of its own for each seed ----
    Result<> create() {
        config::EngineConfig c;
        config::EngineSettings& e = c.engine;
        e.threads = 1;
        e.block_size = one_of({1u, 4u, 8u, 16u});
        e.num_blocks = one_of({37u, 131u}); // few kinds: `faulty` is probed for each
        e.max_num_batched_tokens = one_of({8u, 16u, 40u, 100u});
        e.max_num_seqs = one_of({1u, 3u, 8u});
        e.max_num_batched_tokens = std::max(e.max_num_batched_tokens, e.max_num_seqs);
        e.enable_prefix_caching = !one_in(3);
        e.enable_chunked_prefill = !one_in(4);
        if (!e.enable_chunked_prefill) e.max_num_batched_tokens = 300;
        e.watermark = one_of({0.0, 0.01, 0.2});
        e.max_waiting = one_in(4) ? 5 : 0;
        e.long_prefill_token_threshold = one_in(3) ? 6 : 0;
        if (one_in(3)) e.async_scheduling = config::AsyncScheduling::kOn;
        else if (one_in(2)) e.num_speculative_tokens = 1 + below(4);
        speculates_ = e.num_speculative_tokens > 0;
        if (speculates_) c.speculative.max_paths = 1 + draw(seed_, 0, Stream::kTest, 2)[0] % 4; // no draw of the load's
        e.preemption_mode = one_of({config::PreemptionMode::kRecompute, config::PreemptionMode::kSwap});
        if (chooses_ && one_in(2)) e.preemption_mode = config::PreemptionMode::kAuto;
        e.num_swap_blocks = 10 + below(100);
        e.reserve_full_sequence = one_in(5);
        c.swap.probation_steps = 1 + below(4);
        if (seed_ % 5 == 4) c.kv_policy = config::PluginChoice{"lru", {}};
        has_kv_policy_ = c.kv_policy.has_value();
        c.scheduler.plugin = scheduler();
        c.model.load_format = config::LoadFormat::kDummy;
        c.model.dtype = config::DType::kBf16;
        c.model.tokenizer = "none";
        c.model.shape = {{"architectures.0", "LlamaForCausalLM"}, {"vocab_size", std::to_string(kVocab)},
                         {"hidden_size", "8"}, {"intermediate_size", "8"}, {"num_hidden_layers", "1"},
                         {"num_attention_heads", "1"}, {"num_key_value_heads", "1"}, {"head_dim", "8"},
                         {"max_position_embeddings", "4096"}, {"eos_token_id", std::to_string(kStop)}};
        if (one_in(3)) {
            c.model.shape["architectures.0"] = "MistralForCausalLM"; // Llama has no windows
            c.model.shape["sliding_window"] = std::to_string(1 + below(20));
        }
        if (chooses_ && c.model.shape.contains("sliding_window")) // beside a layer that looks at all
            c.model.shape.insert({{"use_sliding_window", "true"}, {"max_window_layers", "1"}});
        if (c.model.shape.contains("use_sliding_window"))
            c.model.shape["architectures.0"] = "Qwen2ForCausalLM", c.model.shape["num_hidden_layers"] = "2";
        c.device.plugin = "sim";
        c.device.settings = {{"hardware", "scenario"}, {"matmul_bf16", "1e21"}, {"matmul_f32", "1e21"},
                             {"memory_read", "1e21"}, {"memory_bytes", "1000000000000000000"}};
        if (e.preemption_mode == config::PreemptionMode::kAuto) { // what costs nothing is never dearer
            c.device.settings["matmul_bf16"] = "1e12";
            c.device.settings["host_bandwidth"] = one_of({"1e7", "1e9", "1e11"});
        }
        if (chooses_) {
            PB_TRY(alone_, Alone::create(c, all_plugins(), kStop));
        }
        clock_.advance_ns(kMs);
        budget_ = e.max_num_batched_tokens;
        max_seqs_ = e.max_num_seqs;
        scenario::ScriptSetup setup{*this, {}, nullptr};
        if (speculates_) {
            drafting_ = {[this](uint64_t id, uint64_t position) { return next_token(id, position); },
                         [this](uint32_t n) { return below(n); }};
            PB_TRY(setup.proposer, drafter(drafting_));
        }
        PB_TRY(engine_, scenario::create_scripted(c, all_plugins(), clock_, std::move(setup)));
        return {};
    }

    std::string scheduler() {
        const auto names = all_plugins().names("scheduler");
        std::string name;
        do name = names[below(static_cast<uint32_t>(names.size()))];
        while (name.starts_with("counting") || name == "faulty");
        return name;
    }

    // ---- what happens between steps ----
    void disturb() {
        if (open_.size() < 30)
            for (uint32_t n = one_in(3) ? below(4) : 0; n > 0; --n) add();
        if (one_in(30)) abort_one();
        if (one_in(400)) swap();
        if (chance(0) % 200 == 0) swap_others();
        if (unsound_) swap_to({scheduler(), {}});
        if (one_in(50)) (void)engine_->reset_prefix_cache(); // refused while blocks are in use
        clock_.advance_ns(below(3) * kMs);
    }

    void add() {
        Request r;
        const uint32_t length = 1 + below(one_in(4) ? 60 : 20), kind = below(3);
        for (uint32_t i = 0; i < length; ++i)
            r.prompt.push_back(static_cast<TokenId>(10 + (kind == 0 ? i % 5 : below(kVocab - 10)))); // 0: shared
        r.priority = static_cast<int32_t>(below(4));
        r.tenant = below(3);
        if (one_in(3)) r.arrival_ns = clock_.now_ns() + below(20) * kMs;
        if (one_in(3)) r.deadline_ns = clock_.now_ns() + below(200) * kMs;
        if (one_in(3)) r.expected_output_tokens = below(40);
        r.sampling.max_tokens = 1 + below(30);
        r.sampling.min_tokens = one_in(4) ? below(r.sampling.max_tokens) : 0;
        r.sampling.ignore_eos = one_in(3);
        r.sampling.n = one_in(4) ? 2 + below(3) : 1;
        r.sampling.seed = below(1u << 30);
        if (chooses_ && one_in(4)) choose(r.sampling);
        const bool chosen = is_chosen(r.sampling);
        std::vector<RequestOutput> alone(r.sampling.n);
        if (chosen) {
            auto run = alone_->run(r);
            if (!run) return note("alone: " + run.error());
            alone = *std::move(run);
        }
        r.on_output = [this](const RequestOutput& out) { take(out); };
        Expected expected{*r.sampling.seed, r.prompt.size(), r.sampling, {}, false};
        const bool too_long = length + r.sampling.max_tokens > engine_->facts().max_model_len;
        const auto id = engine_->add_request(std::move(r));
        if (!id) {
            met().refused += 1;
            const auto because = [&](const char* why) { return id.error().find(why) != std::string::npos; };
            if (!too_long && !because("the queue is full") && !because("beam_width is")) note(id.error());
            return;
        }
        met().requests += 1;
        for (uint32_t i = 0; i < sequences_of(expected.sampling); ++i)
            by_sequence_[*id + i] = {{*id, chosen ? 0 : i}, expected.seed + i};
        for (uint32_t i = 0; i < expected.sampling.n; ++i, ++expected.seed) {
            open_[{*id, i}] = expected;
            if (chosen) open_[{*id, i}].alone = std::move(alone[i]);
        }
    }

    static bool is_chosen(const SamplingParams& p) { return p.beam_width > 0 || p.best_of > p.n; }

    void choose(SamplingParams& p) {
        if (one_in(2)) {
            p.best_of = p.n + 1 + below(3);
            return;
        }
        p.beam_width = std::max(2u, p.n) + below(3);
        p.length_penalty = one_of({-1.0f, 0.0f, 1.0f, 3.0f});
        p.early_stopping = one_of({EarlyStopping::kNo, EarlyStopping::kYes, EarlyStopping::kNever});
    }

    void abort_one() {
        if (open_.empty() || one_in(10)) return abort(1 + below(5)); // who has ended, most likely
        auto at = open_.begin();
        std::advance(at, below(static_cast<uint32_t>(open_.size())));
        abort(at->first.first);
    }

    void abort(RequestId id) {
        for (auto at = open_.lower_bound({id, 0}); at != open_.end() && at->first.first == id; ++at)
            at->second.aborted = true;
        engine_->abort(id);
    }

    // To a sound one, or to one that fails, in its probation or after it.
    void swap() {
        if (!one_in(3)) return swap_to({scheduler(), {}});
        // It keeps its contract in every probe, whose engines have other numbers of blocks.
        swap_to({"faulty", {{"fault", one_of({"throws", "unknown_id", "over_budget", "twice"})},
                            {"at", one_of({"1", "12"})},
                            {"blocks", std::to_string(engine_->facts().kv.num_blocks)}}});
    }

    uint32_t chance(uint32_t what) { return draw(seed_, step_, Stream::kTest, 3 + what)[0]; } // no draw of the load's

    // Of the other slots that a device which computes nothing has, alone or together with the scheduler.
    void swap_others() {
        std::vector<SwapRequest> wanted;
        const bool with_policy = has_kv_policy_ && chance(1) % 3 > 0;
        if (with_policy && chance(2) % 4 == 0) {
            const char* const faults[] = {"throws_in_adopt", "throws_in_update", "throws_in_choose", "names_nothing"};
            const std::string blocks = std::to_string(engine_->facts().kv.num_blocks);
            wanted.push_back({SwapSlot::kKvPolicy,
                              {"faulty", {{"fault", faults[chance(3) % 4]}, {"at", std::to_string(1 + chance(4) % 5)},
                                          {"blocks", blocks}}},
                              all_plugins(), prober()});
        } else if (with_policy) {
            const char* const names[] = {"lru", "lfu", "prefix_tree"};
            wanted.push_back({SwapSlot::kKvPolicy, {names[chance(5) % 3], {}}, all_plugins(), prober()});
        }
        if (wanted.empty() || chance(6) % 2 == 0)
            wanted.push_back({SwapSlot::kAttention, {"paged", {}}, all_plugins(), prober()});
        if (chance(7) % 3 == 0) wanted.push_back({SwapSlot::kScheduler, {"fcfs", {}}, all_plugins(), prober()});
        for (const auto& swap : engine_->control().swap_together(wanted))
            if (swap->record().state == host::SwapState::kRefused) note(swap->record().text());
    }

    void swap_to(const config::PluginChoice& to) {
        unsound_ = false;
        const auto swap = engine_->control().swap({SwapSlot::kScheduler, to, all_plugins(), prober()});
        if (swap->record().state == host::SwapState::kRefused) note(swap->record().text());
    }

    // ---- what comes out ----
    // Sequence id's token at a position, whatever led there.
    TokenId next_token(uint64_t id, uint64_t position) const {
        const auto at = by_sequence_.find(id);
        if (at == by_sequence_.end() || !open_.contains(at->second.output)) return 1;
        const Expected& e = open_.at(at->second.output);
        if (!e.alone) return token_of(e, position);
        const TokenId eos[] = {kStop};
        return chosen_token(synthetic_token(at->second.seed, position, kVocab, eos, {}), kStop);
    }
    static TokenId token_of(const Expected& e, uint64_t position) {
        if (draw(e.seed, position, Stream::kTest, 1)[0] % 40 == 0) return kStop;
        const TokenId eos[] = {kStop};
        return synthetic_token(e.seed, position, kVocab, eos, {});
    }

    void planned(std::span<const pb_plan_item> plan) override {
        uint64_t tokens = 0;
        std::set<uint64_t> seen;
        for (const pb_plan_item& i : plan) {
            tokens += i.tokens;
            if (!seen.insert(i.id).second) note("sequence " + std::to_string(i.id) + " is scheduled twice");
            if (!by_sequence_.contains(i.id) || !open_.contains(by_sequence_.at(i.id).output))
                note("sequence " + std::to_string(i.id) + " is scheduled and has ended");
        }
        if (tokens > budget_) note(std::to_string(tokens) + " tokens are scheduled, of " + std::to_string(budget_));
        if (plan.size() > max_seqs_) note(std::to_string(plan.size()) + " sequences are scheduled");
    }

    void sampled(std::span<const execution::ScriptedRows> all) override {
        for (const execution::ScriptedRows& rows : all) {
            const auto at = by_sequence_.find(rows.id);
            if (at == by_sequence_.end() || !open_.contains(at->second.output)) continue; // surplus: it has ended
            const Expected& e = open_.at(at->second.output);
            const size_t next = e.prompt + e.got.size();
            const auto become = [&](TokenId& t, size_t position) {
                t = e.alone ? chosen_token(t, kStop) : token_of(e, position);
            };
            for (size_t j = 0; j < rows.tokens.size(); ++j) become(rows.tokens[j], next + j);
            for (const execution::ScriptedBranch& b : rows.branches)
                for (size_t j = 0; j < b.tokens.size(); ++j)
                    become(b.tokens[j], next + b.drafts.size() - b.tokens.size() + 1 + j);
        }
    }

    void take(const RequestOutput& out) {
        const Key key{out.id, out.index};
        const auto at = open_.find(key);
        if (at == open_.end()) return note("output after the end");
        Expected& e = at->second;
        if (e.alone) e.got = out.tokens;
        else if (e.aborted && !out.tokens.empty()) note("tokens after an abort");
        for (const TokenId t : e.alone ? std::vector<TokenId>() : out.tokens) {
            const TokenId want = token_of(e, e.prompt + e.got.size());
            if (t != want) note("request " + std::to_string(out.id) + " has token " + std::to_string(t) + " for " +
                                std::to_string(want) + " at " + std::to_string(e.got.size()));
            e.got.push_back(t);
        }
        if (out.finish == FinishReason::kNone) {
            if (!arrivals_over_ && one_in(1000)) abort(out.id); // from inside a step
            return;
        }
        check_end(e, out);
        if (e.alone && !e.aborted && out.finish != FinishReason::kError) check_choice(*e.alone, out);
        met().outputs += 1;
        open_.erase(at);
    }

    void check_end(const Expected& e, const RequestOutput& out) {
        const size_t made = e.got.size();
        const SamplingParams& p = e.sampling;
        const bool stops = !p.ignore_eos && made > p.min_tokens && e.got.back() == kStop;
        bool before = false;
        for (size_t i = 0; i + 1 < made; ++i) before |= !p.ignore_eos && i >= p.min_tokens && e.got[i] == kStop;
        if (before) note("tokens after a stop");
        switch (out.finish) {
        case FinishReason::kStop: met().stopped += 1; return stops ? void() : note("a stop at no stop");
        case FinishReason::kLength: return made == p.max_tokens && !stops ? void() : note("too short or too long");
        case FinishReason::kAbort: met().aborted += 1; return e.aborted ? void() : note("aborted without a request");
        default: return out.stop_reason.find("the queue is full") == 0 ? void() : note(out.stop_reason);
        }
    }

    void check_choice(const RequestOutput& alone, const RequestOutput& out) {
        if (out.tokens != alone.tokens || out.finish != alone.finish ||
            out.cumulative_logprob != alone.cumulative_logprob || out.beam_score != alone.beam_score)
            note("output " + std::to_string(out.index) + " of request " + std::to_string(out.id) +
                 " is another one than alone: " + std::to_string(out.tokens.size()) + " tokens for " +
                 std::to_string(alone.tokens.size()));
        (out.beam_score ? met().searched : met().best) += 1;
        met().crowded += out.preemptions > 0;
    }

    Result<> one_step() {
        const auto report = engine_->step();
        if (!report) return fail(report.error());
        Met& m = met();
        m.preemptions += report->preemption.preemptions;
        m.accepted += report->drafts.accepted_tokens;
        m.by_branch += report->drafts.branch_tokens;
        m.hits += report->kv.prefix_hit_tokens;
        m.bad_plans += report->calls.plan_faults;
        unsound_ |= report->calls.plan_faults > 0;
        m.proposer_faults += report->calls.proposer_faults;
        m.forked += report->work.forked;
        m.trimmed += report->work.trimmed;
        m.swapped_out += report->preemption.swapped_out;
        m.swapped_in += report->preemption.swapped_in;
        m.overlapped += report->sync_reason.empty();
        m.recomputed_as_dearer += report->preemption.swap_fallbacks[static_cast<size_t>(SwapFallback::kDearer)];
        for (const host::SwapRecord& r : report->swaps) {
            m.swaps += r.state == host::SwapState::kCommitted;
            m.rolled_back += r.state == host::SwapState::kRolledBack;
            m.other_swaps += r.kind != "scheduler" && r.state == host::SwapState::kCommitted;
            m.other_ends += r.kind != "scheduler" && r.settled() && r.state != host::SwapState::kCommitted;
        }
        if (!wrong_.empty()) return fail(wrong_);
        return engine_->audit();
    }

    void note(const std::string& what) { wrong_ = wrong_.empty() ? what : wrong_; }

    const uint64_t seed_;
    const bool chooses_; // odd seeds: also requests whose outputs are chosen among others, and `auto`
    uint64_t draws_ = 0;
    uint32_t step_ = 0, budget_ = 0, max_seqs_ = 0;
    bool has_kv_policy_ = false, speculates_ = false, arrivals_over_ = false, unsound_ = false;
    VirtualClock clock_;
    std::map<Key, Expected> open_; // outputs that have not ended
    std::map<RequestId, Running> by_sequence_;
    std::string wrong_; // the first
    Drafting drafting_;
    std::unique_ptr<Alone> alone_;
    std::unique_ptr<Engine> engine_; // goes first
};

}  // namespace

Met& met() {
    static Met all;
    return all;
}

std::string simulate(uint64_t seed, uint32_t steps) {
    Simulation simulation(seed);
    const auto done = simulation.run(steps);
    if (done) return "";
    return "seed " + std::to_string(seed) + ", step " + std::to_string(simulation.step()) + ": " + done.error();
}

}  // namespace patchbay::engine::testing
