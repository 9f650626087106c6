#include "runner/model_runner.hpp"

#include <algorithm>
#include <utility>

#include "host/registry.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::runner {
ModelRunner::ModelRunner(std::shared_ptr<OpenDevice> device, host::Model model, const host::Component& attention,
                         Clock& clock, const Ranks* ranks)
    : shared_device_(std::move(device)), its_(*shared_device_), device_(its_.plugin),
      own_model_(std::move(model.component)), model_(own_model_.get()), attention_(&attention), clock_(clock),
      weights_(its_, ranks), kv_(its_, attention, clock) {}

ModelRunner::~ModelRunner() {
    abandon();
    if (ranks_) ranks_->watch(nullptr);
    draft_.reset();
    graphs_.reset();
    inputs_.reset();
    workspace_.reset();
}

namespace {

// Whose catching up may take a token a sequence more than the model's step.
RunnerSettings draft_settings(const RunnerSettings& of_model, const DraftModel& draft) {
    RunnerSettings out = of_model;
    out.model_config = draft.model_config;
    out.weights = draft.weights;
    out.kv_dtypes = draft.kv_dtypes;
    if (out.max_num_batched_tokens > 0) out.max_num_batched_tokens += out.max_num_seqs;
    out.num_speculative_tokens = 0;
    if (draft.facts.layer_count == 0) out.cudagraph_mode = GraphMode::kNone; // passes differ in the token they predict
    return out;
}

}  // namespace

Result<std::unique_ptr<ModelRunner>> ModelRunner::create(host::Device device, host::Model model,
                                                         host::Attention attention, const weights::WeightSource& source,
                                                         const RunnerSettings& settings, Clock& clock,
                                                         DraftModel* draft) {
    std::unique_ptr<ModelRunner> runner(
        new ModelRunner(std::make_shared<OpenDevice>(std::move(device), settings.device), std::move(model),
                        *attention.component, clock, settings.ranks));
    runner->own_attention_ = std::move(attention.component);
    const RunnerSettings its = draft ? draft_settings(settings, *draft) : RunnerSettings{};
    PB_CHECK(runner->open(settings));
    if (draft) PB_CHECK(runner->open_draft(*draft, its));
    PB_CHECK(runner->bind_kv(settings, its));
    PB_CHECK(runner->load_weights(source, settings.weights));
    if (runner->draft_ && is_head(*runner->draft_->model_)) PB_CHECK(runner->share_target_weights(settings));
    if (draft) PB_CHECK(runner->draft_->load_weights(draft->source, its.weights));
    PB_CHECK(runner->allocate_kv(settings, its));
    PB_CHECK(runner->make_graphs(settings));
    if (draft) PB_CHECK(runner->draft_->make_graphs(its));
    return runner;
}

Result<> ModelRunner::open(const RunnerSettings& settings) {
    PB_CHECK(its_.read_info());
    if (!its_.info.computes) PB_CHECK(check_simulation());
    if (settings.ranks) PB_CHECK(connect(*settings.ranks));
    its_.read_ops();
    workspace_ = std::make_unique<Workspace>(device_);
    inputs_ = std::make_unique<StepInputs>(device_);
    max_tokens_ = settings.max_num_batched_tokens;
    if (ranks_) reader_ = {ranks_->wire().rank, ranks_->wire().size};
    reader_.max_length = settings.max_model_len;
    PB_TRY(facts_, read_facts(*model_, settings.model_config, reader_));
    signature_ = facts_;
    if (is_head(*model_))
        return fail(StatusCode::kUnsupported, "model '" + std::string(model_->type().name) +
                    "' is a head of another model and says nothing by itself (name that one, and this in proposer:)");
    return check_model();
}

