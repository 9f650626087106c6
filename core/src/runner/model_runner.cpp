#include "runner/model_runner.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "host/op_names.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::runner {
namespace {

using weights::Quantization;

bool makes_logits(const pb_weight_spec& spec, uint32_t vocab_size) { // and a token table, which may do so too
    return spec.part_count == 1 && spec.parts[0].rows == vocab_size;
}

// Rounding of the head shows in every logit, and its codes are few beside the layers': it is never int4.
weights::WeightForm form_of(const pb_weight_spec& spec, weights::WeightForm form, uint32_t vocab_size) {
    const bool rounds = form.quantization == Quantization::kInt8 || form.quantization == Quantization::kInt4;
    if (rounds && spec.exact) form.quantization = Quantization::kNone;
    const bool int4 = form.quantization == Quantization::kInt4;
    if (int4 && makes_logits(spec, vocab_size)) form.quantization = Quantization::kInt8;
    return form;
}

std::string text_of(pb_dtype dtype, uint32_t group) { // "bfloat16", "int4 g32"
    if (group == 0) return dtype == PB_F32 ? "float32" : "bfloat16";
    return (dtype == PB_I4 ? "int4 g" : "int8 g") + std::to_string(group);
}

}  // namespace

ModelRunner::ModelRunner(host::Device device, host::Model model, host::Attention attention, Clock& clock)
    : device_(std::move(device)), model_(std::move(model)), attention_(std::move(attention)), clock_(clock) {}

ModelRunner::~ModelRunner() {
    workspace_.reset();
    kv_.reset();
    for (pb_weight* w : owned_) device_.table->release(device_.self(), w);
}

Result<std::unique_ptr<ModelRunner>> ModelRunner::create(host::Device device, host::Model model,
                                                         host::Attention attention, const weights::WeightSource& source,
                                                         const RunnerSettings& settings, Clock& clock) {
    std::unique_ptr<ModelRunner> runner(
        new ModelRunner(std::move(device), std::move(model), std::move(attention), clock));
    runner->info_.struct_size = sizeof(pb_device_info);
    PB_CHECK(
        runner->device_.component->check(runner->device_.table->info(runner->device_.self(), &runner->info_), "info"));
    runner->device_name_ = settings.device;
    if (!runner->info_.computes) PB_CHECK(runner->check_simulation());
    if (settings.group) PB_CHECK(runner->connect(*settings.group));
    runner->workspace_ = std::make_unique<Workspace>(runner->device_);
    PB_CHECK(runner->load_model(settings));
    PB_CHECK(runner->bind_kv(settings));
    PB_CHECK(runner->load_weights(source, settings));
    PB_CHECK(runner->allocate_kv(settings));
    return runner;
}

Result<> ModelRunner::check_simulation() const {
    if (!device_.table->charge || !device_.table->charged_ns)
        return fail("device '" + device_name_ + "' computes nothing, but does not tell what time passes");
    if (!attention_.table->cost)
        return fail("device '" + device_name_ + "' computes nothing, and attention '" +
                    attention_.component->type().name + "' does not tell what it costs there (choose paged)");
    return {};
}

Result<> ModelRunner::connect(const pb_group& group) {
    if (!device_.table->connect || !device_.table->disconnect)
        return fail("device '" + device_name_ + "' cannot be one of " + std::to_string(group.size) +
                    " ranks (set tensor_parallel_size: 1)");
    return device_.component->check(device_.table->connect(device_.self(), &group), "connect");
}

Result<> ModelRunner::load_model(const RunnerSettings& settings) {
    std::vector<pb_setting> items;
    for (const auto& [key, value] : settings.model_config)
        items.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
    const pb_model_config config{sizeof(pb_model_config), static_cast<uint32_t>(items.size()), items.data(),
                                 settings.ranks, settings.rank};
    facts_.struct_size = sizeof facts_;
    PB_CHECK(model_.component->check(model_.table->load_config(model_.self(), &config, &facts_), "load_config"));
    const pb_ops& ops = *device_.table->ops(device_.self());
    if (settings.ranks > 1 && (!ops.all_reduce || !ops.all_gather))
        return fail("device '" + device_name_ + "' connected " + std::to_string(settings.ranks) +
                    " ranks, but has no all_reduce or no all_gather");
    for (const char* const* need = model_.table->needs; need && *need; ++need)
        if (!host::has_op(ops, *need))
            return fail("model '" + std::string(model_.component->type().name) + "' needs the op '" + *need +
                        "', which the device '" + device_name_ + "' does not have");
    if (facts_.vocab_size == 0 || facts_.layer_count == 0)
        return fail("model '" + std::string(model_.component->type().name) + "' reports no layers or no vocabulary");
    return {};
}

