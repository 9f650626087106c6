// One forward pass of a ModelRunner: inputs to the device, the model over its ops or a graph in its place, logits back.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "patchbay/sdk/tensor.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::runner {

pb_tensor ModelRunner::temp(void* self, pb_dtype dtype, int32_t rank, const int64_t* shape) {
    auto* runner = static_cast<ModelRunner*>(self);
    pb_tensor t{nullptr, dtype, rank, {1, 1, 1, 1}, {1, 1, 1, 1}, runner->its_.info.host_memory ? 0 : 1, 0};
    int64_t stride = 1;
    for (int32_t i = rank - 1; i >= 0; --i) {
        t.shape[i] = shape[i];
        t.strides[i] = stride;
        stride *= shape[i];
    }
    if (!runner->its_.info.computes) return t;
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
    else if (wants_state != (kv_.layers().bound_of(layer) == nullptr))
        layer_fault_ = (wants_state ? "asks for a state in layer " + std::to_string(layer) + ", which attends"
                                    : "attends in layer " + std::to_string(layer) + ", which keeps a state");
    return layer_fault_.empty();
}

void ModelRunner::attend(void* self, uint32_t layer, const pb_tensor* out, const pb_tensor* q, const pb_tensor* k,
                         const pb_tensor* v) {
    auto* runner = static_cast<ModelRunner*>(self);
    if (!runner->keeps(layer, kv::GroupKind::kFull)) return;
    if (runner->capturing_) runner->attended_.push_back(layer);
    if (runner->kv_.layers().keeps_its_own(layer) != (k && v)) {
        runner->layer_fault_ = k && v ? "gives layer " + std::to_string(layer) + ", which shares another's KV, its own"
                                      : "attends in layer " + std::to_string(layer) + " without k and v";
        return;
    }
    if (!runner->its_.info.computes) return runner->capturing_ ? void() : runner->charge_attention(layer);
    const KvLayers::BoundAttention& bound = *runner->kv_.layers().bound_of(layer);
    const pb_attention_batch& batch = runner->batches_[bound.group];
    const pb_kv_view view = runner->kv_.layers().view(layer, runner->weights_.in_use().sinks.of(layer));
    const host::Component& attention = *runner->attention_;
    CallTimes& times = runner->times_;
    if (k) timed(runner->clock_, times.attention_append, [&] {
        host::call<&pb_attention::append_kv>(attention, bound.self, &batch, &view, k, v);
    });
    timed(runner->clock_, times.attention_run,
          [&] { host::call<&pb_attention::run>(attention, bound.self, &batch, &view, out, q); });
}

void ModelRunner::charge_attention(uint32_t layer) {
    const KvLayers::BoundAttention& bound = *kv_.layers().bound_of(layer);
    pb_cost cost = sized<pb_cost>();
    pb_attention_batch batch = batches_[bound.group];
    if (!kv_.layers().keeps_its_own(layer)) { // nothing is appended
        no_slots_.assign(batch.token_count, -1);
        batch.slot_mapping = no_slots_.data();
    }
    const Result<> known = host::checked<&pb_attention::cost>(*attention_, bound.self, &batch, &cost);
    cost.in_graph = replaying_;
    if (known) device_.call<&pb_device_simulation::charge>(&cost);
    else cost_fault_ = known.error();
}

void ModelRunner::state(void* self, uint32_t layer, pb_state* out) {
    auto* runner = static_cast<ModelRunner*>(self);
    if (!runner->keeps(layer, kv::GroupKind::kRecurrent)) return;
    pb_state state = runner->states_[runner->kv_.layers().group_of(layer) - runner->kv_.batch_form().token_groups];
    const pb_kv_view view = runner->kv_.layers().view(layer, nullptr);
    state.data = view.data;
    state.page_stride = view.page_stride;
    state.page_count = view.page_count;
    copy_out(out, state);
}

// ---- inputs: all that differs from step to step. A graph finds them at the addresses that it was captured with, since
// what comes before each has the length of the bucket; only the last, pages of all sequences and groups, has any. ----

