// Makes a ModelRunner: opens the device, has the models read their configurations, binds KV, loads weights, allocates
// pages and captures graphs, in that order.
#include <algorithm>
#include <string>
#include <utility>

#include "base/refusals.hpp"
#include "config/step_limits.hpp"
#include "runner/kv_room.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::runner {
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

class ModelRunner::Builder {
  public:
    Builder(const RunnerSettings& settings, DraftModel* draft) : settings_(settings), draft_(draft) {
        if (draft) of_draft_ = draft_settings(settings, *draft);
    }

    Result<std::unique_ptr<ModelRunner>> build(host::Device device, host::Model model, host::Attention attention,
                                               const weights::WeightSource& source, Clock& clock) {
        auto opened = std::make_shared<OpenDevice>(std::move(device), settings_.device);
        auto attends = std::make_shared<AttentionInUse>(*opened, std::move(attention));
        out_.reset(new ModelRunner(opened, attends, std::move(model), clock, settings_.ranks));
        PB_CHECK(open());
        if (draft_) PB_CHECK(open_draft(clock));
        PB_CHECK(bind_kv());
        PB_CHECK(load(*out_, source, settings_));
        if (draft_ && out_->draft_->model_.is_head()) PB_CHECK(share_with_head());
        if (draft_) PB_CHECK(load(*out_->draft_, draft_->source, of_draft_));
        PB_CHECK(allocate_kv());
        PB_CHECK(out_->passes_.make_graphs(settings_));
        if (draft_) PB_CHECK(out_->draft_->passes_.make_graphs(of_draft_));
        return std::move(out_);
    }

  private:
    Result<> open();
    Result<> check_simulation() const;
    Result<> connect(Ranks&);
    Result<> open_draft(Clock&);
    Result<> check_head(const DraftModel&) const;
    static Result<LayersKv> describe_kv(ModelRunner&, const RunnerSettings&);
    Result<> bind_kv();
    static Result<> load(ModelRunner&, const weights::WeightSource&, const RunnerSettings&);
    Result<> share_with_head(); // weights, and memory for hidden states
    Result<> allocate_kv();
    Result<uint64_t> room_for_kv(); // bytes

    const RunnerSettings& settings_;
    DraftModel* const draft_; // null: there is none
    RunnerSettings of_draft_;
    std::unique_ptr<ModelRunner> out_;
};

Result<std::unique_ptr<ModelRunner>> ModelRunner::create(host::Device device, host::Model model,
                                                         host::Attention attention, const weights::WeightSource& source,
                                                         const RunnerSettings& settings, Clock& clock,
                                                         DraftModel* draft) {
    return Builder(settings, draft).build(std::move(device), std::move(model), std::move(attention), source, clock);
}

// ---- the device and what the models say of themselves ----

Result<> ModelRunner::Builder::open() {
    OpenDevice& device = *out_->device_;
    PB_CHECK(device.read_info());
    if (!device.computes()) PB_CHECK(check_simulation());
    if (settings_.ranks) PB_CHECK(connect(*settings_.ranks));
    device.read_ops();
    out_->max_tokens_ = settings_.max_num_batched_tokens;
    ConfigReader reader;
    if (settings_.ranks) reader = {settings_.ranks->wire().rank, settings_.ranks->wire().size};
    reader.max_length = settings_.max_model_len;
    ModelInUse& model = out_->model_;
    PB_TRY(const pb_model_facts facts, read_facts(model.component(), settings_.model_config, reader));
    model.set_facts(facts);
    const bool drafts_with_head = draft_ && is_head(*draft_->model.component);
    out_->model_swap_ = std::make_unique<ModelSwap>(
        ModelSwap::Parts{device, model, out_->weights_, out_->kv_, out_->passes_.graphs()}, reader, drafts_with_head);
    if (model.is_head())
        return unsupported(model.label() + " is a draft head and cannot generate text by itself "
                           "(name its target model, and this one in proposer:)");
    if (settings_.ranks && (!device.ops.all_reduce || !device.ops.all_gather))
        return unsupported("device '" + device.name + "' connected the ranks, but has no all_reduce or no all_gather");
    return device.check_needs(model.component());
}