Result<> ModelRunner::bind_kv(const RunnerSettings& settings) {
    std::vector<pb_kv_spec> layers(facts_.layer_count);
    for (uint32_t layer = 0; layer < facts_.layer_count; ++layer) {
        pb_kv_spec& kv = layers[layer];
        PB_CHECK(model_.component->check(model_.table->kv_spec(model_.self(), layer, &kv), "kv_spec"));
        work_.attention_flop += uint64_t{4} * kv.heads * kv.head_dim; // q·k and the sum of values
    }
    kv_ = std::make_unique<KvLayers>(device_, attention_);
    PB_CHECK(kv_->bind(layers, {settings.block_size, info_.activation_dtype, settings.kv_dtype, device_name_}));
    form_ = {settings.block_size, 0, 0};
    for (const kv::GroupSpec& g : kv_->grouping().groups)
        (g.kind == kv::GroupKind::kRecurrent ? form_.state_groups : form_.token_groups) += 1;
    return {};
}

Result<pb_weight*> ModelRunner::prepare(const pb_weight_spec& spec, const weights::LoadedWeight& loaded) {
    const pb_quant quant{sizeof(pb_quant), loaded.group, loaded.scales.data(),
                         loaded.offsets.empty() ? nullptr : loaded.offsets.data(),
                         loaded.order.empty() ? nullptr : loaded.order.data()};
    const pb_weight_source source{sizeof(pb_weight_source),
                                  spec.role,
                                  loaded.dtype,
                                  0,
                                  loaded.rows,
                                  loaded.cols,
                                  loaded.data.data(),
                                  loaded.bias.empty() ? nullptr : loaded.bias.data(),
                                  spec.uses,
                                  loaded.group ? &quant : nullptr};
    pb_weight* weight = nullptr;
    const pb_status status = device_.table->prepare(device_.self(), &source, &weight);
    const Result<> prepared = device_.component->check(status, "prepare");
    if (!prepared && status == PB_UNSUPPORTED && loaded.group) {
        const std::string name(spec.parts[0].name, strnlen(spec.parts[0].name, sizeof spec.parts[0].name));
        return fail(prepared.error() + " (of model '" + std::string(model_.component->type().name) + "', weight '" +
                    name + "' as " + text_of(loaded.dtype, loaded.group) +
                    "; with quantization: none it is given real numbers)");
    }
    PB_CHECK(prepared);
    return weight;
}

Result<> ModelRunner::load_weights(const weights::WeightSource& source, const RunnerSettings& settings) {
    const weights::WeightForm& wanted = settings.weights;
    const uint32_t count = model_.table->weight_count(model_.self());
    weights::LoadedWeight loaded;
    std::vector<float> filled;
    std::map<std::string, uint64_t> params_by_form; // of linears
    for (uint32_t i = 0; i < count; ++i) {
        pb_weight_spec spec{};
        PB_CHECK(model_.component->check(model_.table->weight(model_.self(), i, &spec), "weight"));
        if (spec.same_as >= 0) {
            if (static_cast<uint32_t>(spec.same_as) >= i)
                return fail("weight " + std::to_string(i) + " is the same as a later one");
            weights_.push_back(weights_[static_cast<size_t>(spec.same_as)]);
            continue;
        }
        if (spec.part_count == 0) {
            filled.assign(static_cast<size_t>(spec.cols), 0);
            PB_CHECK(model_.component->check(model_.table->fill(model_.self(), i, filled.data()), "fill"));
            loaded = {.dtype = PB_F32, .rows = 1, .cols = spec.cols, .data = std::as_bytes(std::span(filled)),
                      .memory = std::move(loaded.memory)};
        } else {
            PB_TRY(loaded,
                   source.load(spec, form_of(spec, wanted, facts_.vocab_size), settings.rank, settings.ranks,
                               std::move(loaded)));
        }
        PB_TRY(pb_weight* const weight, prepare(spec, loaded));
        weights_.push_back(weight);
        owned_.push_back(weight);
        const uint64_t bytes = device_.table->weight_bytes(device_.self(), weight);
        weight_bytes_ += bytes;
        if (spec.role == PB_WEIGHT_LINEAR || spec.uses >> PB_WEIGHT_LINEAR & 1) {
            const uint64_t params = static_cast<uint64_t>(loaded.rows) * static_cast<uint64_t>(loaded.cols);
            (makes_logits(spec, facts_.vocab_size) ? work_.head_params : work_.linear_params) += params;
            work_.linear_bytes += bytes;
            params_by_form[text_of(loaded.dtype, loaded.group)] += params;
        }
    }
    weight_form_ = text_of(wanted.dtype, 0); // of a model without
    uint64_t most = 0;
    for (const auto& [form, params] : params_by_form)
        if (params > std::exchange(most, std::max(most, params))) weight_form_ = form;
    return {};
}

