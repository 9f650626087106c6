// From a configuration to an engine: plugins, model and tokenizer loaded, the KV cache sized, the pipeline built.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

#include "base/plugin_call.hpp"
#include "base/printable.hpp"
#include "engine/facts.hpp"
#include "engine/impl.hpp"
#include "engine/load_tokenizer.hpp"
#include "engine/speculation/draft_load.hpp"
#include "engine/substitutes.hpp"
#include "execution/load_model.hpp"
#include "execution/local_executor.hpp"
#include "execution/simulated_executor.hpp"
#include "execution/start_ranks.hpp"
#include "execution/sync_reasons.hpp"
#include "parallel/launch.hpp"
#include "weights/end_tokens.hpp"

namespace patchbay::engine {
namespace {

std::string named(const text::Tokenizer& tokenizer, TokenId token) {
    return std::to_string(token) + " ('" + printable(tokenizer.token_bytes(token)) + "')";
}

// Those of the model's files and the tokenizer's.
Result<std::vector<TokenId>> end_tokens(const config::EngineConfig& c, const weights::FlatConfig& config,
                                        const text::Tokenizer* tokenizer, uint32_t vocab_size) {
    PB_TRY(std::vector<TokenId> out, weights::end_tokens(config, c.model.path, vocab_size));
    const auto own = tokenizer ? tokenizer->eos() : std::nullopt;
    if (!own || std::find(out.begin(), out.end(), *own) != out.end()) return out;
    if (static_cast<uint32_t>(*own) < vocab_size) out.push_back(*own);
    else
        spdlog::warn("the tokenizer's EOS {} is not in the model's vocabulary of {} tokens: it ends no output",
                     named(*tokenizer, *own), vocab_size);
    return out;
}

void warn_of_unknown_tokens(const text::Tokenizer& tokenizer, uint32_t vocab_size) {
    if (tokenizer.vocab_size() <= vocab_size) return;
    spdlog::warn("the tokenizer has {} tokens, the model only {}: prompts with tokens from {} on are refused",
                 tokenizer.vocab_size(), vocab_size, named(tokenizer, static_cast<TokenId>(vocab_size)));
}

Result<uint32_t> model_length(const config::EngineSettings& e, const runner::ModelRunner& runner) {
    const auto how = e.enable_chunked_prefill ? kv::Computed::kInChunks : kv::Computed::kAtOnce;
    const runner::KvMemory& kv = runner.kv();
    const uint64_t room = kv::longest_sequence(kv.grouping().groups, e.block_size, kv.pages().count(), how);
    if (room == 0)
        return fail(StatusCode::kExhausted, "the KV cache of " + std::to_string(kv.pages().count()) + " blocks of " +
                                                std::to_string(e.block_size) +
                                                " holds not even one token (raise kv_cache_memory or num_blocks)");
    const uint64_t reach = runner.model().facts().max_position;
    // A prompt that may not be split, and what is recomputed after a preemption, must fit one step.
    const uint64_t step = e.enable_chunked_prefill ? UINT64_MAX : e.max_num_batched_tokens;
    if (e.max_model_len == 0) return static_cast<uint32_t>(std::min({room, reach, step}));
    if (e.max_model_len > reach)
        return fail(StatusCode::kInvalid,
                    "max_model_len of " + std::to_string(e.max_model_len) + " is more than the model's " +
                    std::to_string(reach) + " positions");
    if (e.max_model_len > room)
        return fail(StatusCode::kInvalid,
                    "max_model_len of " + std::to_string(e.max_model_len) + " tokens does not fit the KV cache of " +
                    std::to_string(kv.pages().count()) + " blocks of " + std::to_string(e.block_size) +
                    " (raise kv_cache_memory or num_blocks)");
    return e.max_model_len;
}

// A state is that of the latest token: there is none to go back to, neither at a block's end nor after a draft.
Result<> check_states(const config::EngineConfig& c, EngineFacts& f, const runner::ModelRunner& runner) {
    f.kv.prefix_caching = c.engine.enable_prefix_caching ? "on" : "off";
    const std::string model = runner.model().label();
    const kv::Grouping& kv = runner.kv().grouping();
    constexpr uint32_t kMaxBlockSize = 256; // that config takes
    const uint32_t better = std::min(kv.better_block_size, kMaxBlockSize);
    if (kv.padding > 0.25)
        spdlog::warn("{}: {:.0f} % of its KV pages' bytes hold nothing, as pages of all groups are alike{}", model,
                     100 * kv.padding,
                     better > c.engine.block_size ? " (a block_size of " + std::to_string(better) + " wastes less)"
                                                  : "");
    if (f.kv.state_groups == 0) return {};
    if (c.proposer)
        return fail(StatusCode::kUnsupported,
                    "proposer '" + c.proposer->plugin + "' with " + model + ", whose layers keep states: a state "
                    "cannot go back before a draft that is rejected (choose proposer: none)");
    if (!c.engine.enable_prefix_caching) return {};
    f.kv.prefix_caching = "off: layers keep states, which are those of the latest token only";
    spdlog::info("{}: prefix caching is {}", model, f.kv.prefix_caching);
    return {};
}

// Why each step must be back before the next one is planned, whatever the step. Empty: it need not.
std::string_view sync_reason_of(const config::EngineConfig& c, const execution::Executor& executor, bool proposes) {
    if (c.engine.async_scheduling == config::AsyncScheduling::kOff) return execution::sync_reason::kOff;
    if (const std::string_view why = executor.sync_reason(); why == execution::sync_reason::kDevice)
        return why;
    if (proposes) return execution::sync_reason::kProposer; // drafts follow from tokens that the host sees
    return executor.sync_reason();
}

}  // namespace

// The steps of Engine::create, in their order.
class Engine::Builder {
  public:
    Builder(const config::EngineConfig& c, const host::Registry& registry, Clock& clock, host::MetricSink* metrics)
        : c_(c), impl_(std::make_unique<Impl>(clock)), registry_(allowed(registry)) {
        impl_->config = c;
        impl_->pool = std::make_unique<ThreadPool>(
            execution::choose_threads(c.engine, parallel::ranks_on_these_cores(c.engine.tensor_parallel_size)),
            c.engine.thread_pinning == config::ThreadPinning::kCores ? Pinning::kCores : Pinning::kNone);
        impl_->clock_service = clock_service(clock);
        impl_->services = {&impl_->pool->service(), &impl_->clock_service, metrics};
    }