pb_tensor ModelRunner::place(std::span<const int32_t> values) {
    const auto n = static_cast<int64_t>(values.size());
    if (!its_.info.computes) return tensor(nullptr, PB_I32, {n}, 1);
    if (its_.info.host_memory) return tensor(const_cast<int32_t*>(values.data()), PB_I32, {n});
    return tensor(const_cast<int32_t*>(inputs_->place(values)), PB_I32, {n}, 1);
}

uint64_t ModelRunner::input_bytes(const InputSizes& s) const {
    const auto room = StepInputs::room_for;
    return (goes_on_from_ ? 3 : 2) * room(s.tokens, 4) + room(s.logit_rows, 4) + 3 * room(s.sequences + 1, 4) +
           kv_.batch_form().token_groups * (room(s.tokens, 8) + room(s.sequences + 1, 4)) + room(s.blocks, 4) +
           kv_.batch_form().state_groups * room(s.sequences, 4);
}

Result<ModelRunner::Inputs> ModelRunner::place_inputs(const Batch& batch,
                                                      const std::optional<GraphBucket>& bucket) {
    if (its_.has_own_memory()) {
        const uint64_t bytes = input_bytes({batch.tokens(), batch.sequences(), batch.logit_rows().size(),
                                            batch.blocks().size()});
        if (bytes > inputs_->bytes()) { // they move, from under the graphs
            graphs_->invalidate();
            PB_CHECK(inputs_->reserve(bytes + bytes / 2));
        }
        inputs_->clear();
    }
    Inputs inputs{place(batch.ids()), place(batch.positions()), place(batch.logit_rows()), {}, batch.draft_step};
    if (goes_on_from_) inputs.features = place(batch.features());
    const pb_tensor starts = place(batch.query_starts()), lengths = place(batch.seq_lens());
    place_states(batch, starts);

    batches_.clear();
    for (uint32_t g = 0; g < kv_.batch_form().token_groups; ++g) {
        pb_attention_batch b = batch.attention(g);
        if (device_.table->queue) b.queue = device_.call<&pb_device::queue>();
        if (bucket) {
            b.graph = 1;
            b.max_query_len = bucket->shape == GraphShape::kDecode ? 1 : bucket->tokens;
            b.max_seq_len = kv_.max_seq_len();
        }
        if (its_.has_own_memory())
            b.device = {static_cast<const int32_t*>(starts.data), static_cast<const int32_t*>(lengths.data),
                        inputs_->place(std::span(b.block_starts, b.seq_count + 1)), nullptr,
                        inputs_->place(std::span(b.slot_mapping, b.token_count)),
                        static_cast<const int32_t*>(inputs.positions.data)};
        batches_.push_back(b);
    }
    if (!its_.has_own_memory()) return inputs;
    const int32_t* const blocks = inputs_->place(batch.blocks());
    for (pb_attention_batch& b : batches_) b.device.blocks = blocks;
    PB_CHECK(inputs_->send());
    return inputs;
}

// What the model needs to find states.
void ModelRunner::place_states(const Batch& batch, const pb_tensor& query_starts) {
    states_.resize(kv_.batch_form().state_groups);
    if (states_.empty()) return;
    pb_state common{};
    common.struct_size = sizeof common;
    common.query_starts = query_starts;
    common.is_first_chunk = place(batch.is_first_chunk());
    for (uint32_t g = 0; g < kv_.batch_form().state_groups; ++g) {
        states_[g] = common;
        states_[g].pages = place(batch.state_pages(kv_.batch_form().token_groups + g));
    }
}

Result<> ModelRunner::plan_attention() {
    for (const KvLayers::BoundAttention& bound : kv_.layers().bound())
        PB_CHECK(attention_->check(timed(clock_, times_.attention_plan, [&] {
            return host::call<&pb_attention::plan>(*attention_, bound.self, &batches_[bound.group], bound.plan_buffer);
        }), "plan"));
    return {};
}

