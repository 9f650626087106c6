#include "engine/sampling/sampler_port.hpp"

#include <algorithm>

#include "base/refusals.hpp"
#include "engine/loop/step_context.hpp"
#include "engine/request/sampling_params.hpp"
#include "engine/sampling/logits_statistics.hpp"
#include "engine/sampling/logits_reader.hpp"
#include "engine/sampling/sample_rows.hpp"
#include "engine/sampling/step_samples.hpp"
#include "engine/swap/swap_journal.hpp"
#include "runner/device_sampling.hpp"

namespace patchbay::engine {

SamplerPort::SamplerPort(uint32_t vocab_size, Clock& clock, StepContext& context, SwapJournal& journal)
    : vocab_size_(vocab_size), clock_(clock), context_(context), journal_(journal),
      slot_("sampler", host::UnreadState::kRefuses, clock) {}

std::string SamplerPort::text() const { return "sampler '" + std::string(slot_.current().type().name) + "'"; }

bool SamplerPort::is_on_device() const { return runner::runs_on_device(slot_.current()); }

bool SamplerPort::samples_in_pass() const { return is_on_device() && !slot_.previous(); }

Result<> SamplerPort::accepts(const pb_sampling_params& params) const {
    Result<> done;
    slot_.each([&](const host::Component& c) {
        if (done && host::table_of<pb_sampler>(c).accepts) done = host::checked<&pb_sampler::accepts>(c, &params);
    });
    return done;
}

Result<> SamplerPort::serves(const SamplingParams& p) const {
    if (p.logits_statistics && is_on_device())
        return unsupported("logits_statistics with " + text() + ", which leaves the logits on the device");
    return {};
}

bool SamplerPort::roll_back(const std::string& phase, const Failure& why) {
    if (!slot_.previous()) return false;
    journal_.note(slot_.roll_back(context_.step, phase, why));
    return true;
}

Result<> SamplerPort::sample(const SampleRows& rows, const execution::StepOutput& out, StepSamples& samples) {
    if (out.is_sampled) {
        samples.take(out.sampled);
        context_.report.calls.sampler_faults += out.sampled.faults;
        return {};
    }
    if (rows.count() == 0) {
        samples.clear(0, 0);
        return {};
    }
    const std::span<float> logits = out.logits.first(size_t{rows.count()} * vocab_size_);
    if (slot_.previous()) kept_logits_.assign(logits.begin(), logits.end());
    Result<> done = ask(rows, logits, samples);
    if (!done && roll_back("sample", done.failure())) {
        std::ranges::copy(kept_logits_, logits.begin());
        done = ask(rows, logits, samples);
    }
    return done;
}

Result<> SamplerPort::ask(const SampleRows& rows, std::span<float> logits, StepSamples& samples) {
    std::vector<LogitsStatistics> statistics;
    for (const uint32_t row : rows.with_statistics) {
        statistics.resize(rows.count());
        statistics[row] = statistics_of(logits.subspan(size_t{row} * vocab_size_, vocab_size_));
    }
    const host::Component& c = slot_.current();
    pb_sample_batch b = rows.batch(logits.data(), vocab_size_);
    const uint64_t start = clock_.now_ns();
    if (runner::runs_on_device(c)) {
        PB_TRY(const runner::SampledRows there, executor_->sample(logits, {c, b}));
        samples.take(there);
        context_.report.calls.sampler_faults += there.faults;
    } else {
        samples.clear(rows.count(), rows.max_logprobs);
        b.tokens = samples.tokens.data();
        b.logprobs = samples.logprobs.data();
        b.top_tokens = samples.top_tokens.data();
        b.top_logprobs = samples.top_logprobs.data();
        b.surprisal = samples.surprisals.data();
        b.faults = samples.faults.data();
        PB_CHECK(reader_->read(c, rows, logits));
        PB_CHECK(host::checked<&pb_sampler::sample>(c, &b));
        const auto faults = rows.count() - std::ranges::count(samples.faults, 0);
        context_.report.calls.sampler_faults += static_cast<uint32_t>(faults);
        reader_->decide(samples);
    }
    samples.statistics = std::move(statistics);
    context_.report.calls.sample_ns += clock_.now_ns() - start;
    if (!slot_.previous()) return {}; // of one that has passed its probation only the request fails
    for (const TokenId t : samples.tokens)
        if (t < 0 || static_cast<uint32_t>(t) >= vocab_size_)
            return fail("gave token " + std::to_string(t) + ", expected 0 to " + std::to_string(vocab_size_ - 1));
    return {};
}

}  // namespace patchbay::engine
