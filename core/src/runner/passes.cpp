#include "runner/passes.hpp"

#include <algorithm>

#include "runner/timed.hpp"

namespace patchbay::runner {

Passes::Passes(const PassContext& context)
    : c_(context), pass_(context, latest_.times), steps_(context.device, context.clock),
      sampling_(context.device.plugin), hidden_(context.device), logits_(context.device) {}

// ---- what engines call ----

Result<std::span<float>> Passes::forward(const Batch& batch) {
    return batch.tokens() == 0 ? copy_only(batch) : pass(batch, nullptr, End::kWait);
}

Result<SampledRows> Passes::forward(const Batch& batch, const SampleCall& call) {
    if (const auto done = pass(batch, &call, End::kWait); !done) {
        sampling_.forget();
        return done.failure();
    }
    return sampling_.collect();
}

Result<SampledRows> Passes::sample(std::span<const float> logits, const SampleCall& call) {
    const host::Device& device = c_.device.plugin;
    PB_CHECK(device.checked<&pb_device::begin_step>());
    const auto start = [&]() -> Result<> {
        void* const to = pass_.logits().data;
        PB_CHECK(device.checked<&pb_device::to_device>(to, logits.data(), logits.size_bytes()));
        return sampling_.enqueue(call, pass_.logits());
    };
    const Result<> started = start(), ended = device.checked<&pb_device::end_step>();
    if (!started || !ended) sampling_.forget();
    PB_CHECK(started);
    PB_CHECK(ended);
    return sampling_.collect();
}

Result<> Passes::submit(const Batch& batch, const SampleCall* call) {
    PB_TRY(const auto none, pass(batch, call, End::kSubmit));
    (void)none;
    return {};
}

Result<SampledRows> Passes::wait() {
    PB_TRY(const bool samples, steps_.wait());
    return samples ? sampling_.collect() : SampledRows{};
}

void Passes::abandon() {
    steps_.abandon();
    sampling_.forget();
}

// ---- a pass ----

Result<std::span<float>> Passes::pass(const Batch& batch, const SampleCall* call, End end) {
    const GraphChoice choice = graphs().choose(batch);
    auto logits = run(choice.bucket ? graphs().padded() : batch, batch.arrays().logit_rows.size(), choice, call, end);
    if (choice.bucket) latest_.graph.padded_tokens = choice.bucket->tokens - batch.tokens();
    return logits;
}

Result<std::span<float>> Passes::run(const Batch& batch, size_t rows, const GraphChoice& choice,
                                     const SampleCall* call, End end) {
    CallTimes& times = latest_.times;
    times = {};
    hidden_.clear();
    PB_CHECK(pass_.begin(batch));
    PB_CHECK(steps_.begin(times));
    const Result<> done = compute(batch, rows, choice); // whatever becomes of it, the device's step ends
    const bool samples = done && call;
    Result<> sampled;
    if (samples)
        sampled = timed(c_.clock, times.sampler, [&] { return sampling_.enqueue(*call, pass_.logits()); });
    const Result<> ended =
        end == End::kWait ? steps_.end(times, pass_.is_replayed() ? times.device_launch : times.model_forward)
                          : steps_.submit(samples && sampled);
    PB_CHECK(pass_.check(batch.tokens(), done, ended)); // of a device that broke, its own words before the sampler's
    PB_CHECK(sampled);
    std::span<float> logits;
    const bool is_here = c_.device.computes() && end == End::kWait;
    if (is_here && !call) {
        PB_TRY(logits, logits_.fetch(pass_.logits(), rows));
    }
    if (is_here) PB_CHECK(hidden_.append(pass_.hidden(), batch.hidden()));
    if (choice.bucket && !pass_.is_replayed() && !choice.refused)
        latest_.graph.capture_ns = pass_.capture(*choice.bucket, steps_);
    return logits;
}

Result<> Passes::compute(const Batch& batch, size_t rows, const GraphChoice& choice) {
    for (const kv::PageCopy& page : batch.copies()) PB_CHECK(c_.kv.copy(page));
    PB_TRY(latest_.graph, pass_.place(batch, choice, sampling_.newest_tokens()));
    PB_CHECK(pass_.plan());
    return pass_.compute(batch, rows);
}

// Without a token to compute there is nothing for a model.
Result<std::span<float>> Passes::copy_only(const Batch& batch) {
    latest_ = {};
    PB_CHECK(steps_.begin(latest_.times));
    Result<> done;
    for (const kv::PageCopy& page : batch.copies())
        if (done) done = c_.kv.copy(page);
    PB_CHECK(steps_.end(latest_.times, latest_.times.device_end));
    PB_CHECK(done);
    return std::span<float>();
}

// ---- graphs ----

Result<> Passes::make_graphs(const RunnerSettings& settings) {
    graphs().open(settings);
    const GraphCache& cache = graphs().cache();
    if (c_.device.has_own_memory() && settings.max_num_seqs > 0) {
        const uint64_t tokens = std::max(settings.max_num_batched_tokens, cache.max_tokens());
        const uint64_t sequences = std::max(settings.max_num_seqs, cache.max_tokens());
        const uint64_t pages = (uint64_t{c_.kv.max_seq_len()} + settings.block_size - 1) / settings.block_size;
        // Pages that a window has passed are listed too.
        const uint64_t blocks = c_.kv.batch_form().token_groups * sequences * pages;
        PB_CHECK(reserve({tokens, sequences, tokens, blocks}));
    }
    if (!cache.captures_at_load()) return {};
    const uint64_t begin_ns = c_.clock.now_ns();
    for (const GraphBucket& bucket : cache.missing()) // the largest first, which sizes the workspace for the others
        PB_CHECK(run(graphs().blank(bucket), 0, {GraphMiss::kNotCaptured, nullptr, bucket}, nullptr, End::kWait));
    graphs().note_load(c_.clock.now_ns() - begin_ns);
    return {};
}

}  // namespace patchbay::runner