    Result<std::unique_ptr<Engine>> build(parallel::World* world, Substitutes* in_place) {
        PB_CHECK(open(world));
        PB_CHECK(choose_policies(in_place));
        PB_CHECK(load(in_place));
        PB_CHECK(describe());
        PB_CHECK(connect(in_place));
        return std::unique_ptr<Engine>(new Engine(std::move(impl_)));
    }

  private:
    const host::Registry& allowed(const host::Registry& all) {
        if (!c_.allowed_plugins) return all;
        return impl_->allowed.emplace(all.restricted_to(*c_.allowed_plugins));
    }
    bool computes() const { return parts_->device_info.computes != 0; } // else it charges time

    Result<> open(parallel::World*);
    Result<> choose_policies(const Substitutes*);
    Result<> make_proposer();
    Result<> load(const Substitutes*);
    Result<> describe();
    std::unique_ptr<kv::KvCache> make_kv() const;
    Result<> connect(Substitutes*);

    const config::EngineConfig& c_;
    std::unique_ptr<Impl> impl_;
    const host::Registry& registry_; // the allowed ones of the given
    std::optional<execution::ModelParts> parts_; // from open() on
    execution::OtherRanks ranks_;
    std::vector<std::string> rank_names_;
    const execution::LocalExecutor* local_ = nullptr; // the executor, with the runner that is in it
    host::Proposer proposer_;
    host::KvPolicy kv_policy_;
    std::optional<host::Scheduler> scheduler_;
    std::optional<host::Sampler> sampler_;
    uint64_t before_load_ns_ = 0;
};

Result<> Engine::Builder::open(parallel::World* world) {
    PB_TRY(parts_, execution::choose_parts(c_, registry_, impl_->services));
    impl_->facts.device_computes = computes();
    PB_TRY(ranks_, execution::start_ranks(c_, registry_, parts_->device_info, world));
    parts_->model.source.read_with(*impl_->pool);
    PB_TRY(impl_->tokenizer, load_tokenizer(c_, parts_->identity != "dummy"));
    return {};
}

Result<> Engine::Builder::choose_policies(const Substitutes* in_place) {
    if (in_place && computes())
        return fail(StatusCode::kInvalid,
                    "an executor of the caller's in the place of device '" + c_.device.plugin + "', which computes");
    PB_TRY(scheduler_, registry_.scheduler(c_.scheduler.plugin, c_.scheduler.settings, impl_->services));
    PB_TRY(sampler_, registry_.sampler(c_.sampler.plugin, c_.sampler.settings, impl_->services));
    if (computes())
        PB_CHECK(runner::check_sampler(*sampler_->component, c_.device.plugin, parts_->device_info));
    const auto tokens = computes() ? execution::TokenSource::kModel : execution::TokenSource::kMadeUp;
    PB_CHECK(check_verification(c_.speculative, *sampler_->component, tokens));
    if (c_.kv_policy) {
        PB_TRY(kv_policy_, registry_.kv_policy(c_.kv_policy->plugin, c_.kv_policy->settings, impl_->services));
    }
    return make_proposer();
}

// Before the model is loaded, since a draft model lies in the same pages.
Result<> Engine::Builder::make_proposer() {
    if (!c_.proposer) return {};
    Impl& s = *impl_;
    s.draft_model = std::make_unique<DraftModel>(
        DraftLoad::Context{c_, registry_, s.services, *s.pool, computes(), parts_->model.config});
    host::Services with_runner = s.services;
    with_runner.runner = &s.draft_model->service();
    PB_TRY(proposer_, registry_.proposer(c_.proposer->plugin, c_.proposer->settings, with_runner));
    s.draft_model->opened().end();
    if (c_.speculative.rejection_sample_method == config::Verification::kSynthetic) {
        s.facts.synthetic_acceptance = true;
        spdlog::warn("drafts are accepted by synthetic_acceptance_rates, whatever the model says: texts mean nothing");
    }
    if (!computes() && !s.draft_model->opened().draft() && !s.facts.synthetic_acceptance)
        return fail(StatusCode::kUnsupported,
                    "proposer '" + c_.proposer->plugin + "' on device '" + c_.device.plugin +
                    "', which computes nothing: which drafts would be accepted is not known (choose proposer: none, or "
                    "give the rates with speculative.rejection_sample_method: synthetic)");
    return {};
}

// The runner, as all ranks load theirs, in the executor that fits.
Result<> Engine::Builder::load(const Substitutes* in_place) {
    Impl& s = *impl_;
    before_load_ns_ = s.clock.now_ns();
    const auto load_here = [&]() -> Result<std::unique_ptr<runner::ModelRunner>> {
        if (ranks_.group) PB_CHECK(ranks_.group->check_equal(parts_->facts()));
        const host::Component& sampler = *sampler_->component;
        auto made = execution::load_runner(c_, *parts_, ranks_.get(), s.clock,
                                           s.draft_model ? s.draft_model->opened().draft() : nullptr,
                                           runner::runs_on_device(sampler) ? &sampler : nullptr);
        if (!made) return ranks_.group ? ranks_.group->known_cause(made.failure()) : made.failure();
        if (ranks_.group) PB_CHECK(ranks_.group->loaded());
        return made;
    };
    PB_TRY(auto runner, in_one_line(load_here()));
    rank_names_ = ranks_.names(c_.engine.tensor_parallel_size);
    if (in_place && in_place->tokenizer) s.tokenizer = in_place->tokenizer;
    PB_TRY(s.eos, end_tokens(c_, parts_->model.config, s.tokenizer.get(), runner->model().facts().vocab_size));
    std::unique_ptr<execution::LocalExecutor> executor;
    if (ranks_.group) {
        executor = std::make_unique<execution::RankedExecutor>(std::move(runner), std::move(ranks_.group), s.clock);
    } else if (computes()) {
        executor = std::make_unique<execution::LocalExecutor>(std::move(runner));
    } else if (in_place) {
        executor = in_place->executor(std::move(runner), std::move(ranks_.simulated), s.eos);
    } else {
        executor =
            std::make_unique<execution::SimulatedExecutor>(std::move(runner), std::move(ranks_.simulated), s.eos);
    }
    local_ = executor.get();
    s.executor = std::move(executor);
    return {};
}

Result<> Engine::Builder::describe() {
    EngineFacts& f = impl_->facts;
    const runner::ModelRunner& runner = local_->runner();
    const runner::KvMemory& kv = runner.kv();
    f.kv.groups = kv.batch_form().token_groups;
    f.kv.state_groups = kv.batch_form().state_groups;
    for (const kv::GroupSpec& g : kv.grouping().groups)
        if (g.kind != kv::GroupKind::kRecurrent) f.kv.windows.push_back(g.window);
    f.kv.padding = kv.grouping().padding;
    PB_CHECK(check_states(c_, f, runner));
    PB_TRY(f.max_model_len, model_length(c_.engine, runner));
    f.model.vocab_size = runner.model().facts().vocab_size;
    f.model.hidden_size = runner.passes().hidden_size();
    f.kv.num_blocks = kv.pages().count();
    f.kv.block_size = c_.engine.block_size;
    f.threads = impl_->pool->threads();
    f.kv.page_bytes = kv.page_bytes();
    f.kv.swap_pages = kv.host_pages().slots();
    f.kv.bytes = f.kv.page_bytes * f.kv.num_blocks;
    f.model.weight_bytes = runner.weights().bytes;
    if (const runner::ModelRunner* const draft = runner.draft()) {
        f.draft.model = impl_->draft_model->opened().identity();
        f.draft.weight_bytes = draft->weights().bytes;
    }
    f.load_ns = impl_->clock.now_ns() - before_load_ns_;
    const runner::PassGraphs& graphs = runner.passes().graphs();
    f.graphs.count = graphs.cache().count();
    f.graphs.bytes = graphs.cache().bytes();
    f.graphs.capture_ns = graphs.load_ns();
    f.model.work = runner.weights().work;
    f.device_name = runner.device().info.name;
    f.isa = runner.device().info.isa;
    f.model.architecture = parts_->model.architecture;
    f.model.weight_dtype = runner.weights().form;
    f.model.dtype = execution::dtype_word(parts_->model.weights.dtype);
    f.kv.dtype = runner::text_of(parts_->model.kv_dtypes);
    f.kv.layout = kv.layers().binding().layout_tag();
    f.kv.watermark = c_.engine.watermark;
    f.model.identity = parts_->identity;
    f.model.position_length = execution::position_length(parts_->model.config, c_.engine.max_model_len);
    f.tensor_parallel_size = c_.engine.tensor_parallel_size;
    f.ranks = rank_names_;
    const host::Component* components[] = {
        scheduler_->component.get(), sampler_->component.get(),   &runner.attention().component(),
        proposer_.component.get(),   kv_policy_.component.get(), &runner.model().component(),
        runner.device().plugin.component.get()};
    for (const host::Component* part : components)
        if (part) f.plugins.push_back(host::Registry::identity(*part));
    if (impl_->tokenizer) warn_of_unknown_tokens(*impl_->tokenizer, f.model.vocab_size);
    return {};
}

std::unique_ptr<kv::KvCache> Engine::Builder::make_kv() const {
    const EngineFacts& f = impl_->facts;
    const runner::ModelRunner& runner = local_->runner();
    const auto caching = c_.engine.enable_prefix_caching ? kv::PrefixCaching::kOn : kv::PrefixCaching::kOff;
    auto out = std::make_unique<kv::KvCache>(f.kv.num_blocks, f.kv.block_size, caching, f.kv_identity(),
                                             runner.kv().grouping().groups, runner.kv().host_pages().slots());
    if (c_.engine.zero_freed_blocks) out->copies().zero_freed();
    return out;
}

Result<> Engine::Builder::connect(Substitutes* in_place) {
    Impl& s = *impl_;
    if (in_place && in_place->proposer) proposer_ = std::move(in_place->proposer);
    const std::string_view reason = sync_reason_of(c_, *s.executor, static_cast<bool>(proposer_));
    s.pipeline = std::make_unique<Pipeline>(PipelineInputs{c_, s.clock, s.facts, *s.executor,
                                                           local_->runner().kv().batch_form(), s.tokenizer, s.eos,
                                                           s.draft_model.get(), reason},
                                            make_kv(), std::move(proposer_), std::move(kv_policy_));
    Pipeline& p = *s.pipeline;
    std::array<SwapPort*, kSwapSlots.size()> ports{};
    for (size_t i = 0; i < ports.size(); ++i) ports[i] = &p.port(static_cast<SwapSlot>(i));
    s.control.emplace(EngineControl::Parts{
        {s.config, s.services, ports, p.swaps.model, p.swaps.all.transactions()}, p.common.context, p.common.journal});
    PB_CHECK(p.cache.policy.adopt());
    const auto install = [](host::Slot& slot, std::unique_ptr<host::Component> component) {
        const host::Identity identity = host::Registry::identity(*component);
        slot.install(std::move(component), identity);
    };
    install(p.scheduling.scheduler.slot(), std::move(scheduler_->component));
    install(p.sampling.sampler.slot(), std::move(sampler_->component));
    if (in_place && in_place->observer) {
        s.observer = std::move(in_place->observer);
        p.loop.observers().add(*s.observer);
    }
    const std::string_view why = in_place ? "" : p.loop.sync_reason();
    if (c_.engine.async_scheduling == config::AsyncScheduling::kOn && !why.empty())
        return fail(StatusCode::kInvalid,
                    "async_scheduling: on, but steps must be back before the next is planned: " + std::string(why) +
                    " (auto takes it where it can be had)");
    return {};
}

Result<std::unique_ptr<Engine>> Engine::create(const config::EngineConfig& c, const host::Registry& registry,
                                               Clock& clock, host::MetricSink* metrics, parallel::World* world) {
    current_call().step = 0;
    return Builder(c, registry, clock, metrics).build(world, nullptr);
}

Result<std::unique_ptr<Engine>> Engine::create_with(const config::EngineConfig& c, const host::Registry& registry,
                                                    Clock& clock, Substitutes in_place) {
    current_call().step = 0;
    return Builder(c, registry, clock, nullptr).build(nullptr, &in_place);
}

}  // namespace patchbay::engine
