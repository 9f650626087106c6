#include "engine/engine.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/plugin_call.hpp"
#include "base/printable.hpp"
#include "engine/load_model.hpp"
#include "engine/simulation.hpp"
#include "engine/state.hpp"
#include "parallel/launch.hpp"
#include "weights/end_tokens.hpp"
#include "weights/gguf_tokenizer.hpp"

namespace patchbay::engine {

std::string_view name_of(Phase phase) {
    static constexpr std::string_view kNames[kPhaseCount] = {"admit", "plan",   "apply",  "build",
                                                             "run",   "sample", "commit", "publish"};
    return kNames[static_cast<size_t>(phase)];
}

namespace {

// Those of the model's files and the tokenizer's.
Result<std::vector<TokenId>> end_tokens(const config::EngineConfig& c, const weights::FlatConfig& config,
                                        const text::Tokenizer* tokenizer, uint32_t vocab_size) {
    PB_TRY(std::vector<TokenId> out, weights::end_tokens(config, c.model.path, vocab_size));
    const auto own = tokenizer ? tokenizer->eos() : std::nullopt;
    if (own && std::find(out.begin(), out.end(), *own) == out.end()) out.push_back(*own);
    return out;
}

Result<uint32_t> model_length(const config::EngineSettings& e, const runner::ModelRunner& runner) {
    const auto how = e.enable_chunked_prefill ? kv::Computed::kInChunks : kv::Computed::kAtOnce;
    const uint64_t room = kv::longest_sequence(runner.grouping().groups, e.block_size, runner.num_blocks(), how);
    const uint64_t reach = runner.facts().max_position;
    // A prompt that may not be split, and what is recomputed after a preemption, must fit one step.
    const uint64_t step = e.enable_chunked_prefill ? UINT64_MAX : e.max_num_batched_tokens;
    if (e.max_model_len == 0) return static_cast<uint32_t>(std::min({room, reach, step}));
    if (e.max_model_len > reach)
        return fail("max_model_len of " + std::to_string(e.max_model_len) + " is more than the model's " +
                    std::to_string(reach) + " positions");
    if (e.max_model_len > room)
        return fail("max_model_len of " + std::to_string(e.max_model_len) + " tokens does not fit the KV cache of " +
                    std::to_string(runner.num_blocks()) + " blocks of " + std::to_string(e.block_size) +
                    " (raise kv_cache_memory or num_blocks)");
    return e.max_model_len;
}

// A state is that of the latest token: there is none to go back to, neither at a block's end nor behind a draft.
Result<> check_states(const config::EngineConfig& c, EngineFacts& f, const runner::ModelRunner& runner) {
    f.prefix_caching = c.engine.enable_prefix_caching ? "on" : "off";
    const std::string model = "model '" + std::string(runner.model().type().name) + "'";
    const kv::Grouping& kv = runner.grouping();
    constexpr uint32_t kMostBlockSize = 256; // that config takes
    const uint32_t better = std::min(kv.better_block_size, kMostBlockSize);
    if (kv.padding > 0.25)
        spdlog::warn("{}: {:.0f} % of its KV pages' bytes hold nothing, as pages of all groups are alike{}", model,
                     100 * kv.padding,
                     better > c.engine.block_size ? " (a block_size of " + std::to_string(better) + " wastes less)"
                                                  : "");
    if (f.state_groups == 0) return {};
    if (c.proposer)
        return fail("proposer '" + c.proposer->plugin + "' with " + model + ", whose layers keep states: a state "
                    "cannot go back behind a draft that is rejected (choose proposer: none)");
    if (!c.engine.enable_prefix_caching) return {};
    f.prefix_caching = "off: layers keep states, which are those of the latest token only";
    spdlog::info("{}: prefix caching is {}", model, f.prefix_caching);
    return {};
}

}  // namespace

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(const config::EngineConfig& c, const host::Registry& registry,
                                               Clock& clock, host::MetricSink* metrics,
                                               parallel::World* world) {
    current_call().step = 0;
    auto state = std::make_unique<State>(clock);
    State& s = *state;
    s.settings = c.engine;
    s.swap_settings = c.swap;
    s.speculation = c.speculative;
    s.pool = std::make_unique<ThreadPool>(
        choose_threads(c.engine, parallel::ranks_on_these_cores(c.engine.tensor_parallel_size)),
        c.engine.thread_pinning == config::ThreadPinning::kCores ? Pinning::kCores : Pinning::kNone);
    s.clock_service = clock_service(clock);
    s.services = {&s.pool->service(), &s.clock_service, metrics};

    PB_TRY(ModelParts parts, choose_parts(c, registry, s.services));
    const bool real = parts.device_info.computes != 0; // else it charges time
    s.facts.simulated = !real;
    PB_CHECK(s.start_ranks(c, registry, parts.device_info, world));
    parts.model.source.read_with(*s.pool);
    const bool reads_weights = parts.identity != "dummy";
    if (c.model.tokenizer != "none") {
        const std::string folder = c.model.tokenizer.empty() ? c.model.path : c.model.tokenizer;
        const bool needed = reads_weights || !c.model.tokenizer.empty();
        // A shape has no folder; one that is read for its shape may have no tokenizer.
        const bool without =
            folder.empty() || (!needed && !std::filesystem::exists(std::filesystem::path(folder) / "tokenizer.json"));
        if (!without) {
            const auto load = weights::is_gguf(folder) ? weights::load_gguf_tokenizer : text::Tokenizer::load;
            PB_TRY(s.tokenizer, in_one_line(load(folder)));
        }
    }

    PB_TRY(auto scheduler, registry.scheduler(c.scheduler.plugin, c.scheduler.settings, s.services));
    PB_TRY(auto sampler, registry.sampler(c.sampler.plugin, c.sampler.settings, s.services));
    if (real) PB_CHECK(runner::check_sampler(*sampler.component, c.device.plugin, parts.device_info));
    const host::Identity scheduler_identity = host::Registry::identity(*scheduler.component),
                         sampler_identity = host::Registry::identity(*sampler.component);
    s.scheduler.install(std::move(scheduler.component), scheduler_identity);
    s.sampler.install(std::move(sampler.component), sampler_identity);
    PB_CHECK(s.check_speculation(s.sampler.current()));
    PB_CHECK(s.make_proposer(c, registry, parts.model.config));
    const uint64_t before_load = clock.now_ns();
    PB_CHECK(in_one_line(s.load(c, parts)));

    s.in_turn = why_in_turn(c, *s.runner);
    const std::string_view why = s.in_turn.empty() ? s.why_now() : s.in_turn;
    if (c.engine.async_scheduling == config::AsyncScheduling::kOn && !why.empty())
        return fail("async_scheduling: on, but steps must be back before the next is planned: " + std::string(why) +
                    " (auto takes it where it can be had)");

    EngineFacts& f = s.facts;
    f.kv_groups = s.runner->batch_form().token_groups;
    f.state_groups = s.runner->batch_form().state_groups;
    f.kv_padding = s.runner->grouping().padding;
    PB_CHECK(check_states(c, f, *s.runner));
    PB_TRY(f.max_model_len, model_length(c.engine, *s.runner));
    f.vocab_size = s.runner->facts().vocab_size;
    f.num_blocks = s.runner->num_blocks();
    f.block_size = c.engine.block_size;
    f.threads = s.pool->threads();
    f.page_bytes = s.runner->page_bytes();
    f.swap_blocks = s.runner->host_pages().slots();
    f.kv_bytes = f.page_bytes * f.num_blocks;
    f.weight_bytes = s.runner->weight_bytes();
    if (s.drafts_by_model()) {
        f.draft_model = s.draft_model->identity();
        f.draft_weight_bytes = s.runner->guest()->weight_bytes();
    }
    f.load_ns = clock.now_ns() - before_load;
    f.graphs = s.runner->graphs().count();
    f.graph_bytes = s.runner->graphs().bytes();
    f.graph_capture_ns = s.runner->load_capture_ns();
    f.work = s.runner->work();
    f.device_name = s.runner->device_info().name;
    f.isa = s.runner->device_info().isa;
    f.architecture = parts.model.architecture;
    f.weight_dtype = s.runner->weight_form();
    f.kv_dtype = runner::text_of(parts.model.kv_dtypes);
    f.model_identity = parts.identity;
    s.describe_ranks();
    const host::Component* components[] = {&s.scheduler.current(),      &s.sampler.current(),  &s.runner->attention(),
                                           s.proposer.component.get(), &s.runner->model(), &s.runner->device()};
    for (const host::Component* part : components)
        if (part) f.plugins.push_back(host::Registry::identity(*part));
    if (s.tokenizer && s.tokenizer->vocab_size() > f.vocab_size)
        return fail("the tokenizer has " + std::to_string(s.tokenizer->vocab_size()) + " tokens, the model only " +
                    std::to_string(f.vocab_size));

    const auto caching = c.engine.enable_prefix_caching ? kv::PrefixCaching::kOn : kv::PrefixCaching::kOff;
    s.kv = std::make_unique<kv::KvCache>(f.num_blocks, f.block_size, caching,
                                         parts.identity + "/" + f.weight_dtype + "/" +
                                             dtype_word(parts.model.weights.dtype) + "/" + s.runner->layout_tag() +
                                             "/" + f.draft_model,
                                         s.runner->grouping().groups, s.runner->host_pages().slots());
    if (c.engine.zero_freed_blocks) s.kv->zero_freed();
    s.pressure = PressureMonitor(c.engine.watermark);
    PB_TRY(s.eos, end_tokens(c, parts.model.config, s.tokenizer.get(), f.vocab_size));
    s.start_drafts();
    if (s.tokenizer) s.make_grammars();
    return std::unique_ptr<Engine>(new Engine(std::move(state)));
}

void Engine::State::make_grammars() {
    grammars = std::make_unique<grammar::GrammarCache>(
        [tokenizer = tokenizer, size = facts.vocab_size, eos = eos] {
            return grammar::Vocabulary::of(*tokenizer, size, eos);
        },
        clock);
}

Result<> Engine::compile_grammar(const grammar::StructuredOutputs& asked) {
    PB_CHECK(refused_as(StatusCode::kInvalid, in_one_line(state_->grammar_of(asked))));
    return {};
}
Result<RequestId> Engine::add_request(Request request) {
    // The texts of a grammar are the user's.
    return refused_as(StatusCode::kInvalid, in_one_line(state_->add(std::move(request))));
}
void Engine::abort(RequestId id) {
    state_->abort(id);
    if (state_->in_step || has_unfinished()) return;
    if (const auto done = state_->flush_copies(); !done) // the next step makes them
        spdlog::warn("what an aborted request leaves in the KV cache is not overwritten yet: {}", done.error());
}
bool Engine::has_unfinished() const { return !state_->sequences.empty() || state_->flying.up; }
const EngineFacts& Engine::facts() const { return state_->facts; }
const std::shared_ptr<const text::Tokenizer>& Engine::tokenizer() const { return state_->tokenizer; }
Clock& Engine::clock() { return state_->clock; }
Result<> Engine::reset_prefix_cache() {
    PB_CHECK(state_->kv->reset_prefixes());
    state_->tell_kv_events();
    return has_unfinished() ? Result<>() : state_->flush_copies();
}
void Engine::on_kv_events(std::function<void(std::span<const kv::CacheEvent>, uint64_t now_ns)> listener) {
    state_->kv->record_events();
    state_->on_kv_events = std::move(listener);
}

// Before the model is loaded, since a draft model lies in the same pages.
Result<> Engine::State::make_proposer(const config::EngineConfig& c, const host::Registry& registry,
                                      const weights::FlatConfig& target) {
    if (!c.proposer) return {};
    draft_model = std::make_unique<DraftModel>(
        DraftModel::Context{c, registry, services, *pool, !facts.simulated, target});
    host::Services with_runner = services;
    with_runner.runner = &draft_model->service();
    PB_TRY(proposer, registry.proposer(c.proposer->plugin, c.proposer->settings, with_runner));
    draft_model->end_create();
    if (speculation.mode == config::DraftMode::kAdaptive) draft_length.emplace(settings.num_speculative_tokens);
    if (speculation.rejection_sample_method == config::Verification::kSynthetic) {
        synthetic.emplace(speculation.synthetic_acceptance_rates);
        facts.synthetic_acceptance = true;
        spdlog::warn("drafts are accepted by synthetic_acceptance_rates, whatever the model says: texts mean nothing");
    }
    if (facts.simulated && !draft_model->guest() && !synthetic)
        return fail("proposer '" + c.proposer->plugin + "' on device '" + c.device.plugin +
                    "', which computes nothing: which drafts would be accepted is not known (choose proposer: none, or "
                    "tell with speculative.rejection_sample_method: synthetic)");
    return {};
}

void Engine::State::start_drafts() {
    if (drafts_by_model()) draft_model->start({*runner->guest(), *kv, sampler, eos, clock});
}

Result<> Engine::State::step_in_turn(std::string_view why) {
    PB_CHECK(in_phase(Phase::kAdmit, [&] { admit(); }));
    PB_CHECK(in_phase(Phase::kPlan, [&] { return plan(); }));
    PB_CHECK(in_phase(Phase::kApply, [&] { apply(); }));
    tell_script();
    report.in_turn = why;
    if (scheduled.empty()) return {};
    PB_CHECK(in_phase(Phase::kBuild, [&] { build(); }));
    PB_CHECK(in_phase(Phase::kRun, [&] { return run(); }));
    PB_CHECK(in_phase(Phase::kSample, [&] { return sample(); }));
    PB_CHECK(in_phase(Phase::kCommit, [&] { commit(); }));
    PB_CHECK(in_phase(Phase::kPublish, [&] { publish(); }));
    if (!proposer) return {};
    return in_phase(Phase::kCommit, [&] { propose(); });
}

Result<StepReport> Engine::step() {
    constexpr uint32_t kIdlePlansInARow = 1000;
    State& s = *state_;
    s.report = {};
    s.report.step = current_call().step = ++s.step;
    s.in_step = true;
    const uint64_t evictions_before = s.kv->pool().evictions();
    // Before the first phase: to wait for an arrival is no work.
    if (s.waiting.empty() && s.running.empty() && !s.flying.up && !s.pending.empty())
        s.clock.wait_until_ns(s.pending.begin()->first);

    s.swap_at_boundary();
    s.report.start_ns = s.phase_began_ns = clock().now_ns();
    s.kv->set_time(s.report.start_ns);
    s.landed = false;
    Result<> done = s.in_turn.empty() ? s.overlapped_step() : s.step_in_turn(s.in_turn);
    s.in_step = false;

    s.idle_plans = s.scheduled.empty() && !s.landed && has_unfinished() ? s.idle_plans + 1 : 0;
    if (s.idle_plans >= kIdlePlansInARow && s.pending.empty() &&
        s.roll_back(s.scheduler, "plan", "ran nothing for " + std::to_string(s.idle_plans) + " steps in a row"))
        s.idle_plans = 0;
    if (done && s.idle_plans > 0) {
        if (!s.pending.empty()) s.clock.wait_until_ns(s.pending.begin()->first); // nothing to do until then
        else if (s.idle_plans >= kIdlePlansInARow)
            done = fail("scheduler '" + std::string(s.scheduler.current().type().name) + "' ran nothing for " +
                        std::to_string(kIdlePlansInARow) + " steps in a row with " +
                        std::to_string(s.sequences.size()) + " requests unfinished");
    }
    for (const RequestId id : std::exchange(s.refused, {}))
        s.end(id, FinishReason::kError, s.full_queue());
    for (const RequestId id : std::exchange(s.aborts, {})) s.abort(id);
    if (!done) {
        s.fail_all(done.error());
        return done.failure();
    }
    if (s.scheduler.previous() || s.sampler.previous()) s.end_probation_step();
    if (s.settings.adaptive_watermark && !s.scheduled.empty()) s.pressure.step(s.report.crowded_out);
    if (!has_unfinished()) PB_CHECK(s.flush_copies());
    s.tell_kv_events();
    s.report.evicted_blocks = static_cast<uint32_t>(s.kv->pool().evictions() - evictions_before);
    s.summarise();
    if (s.draft_length) s.draft_length->observe(s.report);
    return s.report;
}

}  // namespace patchbay::engine