// Takes the workspace from its beginning, so that the same shapes lie at the same addresses.
pb_forward ModelRunner::forward_of(const Inputs& inputs, Hidden hidden) {
    workspace_->reset();
    pb_forward out{};
    out.struct_size = sizeof out;
    out.token_count = static_cast<uint32_t>(inputs.ids.shape[0]);
    out.ops = &its_.ops;
    out.weights = weights_.in_use().by_spec.data();
    out.ids = inputs.ids;
    out.positions = inputs.positions;
    out.logit_rows = inputs.logit_rows;
    const int64_t logits_shape[] = {inputs.logit_rows.shape[0], facts_.vocab_size};
    out.logits = temp(this, PB_F32, 2, logits_shape);
    out.activation_dtype = its_.info.activation_dtype;
    out.ctx = this;
    out.temp = temp;
    out.attend = attend;
    out.state = state;
    const int64_t hidden_shape[] = {inputs.ids.shape[0], facts_.hidden_size};
    if (hidden_) out.hidden = hidden_->rows(0, out.token_count);
    else if (hidden == Hidden::kWanted) out.hidden = temp(this, its_.info.activation_dtype, 2, hidden_shape);
    if (goes_on_from_) {
        out.draft_step = inputs.draft_step;
        out.features = goes_on_from_->all();
        out.feature_rows = inputs.features;
        if (facts_.layer_count > 0) out.hidden = temp(this, its_.info.activation_dtype, 2, hidden_shape);
    }
    return out;
}

// ---- passes ----

void ModelRunner::pad(const Batch& batch, const GraphBucket& bucket) {
    padded_ = batch;
    padded_.pad(bucket.tokens, bucket.sequences, bucket.logit_rows);
}

// The graph that fits, and padded_ if one is to be replayed or captured.
GraphChoice ModelRunner::choose(const Batch& batch) {
    GraphChoice choice =
        graphs_->choose({batch.tokens(), batch.sequences(), static_cast<uint32_t>(batch.logit_rows().size()),
                         batch.max_query_len()});
    if (choice.bucket) pad(batch, *choice.bucket);
    if (choice.bucket && !batch.hidden().empty() && !hidden_) // no graph was captured with them; ranks pad alike
        choice = {.miss = GraphMiss::kHiddenStates, .graph = nullptr, .bucket = choice.bucket, .refused = true};
    return choice;
}

Result<std::span<float>> ModelRunner::pass(const Batch& batch, const SampleCall* call, End end) {
    steps_.pass_host_time();
    const GraphChoice choice = choose(batch);
    auto logits = run(choice.bucket ? padded_ : batch, batch.logit_rows().size(), choice, call, end);
    if (choice.bucket) graph_use_.padded_tokens = choice.bucket->tokens - batch.tokens();
    return logits;
}

Result<std::span<float>> ModelRunner::forward(const Batch& batch) {
    return batch.tokens() == 0 ? copy_only(batch) : pass(batch, nullptr, End::kWait);
}

Result<SampledRows> ModelRunner::forward(const Batch& batch, const SampleCall& call) {
    if (const auto done = pass(batch, &call, End::kWait); !done) {
        sampling_.forget();
        return done.failure();
    }
    return sampling_.collect();
}

Result<SampledRows> ModelRunner::sample(std::span<const float> logits, const SampleCall& call) {
    const auto check = [&](pb_status status, const char* name) { return device_.component->check(status, name); };
    PB_CHECK(check(device_.call<&pb_device::begin_step>(), "begin_step"));
    const auto start = [&]() -> Result<> {
        void* const to = device_logits_.data;
        PB_CHECK(check(device_.call<&pb_device::to_device>(to, logits.data(), logits.size_bytes()), "to_device"));
        return sampling_.enqueue(call, device_logits_);
    };
    const Result<> started = start(), ended = check(device_.call<&pb_device::end_step>(), "end_step");
    if (!started || !ended) sampling_.forget();
    PB_CHECK(started);
    PB_CHECK(ended);
    return sampling_.collect();
}

Result<> ModelRunner::submit(const Batch& batch, const SampleCall* call) {
    PB_TRY(const auto none, pass(batch, call, End::kSubmit));
    (void)none;
    return {};
}