Result<> ModelRunner::allocate_kv(const RunnerSettings& settings) {
    constexpr uint64_t kMostBlocks = 1u << 26; // block ids and counts stay far inside 32 bits
    const uint64_t wanted = settings.num_blocks ? settings.num_blocks : settings.kv_cache_memory / page_bytes();
    if (wanted == 0)
        return fail("kv_cache_memory of " + std::to_string(settings.kv_cache_memory) +
                    " bytes holds no block (one takes " + std::to_string(page_bytes()) + " bytes)");
    auto pages = static_cast<uint32_t>(std::min(wanted, kMostBlocks));
    if (settings.agree_blocks) {
        PB_TRY(pages, settings.agree_blocks(pages));
    }
    return kv_->allocate(pages);
}

pb_tensor ModelRunner::temp(void* self, pb_dtype dtype, int32_t rank, const int64_t* shape) {
    auto* runner = static_cast<ModelRunner*>(self);
    pb_tensor t{nullptr, dtype, rank, {1, 1, 1, 1}, {1, 1, 1, 1}, runner->info_.host_memory ? 0 : 1, 0};
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; --i) {
        t.shape[i] = shape[i];
        t.strides[i] = stride;
        stride *= shape[i];
    }
    if (!runner->info_.computes) return t;
    t.data = runner->workspace_->take(static_cast<uint64_t>(stride * dtype_bytes(dtype)));
    if (!t.data) runner->out_of_memory_ = true;
    return t;
}

bool ModelRunner::keeps(uint32_t layer, kv::GroupKind kind) {
    const bool wants_state = kind == kv::GroupKind::kRecurrent;
    if (out_of_memory_ || !layer_fault_.empty()) return false;
    if (layer >= facts_.layer_count)
        layer_fault_ = (wants_state ? "asks for a state in layer " : "attends in layer ") + std::to_string(layer) +
                       " of " + std::to_string(facts_.layer_count);
    else if (wants_state != (kv_->bound_of(layer) == nullptr))
        layer_fault_ = (wants_state ? "asks for a state in layer " + std::to_string(layer) + ", which attends"
                                    : "attends in layer " + std::to_string(layer) + ", which keeps a state");
    return layer_fault_.empty();
}

void ModelRunner::attend(void* self, uint32_t layer, const pb_tensor* out, const pb_tensor* q, const pb_tensor* k,
                         const pb_tensor* v) {
    auto* runner = static_cast<ModelRunner*>(self);
    if (!runner->keeps(layer, kv::GroupKind::kFull)) return;
    const KvLayers::BoundAttention& bound = *runner->kv_->bound_of(layer);
    if (!runner->info_.computes) return runner->charge_attention(bound);
    const pb_attention_batch& batch = runner->batches_[bound.group];
    const pb_kv_view view = runner->kv_->view(layer);
    const host::Attention& attention = runner->attention_;
    CallTimes& times = runner->times_;
    timed(runner->clock_, times.attention_append,
          [&] { attention.table->append_kv(attention.self(), bound.self, &batch, &view, k, v); });
    timed(runner->clock_, times.attention_run,
          [&] { attention.table->run(attention.self(), bound.self, &batch, &view, out, q); });
}

void ModelRunner::charge_attention(const KvLayers::BoundAttention& bound) {
    pb_cost cost{};
    cost.struct_size = sizeof cost;
    const Result<> told = attention_.component->check(
        attention_.table->cost(attention_.self(), bound.self, &batches_[bound.group], &cost), "cost");
    if (told) device_.table->charge(device_.self(), &cost);
    else cost_fault_ = told.error();
}

void ModelRunner::state(void* self, uint32_t layer, pb_state* out) {
    auto* runner = static_cast<ModelRunner*>(self);
    if (!runner->keeps(layer, kv::GroupKind::kRecurrent)) return;
    *out = runner->states_[runner->kv_->group_of(layer) - runner->form_.token_groups];
    const pb_kv_view view = runner->kv_->view(layer);
    out->data = view.data;
    out->page_stride = view.page_stride;
    out->page_count = view.page_count;
}