Result<> ModelRunner::open_draft(DraftModel& draft, const RunnerSettings& its) {
    if (ranks_)
        return fail(StatusCode::kUnsupported, "a second model beside one of " + std::to_string(ranks_->wire().size) +
                    " ranks (set tensor_parallel_size: 1)");
    if (draft.facts.vocab_size != facts_.vocab_size)
        return fail(StatusCode::kInvalid,
                    "the draft model '" + std::string(draft.model.component->type().name) + "' has a vocabulary of " +
                    std::to_string(draft.facts.vocab_size) + " tokens, expected the model's " +
                    std::to_string(facts_.vocab_size) + " (take two models of one family)");
    if (is_head(*draft.model.component)) PB_CHECK(check_head(draft));
    draft_.reset(new ModelRunner(shared_device_, std::move(draft.model), *attention_, clock_, nullptr));
    ModelRunner& g = *draft_;
    g.workspace_ = std::make_unique<Workspace>(device_);
    g.inputs_ = std::make_unique<StepInputs>(device_);
    g.max_tokens_ = its.max_num_batched_tokens;
    g.facts_ = draft.facts;
    return g.check_model();
}

Result<> ModelRunner::check_head(const DraftModel& head) const {
    const std::string name = "head '" + std::string(head.model.component->type().name) + "'",
                      target = "model '" + std::string(model_->type().name) + "'";
    if (!(facts_.flags & PB_MODEL_GIVES_HIDDEN))
        return fail(StatusCode::kUnsupported, name + " goes on from hidden states, which " + target +
                    " does not give (a draft model beside it can be had)");
    if (head.facts.hidden_size != facts_.hidden_size)
        return fail(StatusCode::kInvalid,
                    name + " is of a model with hidden_size " + std::to_string(head.facts.hidden_size) + ", and " +
                    target + " has " + std::to_string(facts_.hidden_size) + " (take the head that was trained for it)");
    return {};
}

Result<> ModelRunner::check_simulation() const {
    if (!device_.extension<pb_device_simulation>())
        return fail(StatusCode::kUnsupported,
                    "device '" + its_.name + "' computes nothing, but does not say what time passes");
    if (!attention_->table<pb_attention>()->cost)
        return fail(StatusCode::kUnsupported, "device '" + its_.name + "' computes nothing, and " +
                    attention_->label() + " does not say what it costs there (choose paged)");
    return {};
}

Result<> ModelRunner::connect(Ranks& ranks) {
    const pb_group& group = ranks.wire();
    if (!device_.extension<pb_device_collectives>())
        return fail(StatusCode::kUnsupported,
                    "device '" + its_.name + "' cannot be one of " + std::to_string(group.size) +
                    " ranks (set tensor_parallel_size: 1)");
    ranks_ = &ranks;
    ranks.watch([device = device_.component.get()] { host::call<&pb_device_collectives::disconnect>(*device); });
    return device_.checked<&pb_device_collectives::connect>(&group);
}

Result<> ModelRunner::check_model() const {
    if (ranks_ && (!its_.ops.all_reduce || !its_.ops.all_gather))
        return fail("device '" + its_.name + "' connected the ranks, but has no all_reduce or no all_gather");
    return its_.check_needs(*model_);
}

namespace {

GraphScope scope_of(const RunnerSettings& settings, bool has_graphs) {
    GraphScope out;
    out.device = has_graphs;
    out.attention = PB_GRAPHS_ANY;
    out.max_num_seqs = settings.max_num_seqs;
    out.max_num_batched_tokens = settings.max_num_batched_tokens;
    out.rows_per_sequence = settings.rows_per_sequence();
    if (settings.ranks) out.ranks = settings.ranks->wire().size;
    return out;
}

// A batch's bounds are part of every graph.
GraphSettings graphs_of(const RunnerSettings& settings) {
    const bool known = settings.max_num_seqs > 0 && settings.max_num_batched_tokens > 0;
    return {known ? settings.cudagraph_mode : GraphMode::kNone, settings.cudagraph_capture,
            settings.cudagraph_capture_sizes, settings.cudagraph_memory};
}

}  // namespace