Result<SampledRows> ModelRunner::wait() {
    PB_TRY(const bool samples, steps_.wait());
    return samples ? sampling_.collect() : SampledRows{};
}

void ModelRunner::abandon() {
    steps_.abandon();
    sampling_.forget();
}

Result<> ModelRunner::check_pass(const Result<>& done, const Result<>& ended, uint32_t tokens) const {
    if (out_of_memory_)
        return fail(StatusCode::kExhausted,
                    "the device has no memory left for the step's workspace of " + std::to_string(tokens) + " tokens");
    if (!layer_fault_.empty())
        return fail("model '" + std::string(model_->type().name) + "' " + layer_fault_);
    PB_CHECK(done);
    PB_CHECK(ended);
    return cost_fault_.empty() ? Result<>() : fail(cost_fault_);
}

Result<std::span<float>> ModelRunner::run(const Batch& batch, size_t rows, const GraphChoice& choice,
                                          const SampleCall* call, End end) {
    out_of_memory_ = false;
    layer_fault_.clear();
    cost_fault_.clear();
    times_ = {};
    hidden_out_.clear();
    if (hidden_ && batch.tokens() > hidden_->target_rows())
        return fail("a pass over " + std::to_string(batch.tokens()) + " tokens, with room for the hidden states of " +
                    std::to_string(hidden_->target_rows()));
    PB_CHECK(steps_.begin(times_));
    for (const kv::PageCopy& page : batch.copies()) PB_CHECK(kv_.copy(page));
    PB_TRY(const Inputs inputs, place_inputs(batch, choice.bucket));
    fill_placeholders(batch, inputs);
    // Where inputs had to move there are no graphs any more.
    const CapturedGraph* const graph = choice.graph && graphs_->count() > 0 ? choice.graph : nullptr;
    graph_use_ = {.miss = choice.graph && !graph ? GraphMiss::kNotCaptured : choice.miss,
                  .size = graph ? choice.bucket->tokens : 0};
    PB_CHECK(plan_attention());
    const pb_forward forward = forward_of(inputs, batch.hidden().empty() ? Hidden::kUnwanted : Hidden::kWanted);
    device_logits_ = forward.logits;
    Result<> done = graph ? replay(*graph) : compute(forward);
    if (done && goes_on_from_ && !out_of_memory_) keep_hidden(forward, batch, rows);
    if (done && call) done = enqueue_sampling(*call);
    const Result<> ended =
        end == End::kWait ? steps_.end(times_, graph ? times_.device_launch : times_.model_forward)
                          : steps_.submit(done && call);
    PB_CHECK(check_pass(done, ended, batch.tokens()));
    std::span<float> logits;
    if (its_.info.computes && !call && end == End::kWait) {
        PB_TRY(logits, copied_logits(rows));
    }
    if (its_.info.computes && end == End::kWait) PB_CHECK(hidden_out_.append(forward.hidden, batch.hidden()));
    if (choice.bucket && !graph && !choice.refused) capture(inputs, *choice.bucket);
    return logits;
}

void ModelRunner::fill_placeholders(const Batch& batch, const Inputs& inputs) {
    const auto ids = batch.ids();
    if (std::none_of(ids.begin(), ids.end(), [](int32_t id) { return id < 0; })) return;
    const pb_ops& ops = its_.ops;
    if (!ops.fill_placeholders) return; // nothing is computed from them
    const pb_tensor sampled = its_.info.computes ? sampling_.newest_tokens()
                                             : tensor(nullptr, PB_I32, {static_cast<int64_t>(ids.size())}, 1);
    ops.fill_placeholders(ops.ctx, &inputs.ids, &sampled);
}

// Behind a graph, not in it: where they go changes from pass to pass.
void ModelRunner::keep_hidden(const pb_forward& forward, const Batch& batch, size_t rows) {
    if (rows == 0 || facts_.layer_count == 0) return;
    const pb_tensor to = goes_on_from_->rows(batch.kept_row, static_cast<uint32_t>(rows));
    pb_tensor wanted = forward.logit_rows; // without those that fill a graph up
    wanted.shape[0] = static_cast<int64_t>(rows);
    forward.ops->gather_rows(forward.ops->ctx, &to, &forward.hidden, &wanted);
}