Result<> ModelRunner::Builder::check_simulation() const {
    const OpenDevice& device = *out_->device_;
    if (!device.plugin.extension<pb_device_simulation>())
        return unsupported("device '" + device.name + "' computes nothing, but does not say what time passes");
    const host::Component& attention = out_->attention_->component();
    if (!attention.table<pb_attention>()->cost)
        return unsupported("device '" + device.name + "' computes nothing, and " + attention.label() +
                           " does not say what it costs there (choose another: patchbay plugin list --kind attention)");
    return {};
}

Result<> ModelRunner::Builder::connect(Ranks& ranks) {
    const OpenDevice& device = *out_->device_;
    const pb_group& group = ranks.wire();
    if (!device.plugin.extension<pb_device_collectives>())
        return unsupported("device '" + device.name + "' cannot be one of " + std::to_string(group.size) +
                           " ranks (set tensor_parallel_size: 1)");
    out_->ranks_ = &ranks;
    ranks.watch([component = device.plugin.component.get()] {
        host::call<&pb_device_collectives::disconnect>(*component);
    });
    return device.plugin.checked<&pb_device_collectives::connect>(&group);
}

Result<> ModelRunner::Builder::open_draft(Clock& clock) {
    if (settings_.ranks)
        return unsupported("a second model beside one of " + std::to_string(settings_.ranks->wire().size) +
                           " ranks (set tensor_parallel_size: 1)");
    const uint32_t vocab_size = out_->model_.facts().vocab_size;
    if (draft_->facts.vocab_size != vocab_size)
        return invalid("the draft model '" + std::string(draft_->model.component->type().name) +
                       "' has a vocabulary of " + std::to_string(draft_->facts.vocab_size) +
                       " tokens, expected the model's " + std::to_string(vocab_size) +
                       " (take two models of one family)");
    if (is_head(*draft_->model.component)) PB_CHECK(check_head(*draft_));
    out_->draft_.reset(
        new ModelRunner(out_->device_, out_->attention_, std::move(draft_->model), clock, nullptr));
    ModelRunner& draft = *out_->draft_;
    draft.max_tokens_ = of_draft_.max_num_batched_tokens;
    draft.model_.set_facts(draft_->facts);
    return draft.device_->check_needs(draft.model_.component());
}

Result<> ModelRunner::Builder::check_head(const DraftModel& head) const {
    const std::string name = "head '" + std::string(head.model.component->type().name) + "'",
                      target = out_->model_.label();
    const pb_model_facts& facts = out_->model_.facts();
    if (!(facts.flags & PB_MODEL_GIVES_HIDDEN))
        return unsupported(name + " reads hidden states, which " + target +
                           " does not give (use a separate draft model)");
    if (head.facts.hidden_size != facts.hidden_size)
        return invalid(name + " is of a model with hidden_size " + std::to_string(head.facts.hidden_size) + ", and " +
                       target + " has " + std::to_string(facts.hidden_size) +
                       " (take the head that was trained for it)");
    return {};
}

// ---- KV, over the layers of both models ----

Result<LayersKv> ModelRunner::Builder::describe_kv(ModelRunner& r, const RunnerSettings& settings) {
    return r.kv_.describe(r.model_.component(), r.model_.facts(), settings, max_padded_tokens(settings, *r.device_));
}