Result<> ModelRunner::load_weights(const weights::WeightSource& source, const weights::WeightForm& form) {
    return weights_.load({*model_, facts_, source, form}, kv_.layers().layers());
}

Result<> ModelRunner::share_target_weights(const RunnerSettings& settings) {
    PB_CHECK(draft_->weights_.share_target_weights(weights_, *model_, facts_));
    const uint32_t padded = GraphCache(graphs_of(settings), scope_of(settings, its_.has_graphs()), {}).max_tokens();
    hidden_ = std::make_unique<HiddenStates>(device_);
    draft_->goes_on_from_ = hidden_.get();
    return hidden_->allocate({std::max(settings.max_num_batched_tokens, padded), settings.rows_per_sequence(),
                              settings.max_num_seqs, facts_.hidden_size, its_.info.activation_dtype,
                              its_.info.host_memory ? 0 : 1, its_.info.computes != 0});
}

Result<LayersKv> ModelRunner::describe_kv(const RunnerSettings& settings) {
    const uint32_t padded = GraphCache(graphs_of(settings), scope_of(settings, its_.has_graphs()), {}).max_tokens();
    return kv_.describe(*model_, facts_, settings, padded);
}

// One grouping over the layers of both models: a block of tokens has pages for either.
Result<> ModelRunner::bind_kv(const RunnerSettings& settings, const RunnerSettings& of_guest) {
    PB_TRY(LayersKv own, describe_kv(settings));
    std::vector<kv::LayerKv> kept = own.kept;
    LayersKv its;
    if (draft_) {
        PB_TRY(its, draft_->describe_kv(of_guest));
        for (const kv::LayerKv& layer : its.kept)
            if (layer.spec.kind == kv::GroupKind::kRecurrent)
                return fail("model '" + std::string(draft_->model_->type().name) +
                            "' keeps states: a state cannot go back to before a rejected draft");
        for (kv::LayerKv layer : its.kept) {
            if (layer.owner) *layer.owner += own.kept.size();
            kept.push_back(std::move(layer));
        }
    }
    const kv::Grouping whole = kv::group_layers(kept, settings.block_size);
    PB_CHECK(kv_.bind(own, whole, 0));
    if (!draft_) return {};
    draft_->kv_.share_pool(kv_);
    return draft_->kv_.bind(its, whole, own.kept.size());
}

Result<> ModelRunner::allocate_kv(const RunnerSettings& settings, const RunnerSettings& of_guest) {
    constexpr uint64_t kMaxBlocks = 1u << 26; // block ids and counts stay far inside 32 bits
    uint64_t memory = settings.kv_cache_memory;
    const bool profiled = settings.num_blocks == 0 && settings.gpu_memory_utilization > 0;
    if (profiled) {
        PB_TRY(memory, room_for_kv(settings, of_guest));
    }
    const uint64_t wanted = settings.num_blocks ? settings.num_blocks : memory / kv_.page_bytes();
    if (wanted == 0)
        return fail(StatusCode::kExhausted,
                    (profiled ? "gpu_memory_utilization leaves " : "kv_cache_memory of ") + std::to_string(memory) +
                    " bytes" + (profiled ? ", which hold" : " holds") + " no block (one takes " +
                    std::to_string(kv_.page_bytes()) + " bytes)");
    auto pages = static_cast<uint32_t>(std::min(wanted, kMaxBlocks));
    if (ranks_) {
        PB_TRY(pages, ranks_->agree_blocks(pages));
    }
    PB_CHECK(kv_.layers().allocate(pages));
    return kv_.allocate_host_pages(settings);
}