Result<> ModelRunner::enqueue_sampling(const SampleCall& call) {
    return timed(clock_, times_.sampler, [&] { return sampling_.enqueue(call, device_logits_); });
}

Result<std::span<float>> ModelRunner::copied_logits(size_t rows) {
    const size_t count = rows * facts_.vocab_size;
    auto* const there = static_cast<float*>(device_logits_.data);
    if (its_.info.host_memory || count == 0) return std::span(there, count);
    logits_.resize(count);
    PB_CHECK(device_.checked<&pb_device::to_host>(logits_.data(), there, count * sizeof(float)));
    return std::span(logits_);
}

// Without a token to compute there is nothing for a model.
Result<std::span<float>> ModelRunner::copy_only(const Batch& batch) {
    times_ = {};
    graph_use_ = {};
    PB_CHECK(steps_.begin(times_));
    Result<> done;
    for (const kv::PageCopy& page : batch.copies())
        if (done) done = kv_.copy(page);
    PB_CHECK(steps_.end(times_, times_.device_end));
    PB_CHECK(done);
    return std::span<float>();
}

Result<> ModelRunner::compute(const pb_forward& forward) {
    const pb_status status =
        timed(clock_, times_.model_forward, [&] { return host::call<&pb_model::forward>(*model_, &forward); });
    return model_->check(status, "forward");
}

Result<> ModelRunner::replay(const CapturedGraph& captured) {
    const Result<> launched = device_.component->check(timed(clock_, times_.device_launch, [&] {
        return device_.call<&pb_device_graphs::graph_launch>(captured.graph);
    }), "graph_launch");
    if (launched && !its_.info.computes) { // what attention takes depends on the batch, so it is no part of the graph
        replaying_ = true;
        for (const uint32_t layer : captured.layers) charge_attention(layer);
        replaying_ = false;
    }
    return launched;
}

// Of the pass before, over the same inputs. The pass stands whatever becomes of its graph.
void ModelRunner::capture(const Inputs& inputs, const GraphBucket& bucket) {
    const uint64_t begin_ns = clock_.now_ns();
    pb_graph* graph = nullptr;
    const auto record = [&]() -> Result<> {
        const pb_forward forward = forward_of(inputs, Hidden::kUnwanted);
        PB_CHECK(device_.checked<&pb_device_graphs::graph_begin>());
        attended_.clear();
        capturing_ = true;
        const pb_status status = host::call<&pb_model::forward>(*model_, &forward);
        capturing_ = false;
        const Result<> ended = device_.checked<&pb_device_graphs::graph_end>(&graph);
        PB_CHECK(model_->check(status, "forward"));
        return ended;
    };
    Result<> done = steps_.begin(times_);
    if (done) {
        done = record();
        uint64_t waited = 0;
        done = check_pass(done, steps_.end(times_, waited), bucket.tokens);
    }
    graph_use_.capture_ns = clock_.now_ns() - begin_ns;
    if (done && graph)
        return graphs_->add(bucket, {graph, device_.call<&pb_device_graphs::graph_bytes>(graph), attended_});
    if (graph) device_.call<&pb_device_graphs::graph_free>(graph);
    spdlog::warn("steps of {} tokens run without a graph: {}", bucket.tokens,
                 done ? "graph_end gave none" : done.error());
    graphs_->refuse(bucket);
}

// The largest first, which sizes the workspace for the others.
Result<> ModelRunner::capture_graphs() {
    const uint64_t begin_ns = clock_.now_ns();
    for (const GraphBucket& bucket : graphs_->missing()) {
        padded_.clear(kv_.batch_form());
        padded_.pad(bucket.tokens, bucket.sequences, bucket.logit_rows);
        PB_CHECK(run(padded_, 0, {GraphMiss::kNotCaptured, nullptr, bucket}, nullptr, End::kWait));
    }
    load_capture_ns_ = clock_.now_ns() - begin_ns;
    return {};
}

}  // namespace patchbay::runner