// What the model needs to find states: on the device, once a pass.
Result<> ModelRunner::place_states(const Batch& batch) {
    states_.resize(form_.state_groups);
    if (states_.empty()) return {};
    pb_state common{};
    common.struct_size = sizeof common;
    PB_TRY(common.query_starts, upload(batch.query_starts()));
    PB_TRY(common.begins, upload(batch.begins()));
    for (uint32_t g = 0; g < form_.state_groups; ++g) {
        states_[g] = common;
        PB_TRY(states_[g].pages, upload(batch.state_pages(form_.token_groups + g)));
    }
    return {};
}

Result<pb_tensor> ModelRunner::upload(std::span<const int32_t> values) {
    const auto n = static_cast<int64_t>(values.size());
    if (!info_.computes) return tensor(nullptr, PB_I32, {n});
    if (info_.host_memory) return tensor(const_cast<int32_t*>(values.data()), PB_I32, {n});
    const int64_t shape[] = {n};
    const pb_tensor t = temp(this, PB_I32, 1, shape);
    if (!t.data) return fail("the device has no memory left for the step's workspace");
    PB_CHECK(device_.component->check(
        device_.table->to_device(device_.self(), t.data, values.data(), values.size_bytes()), "to_device"));
    return t;
}

Result<std::span<float>> ModelRunner::forward(const Batch& batch) {
    workspace_->reset();
    out_of_memory_ = false;
    layer_fault_.clear();
    cost_fault_.clear();
    times_ = {};
    batches_.clear();
    for (uint32_t g = 0; g < form_.token_groups; ++g) batches_.push_back(batch.attention(g));
    if (device_.table->queue)
        for (pb_attention_batch& b : batches_) b.queue = device_.table->queue(device_.self());
    const uint64_t begin_ns = clock_.now_ns();
    PB_CHECK(device_.component->check(
        timed(clock_, times_.device_begin, [&] { return device_.table->begin_step(device_.self()); }), "begin_step"));
    for (const KvLayers::BoundAttention& bound : kv_->bound())
        PB_CHECK(attention_.component->check(timed(clock_, times_.attention_plan, [&] {
            return attention_.table->plan(attention_.self(), bound.self, &batches_[bound.group],
                                           bound.plan_buffer);
        }), "plan"));

    pb_forward forward{};
    forward.struct_size = sizeof forward;
    forward.token_count = batch.tokens();
    forward.ops = device_.table->ops(device_.self());
    forward.weights = weights_.data();
    PB_TRY(forward.ids, upload(batch.ids()));
    PB_TRY(forward.positions, upload(batch.positions()));
    PB_TRY(forward.logit_rows, upload(batch.logit_rows()));
    PB_CHECK(place_states(batch));
    const int64_t logits_shape[] = {static_cast<int64_t>(batch.logit_rows().size()), facts_.vocab_size};
    forward.logits = temp(this, PB_F32, 2, logits_shape);
    forward.activation_dtype = info_.activation_dtype;
    forward.ctx = this;
    forward.temp = temp;
    forward.attend = attend;
    forward.state = state;

    const pb_status status =
        timed(clock_, times_.model_forward, [&] { return model_.table->forward(model_.self(), &forward); });
    const Result<> finished = device_.component->check(
        timed(clock_, times_.device_end, [&] { return device_.table->end_step(device_.self()); }), "end_step");
    if (out_of_memory_)
        return fail("the device has no memory left for the step's workspace of " + std::to_string(batch.tokens()) +
                    " tokens");
    if (!layer_fault_.empty())
        return fail("model '" + std::string(model_.component->type().name) + "' " + layer_fault_);
    PB_CHECK(model_.component->check(status, "forward"));
    PB_CHECK(finished);
    if (!cost_fault_.empty()) return fail(cost_fault_);
    if (!info_.computes) {
        timed(clock_, times_.model_forward,
              [&] { clock_.wait_until_ns(begin_ns + device_.table->charged_ns(device_.self())); });
        return std::span<float>();
    }

    const auto count = static_cast<size_t>(elements(forward.logits));
    if (info_.host_memory) return std::span<float>(static_cast<float*>(forward.logits.data), count);
    logits_.resize(count);
    PB_CHECK(device_.component->check(
        device_.table->to_host(device_.self(), logits_.data(), forward.logits.data, count * sizeof(float)), "to_host"));
    return std::span<float>(logits_);
}

}  // namespace patchbay::runner