// As many sequences as run at once, which share the token budget; every block of theirs is the one page.
Result<> ModelRunner::run_largest(const RunnerSettings& settings) {
    const uint32_t tokens = settings.max_num_batched_tokens;
    const uint32_t sequences = std::clamp(settings.max_num_seqs, 1u, tokens);
    const uint32_t length = std::clamp(tokens / sequences, 1u, std::max(kv_.max_seq_len(), 1u));
    const BatchForm& form = kv_.batch_form();
    const uint32_t blocks = (length + settings.block_size - 1) / settings.block_size;
    kv::BlockTable table;
    table.pages.assign(form.token_groups + form.state_groups, std::vector<kv::BlockId>(blocks, 0));
    const std::vector<int32_t> ids(length);
    Batch largest;
    largest.clear(form);
    for (uint32_t s = 0; s < sequences; ++s)
        largest.add({ids, 0, std::min(settings.rows_per_sequence(), length), table, ids}); // hidden states: any will do
    if (hidden_size() > 0) largest.want_hidden({0, largest.tokens()}); // for embeddings
    largest.finish();
    const size_t rows = largest.logit_rows().size();
    const uint64_t listed = uint64_t{sequences} * blocks * form.token_groups;
    PB_CHECK(inputs_->reserve(input_bytes({largest.tokens(), sequences, rows, listed}))); // there are no graphs yet
    if (const auto done = run(largest, rows, {}, nullptr, End::kWait); !done)
        return fail(StatusCode::kExhausted,
                    "gpu_memory_utilization, a pass over " + std::to_string(largest.tokens()) + " tokens: " +
                    done.error());
    return {};
}

// What weights and one pass of each model over the largest batch leave of the device's memory. What the passes took for
// activations stays taken. Where nothing is computed there are no activations to take any.
Result<uint64_t> ModelRunner::room_for_kv(const RunnerSettings& settings, const RunnerSettings& of_guest) {
    if (its_.info.host_memory)
        return fail(StatusCode::kUnsupported, "gpu_memory_utilization: the memory of device '" + its_.name +
                    "' is the host's (say kv_cache_memory)");
    if (its_.info.computes && settings.max_num_batched_tokens > 0) {
        PB_CHECK(kv_.layers().allocate(1));
        PB_CHECK(run_largest(settings));
        if (draft_) PB_CHECK(draft_->run_largest(of_guest));
        kv_.layers().release();
    }
    pb_device_info now = sized<pb_device_info>();
    PB_CHECK(device_.checked<&pb_device::info>(&now));
    const uint64_t used = now.memory_total - std::min(now.memory_total, now.memory_free);
    const auto share = static_cast<uint64_t>(static_cast<double>(now.memory_total) * settings.gpu_memory_utilization);
    return share - std::min(share, used);
}

Result<> ModelRunner::make_graphs(const RunnerSettings& settings) {
    graph_settings_ = graphs_of(settings);
    graph_scope_ = scope_of(settings, its_.has_graphs());
    make_graph_cache();
    if (its_.has_own_memory() && settings.max_num_seqs > 0) {
        const uint64_t tokens = std::max(settings.max_num_batched_tokens, graphs_->max_tokens());
        const uint64_t sequences = std::max(settings.max_num_seqs, graphs_->max_tokens());
        const uint64_t pages = (uint64_t{kv_.max_seq_len()} + settings.block_size - 1) / settings.block_size;
        // Pages that a window has passed are listed too.
        const uint64_t blocks = kv_.batch_form().token_groups * sequences * pages;
        PB_CHECK(inputs_->reserve(input_bytes({tokens, sequences, tokens, blocks})));
    }
    return graphs_->captures_at_load() ? capture_graphs() : Result<>();
}

void ModelRunner::make_graph_cache() {
    graph_scope_.attention = kv_.layers().graphs();
    graph_scope_.identity.clear();
    const host::Component* const parts[] = {device_.component.get(), model_, attention_};
    for (const host::Component* part : parts)
        graph_scope_.identity += host::Registry::identity(*part).sha256 + "/";
    graph_scope_.identity += kv_.layers().layout_tag();
    graphs_ = std::make_unique<GraphCache>(graph_settings_, graph_scope_, [this](pb_graph* graph) {
        device_.call<&pb_device_graphs::graph_free>(graph);
    });
}

}  // namespace patchbay::runner
