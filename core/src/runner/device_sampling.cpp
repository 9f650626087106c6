#include "runner/device_sampling.hpp"

#include <algorithm>
#include <string>

#include "base/refusals.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "runner/step_inputs.hpp"

namespace patchbay::runner {
namespace {

const pb_sampler& table_of(const host::Component& sampler) {
    return *static_cast<const pb_sampler*>(sampler.type().vtable);
}

bool wants_logprobs(const pb_sample_batch& batch) {
    for (uint32_t i = 0; i < batch.row_count; ++i)
        if (batch.rows[i].params->logprobs > 0) return true;
    return false;
}

template <class T>
std::span<const T> values(const std::vector<std::byte>& bytes, uint64_t at, uint64_t count) {
    if (at + count * sizeof(T) > bytes.size()) return {}; // was not asked for
    return {reinterpret_cast<const T*>(bytes.data() + at), static_cast<size_t>(count)};
}

}  // namespace

bool runs_on_device(const host::Component& sampler) {
    return table_of(sampler).device != nullptr;
}

Result<> check_sampler(const host::Component& sampler, std::string_view device, const pb_device_info& info) {
    const pb_sampler& table = table_of(sampler);
    const std::string name = "sampler '" + std::string(sampler.type().name) + "'";
    if (runs_on_device(sampler) && !sampler.extension<pb_sampler_device>())
        return unsupported(name + " runs on device '" + table.device + "', but has no " + PB_SAMPLER_DEVICE);
    if (runs_on_device(sampler) && table.device != device && table.device != std::string_view(info.compatible_with))
        return unsupported(name + " runs on device '" + table.device + "', and the model on '" + std::string(device) +
                           "' (choose standard, which runs beside any)");
    return {};
}

DeviceSampling::Places DeviceSampling::places_of(uint32_t rows, uint32_t max_logprobs) {
    const uint64_t one = StepInputs::room_for(rows, 4), top = StepInputs::room_for(uint64_t{rows} * max_logprobs, 4);
    return {one, 2 * one, 3 * one, 3 * one + top, 3 * one + 2 * top};
}

Result<> DeviceSampling::reserve(uint32_t rows, uint32_t max_logprobs) {
    for (Outputs& out : outputs_) PB_CHECK(out.there.allocate(places_of(rows, max_logprobs).end));
    return {};
}

Result<> DeviceSampling::enqueue(const SampleCall& call, pb_tensor logits) {
    pb_sample_batch batch = call.batch;
    const auto rows = batch.row_count;
    logits.shape[0] = rows;
    batch.logits = logits;
    batch.logits.data = nullptr;
    batch.tokens = batch.top_tokens = nullptr;
    batch.logprobs = batch.top_logprobs = nullptr;
    pb_sample_plan plan = sized<pb_sample_plan>();
    PB_CHECK(host::checked<&pb_sampler_device::plan>(call.sampler, &batch, &plan));

    const size_t slot = 1 - newest_;
    Outputs& out = outputs_[slot];
    const Places places = places_of(rows, batch.max_logprobs);
    PB_TRY(std::byte* const there, out.there.room(places.end));
    PB_TRY(std::byte* const inputs, inputs_.room(plan.input_bytes));
    PB_TRY(std::byte* const scratch, scratch_.room(plan.scratch_bytes));
    if (plan.input_bytes > 0)
        PB_CHECK(device_->checked<&pb_device::to_device>(inputs, plan.inputs, plan.input_bytes));
    pb_sample_work work{};
    work.struct_size = sizeof work;
    work.row_count = rows;
    work.max_logprobs = batch.max_logprobs;
    if (device_->table->queue) work.queue = device_->call<&pb_device::queue>();
    work.logits = logits;
    work.inputs = inputs;
    work.scratch = scratch;
    work.tokens = reinterpret_cast<int32_t*>(there);
    work.faults = reinterpret_cast<int32_t*>(there + places.faults);
    work.logprobs = reinterpret_cast<float*>(there + places.logprobs);
    work.top_tokens = reinterpret_cast<int32_t*>(there + places.top_tokens);
    work.top_logprobs = reinterpret_cast<float*>(there + places.top_logprobs);
    PB_CHECK(host::checked<&pb_sampler_device::enqueue>(call.sampler, &work));

    out.rows = rows;
    out.max_logprobs = batch.max_logprobs;
    out.here.resize(wants_logprobs(batch) ? places.end : places.logprobs);
    newest_ = slot;
    open_.push_back(slot);
    if (!can_copy_later()) return {}; // collect() copies
    return device_->checked<&pb_device_async::to_host_async>(out.here.data(), there, out.here.size());
}

bool DeviceSampling::can_copy_later() const {
    const auto* const async = device_->extension<pb_device_async>();
    return async && async->to_host_async;
}

pb_tensor DeviceSampling::newest_tokens() const {
    const Outputs& out = outputs_[newest_];
    return tensor(out.there.data(), PB_I32, {int64_t{out.rows}}, 1);
}

Result<SampledRows> DeviceSampling::collect() {
    Outputs& out = outputs_[open_.front()];
    open_.pop_front();
    if (!can_copy_later())
        PB_CHECK(device_->checked<&pb_device::to_host>(out.here.data(), out.there.data(), out.here.size()));
    const Places places = places_of(out.rows, out.max_logprobs);
    const uint64_t top = uint64_t{out.rows} * out.max_logprobs;
    SampledRows rows{values<int32_t>(out.here, 0, out.rows), values<int32_t>(out.here, places.top_tokens, top),
                     values<float>(out.here, places.logprobs, out.rows),
                     values<float>(out.here, places.top_logprobs, top), out.max_logprobs, 0};
    for (const int32_t fault : values<int32_t>(out.here, places.faults, out.rows)) rows.faults += fault != 0;
    return rows;
}

}  // namespace patchbay::runner