// One grouping over the layers of both models: a block of tokens has pages for either.
Result<> ModelRunner::Builder::bind_kv() {
    PB_TRY(LayersKv own, describe_kv(*out_, settings_));
    std::vector<kv::LayerKv> kept = own.kept;
    LayersKv of_draft;
    if (draft_) {
        PB_TRY(of_draft, describe_kv(*out_->draft_, of_draft_));
        for (const kv::LayerKv& layer : of_draft.kept)
            if (layer.spec.kind == kv::GroupKind::kRecurrent)
                return unsupported(out_->draft_->model_.label() +
                                   " keeps states: a state cannot go back to before a rejected draft");
        for (kv::LayerKv layer : of_draft.kept) {
            if (layer.owner) *layer.owner += own.kept.size();
            kept.push_back(std::move(layer));
        }
    }
    const kv::Grouping whole = kv::group_layers(kept, settings_.block_size);
    PB_CHECK(out_->kv_.bind(own, whole, 0));
    if (!draft_) return {};
    out_->draft_->kv_.share_pages(out_->kv_);
    return out_->draft_->kv_.bind(of_draft, whole, own.kept.size());
}

Result<> ModelRunner::Builder::allocate_kv() {
    constexpr uint64_t kMaxBlocks = 1u << 26; // block ids and counts stay far inside 32 bits
    const uint64_t page_bytes = out_->kv_.page_bytes();
    uint64_t memory = settings_.kv_cache_memory;
    const bool profiled = settings_.num_blocks == 0 && settings_.gpu_memory_utilization > 0;
    if (profiled) {
        PB_TRY(memory, room_for_kv());
    }
    const uint64_t wanted = settings_.num_blocks ? settings_.num_blocks : memory / page_bytes;
    if (wanted == 0)
        return fail(StatusCode::kExhausted,
                    (profiled ? "gpu_memory_utilization leaves " : "kv_cache_memory of ") + std::to_string(memory) +
                    " bytes" + (profiled ? ", which hold" : " holds") + " no block (one takes " +
                    std::to_string(page_bytes) + " bytes)");
    auto pages = static_cast<uint32_t>(std::min(wanted, kMaxBlocks));
    if (settings_.ranks) {
        PB_TRY(pages, settings_.ranks->agree_blocks(pages));
    }
    PB_CHECK(out_->kv_.allocate_pages(pages));
    return out_->kv_.allocate_host_pages(settings_);
}

// What weights and one pass of each model over the largest batch leave of the device's memory. Where nothing is
// computed there are no activations to take any.
Result<uint64_t> ModelRunner::Builder::room_for_kv() {
    const OpenDevice& device = *out_->device_;
    if (device.info.host_memory)
        return unsupported("gpu_memory_utilization: the memory of device '" + device.name +
                           "' is the host's (say kv_cache_memory)");
    if (device.computes() && settings_.max_num_batched_tokens > 0) {
        PB_CHECK(out_->kv_.allocate_pages(1));
        PB_CHECK(run_largest(*out_, settings_, config::max_rows(settings_)));
        if (draft_) PB_CHECK(run_largest(*out_->draft_, of_draft_, of_draft_.max_num_seqs));
        out_->kv_.release_pages();
    }
    return memory_left(device, settings_.gpu_memory_utilization);
}

// ---- weights ----

Result<> ModelRunner::Builder::load(ModelRunner& r, const weights::WeightSource& source,
                                    const RunnerSettings& settings) {
    return r.weights_.load({r.model_.component(), r.model_.facts(), source, settings.weights}, r.kv_.layers().layers());
}

Result<> ModelRunner::Builder::share_with_head() {
    const OpenDevice& device = *out_->device_;
    const pb_model_facts& facts = out_->model_.facts();
    PB_CHECK(out_->draft_->weights_.share_target_weights(out_->weights_, out_->model_.component(), facts));
    out_->hidden_.kept = std::make_unique<HiddenStates>(device.plugin);
    out_->draft_->hidden_.goes_on_from = out_->hidden_.kept.get();
    return out_->hidden_.kept->allocate(
        {std::max(settings_.max_num_batched_tokens, max_padded_tokens(settings_, device)),
         settings_.rows_per_sequence(), settings_.max_num_seqs, facts.hidden_size, device.info.activation_dtype,
         device.of_tensors(), device.computes()});
}

}  // namespace patchbay::runner
