#include "conformance/sampler_case.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>

#include "conformance/noise.hpp"
#include "conformance/device_buffer.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {

std::deque<RowCase> random_rows(uint64_t seed, uint32_t count) {
    Noise noise(seed);
    std::deque<RowCase> out;
    for (uint32_t i = 0; i < count; ++i) {
        RowCase c;
        Noise of_biases(seed << 16 | i);
        if (of_biases.one_in(4))
            for (uint32_t t = of_biases.below(40); t < kVocab; t += of_biases.between(1, 80))
                c.biases.push_back({static_cast<int32_t>(t), of_biases.one_in(4) ? -100 : of_biases.real(-5, 5)});
        c.logits = noise.reals(kVocab, -6, 6);
        c.params.temperature = noise.one_in(3) ? 0 : noise.real(0.3f, 1.5f);
        if (noise.one_in(3)) c.params.top_k = static_cast<int32_t>(noise.between(1, 40));
        if (noise.one_in(3)) c.params.top_p = noise.real(0.2f, 1);
        if (noise.one_in(4)) c.params.min_p = noise.real(0, 0.2f);
        if (noise.one_in(4)) c.params.repetition_penalty = noise.real(1, 1.5f);
        if (noise.one_in(4)) c.params.presence_penalty = noise.real(-1, 1);
        if (noise.one_in(4)) c.params.frequency_penalty = noise.real(-1, 1);
        for (uint32_t k = noise.between(1, 20); k > 0; --k)
            c.prompt.push_back(static_cast<int32_t>(noise.below(kVocab)));
        for (uint32_t k = noise.below(20); k > 0; --k) c.output.push_back(static_cast<int32_t>(noise.below(kVocab)));
        if (noise.one_in(4)) c.params.top_n_sigma = noise.real(0.5f, 3);
        if (noise.one_in(4)) c.params.typical_p = noise.real(0.2f, 1);
        if (noise.one_in(4)) c.params.xtc_probability = noise.real(0, 1), c.params.xtc_threshold = noise.real(0, 0.3f);
        if (noise.one_in(4)) c.params.mirostat_tau = noise.real(1, 6), c.params.mirostat_eta = noise.real(0, 0.5f);
        for (size_t k = 0; k < c.output.size(); ++k) c.surprisal.push_back(noise.real(0, 10));
        if (noise.one_in(4)) {
            c.params.dry_multiplier = noise.real(0.1f, 2);
            c.params.dry_base = noise.real(1, 2);
            c.params.dry_range = noise.below(30);
            for (int32_t t = 0; t < 3; ++t) c.breakers.push_back(60 * t + static_cast<int32_t>(noise.below(60)));
            const size_t some = std::min<size_t>(c.prompt.size(), 5); // a repetition to go on with
            const std::vector<int32_t> again(c.prompt.begin(), c.prompt.begin() + static_cast<ptrdiff_t>(some));
            c.prompt.insert(c.prompt.end(), again.begin(), again.end());
        }
        if (noise.one_in(3)) {
            c.allow_none();
            for (uint32_t k = noise.between(1, 12); k > 0; --k) c.allow(noise.below(kVocab));
        }
        c.seed = noise.bits();
        c.position = c.prompt.size() + c.output.size();
        out.push_back(std::move(c));
    }
    return out;
}

std::deque<RowCase> drawn_rows() {
    Noise noise(14);
    std::deque<RowCase> out;
    for (const float temperature : {1.0f, 0.5f, 1.5f, 0.8f, 1.0f, 1.0f, 0.7f}) {
        RowCase& c = out.emplace_back();
        c.logits.assign(kVocab, -40);
        for (uint32_t k = 0; k < 12; ++k) c.logits[noise.below(kVocab)] = noise.real(-2, 2);
        for (uint32_t t = 0; t < kVocab; ++t)
            if (c.logits[t] > -40 && c.prompt.size() < 4) c.prompt.push_back(static_cast<int32_t>(t));
        c.output = c.prompt;
        c.params.temperature = temperature;
    }
    out[2].allow_none();
    for (uint32_t t = 0; t < kVocab; t += 1 + t % 2) out[2].allow(t);
    out[3].params.top_k = 5;
    out[4].params.top_p = 0.7f;
    out[5].params.min_p = 0.1f;
    out[6].params.repetition_penalty = 1.3f;
    out[6].params.presence_penalty = 0.5f;
    out[6].biases = {{out[6].prompt[0], 1.5f}, {out[6].prompt[1], -1.5f}};
    return out;
}

std::deque<RowCase> strange_rows() {
    std::deque<RowCase> out = random_rows(5, 12);
    std::fill(out[0].logits.begin(), out[0].logits.end(), NAN);
    std::fill(out[1].logits.begin(), out[1].logits.end(), -INFINITY);
    out[2].allow_none(); // but for one that is −inf
    out[2].allow(96);
    out[2].logits[96] = -INFINITY;
    out[3].allow_none();
    out[4].logits[7] = INFINITY;
    for (size_t t = 0; t < kVocab; t += 2) out[5].logits[t] = NAN;
    out[6].params.temperature = 1e-6f;
    out[7].params.top_p = 1e-9f;
    out[8].params.top_k = 1'000'000;
    return out;
}

std::string name_of(size_t i, const RowCase& row) {
    const pb_sampling_params& p = row.params;
    std::ostringstream out;
    out << "row " << i << " (vocabulary " << kVocab << ", temperature " << p.temperature;
    const auto add = [&](const char* name, double value, double off) {
        if (value != off) out << ", " << name << ' ' << value;
    };
    add("top_k", p.top_k, 0);
    add("top_p", p.top_p, 1);
    add("min_p", p.min_p, 0);
    add("repetition_penalty", p.repetition_penalty, 1);
    add("presence_penalty", p.presence_penalty, 0);
    add("frequency_penalty", p.frequency_penalty, 0);
    add("logprobs", p.logprobs, 0);
    add("logit biases", static_cast<double>(row.biases.size()), 0);
    add("dry_multiplier", p.dry_multiplier, 0);
    add("top_n_sigma", p.top_n_sigma, 0);
    add("typical_p", p.typical_p, 0);
    add("xtc_probability", p.xtc_probability, 0);
    add("mirostat_tau", p.mirostat_tau, 0);
    out << ", seed " << row.seed << ", position " << row.position;
    uint32_t allowed = 0;
    for (const uint32_t word : row.allowed) allowed += static_cast<uint32_t>(std::popcount(word));
    if (!row.allowed.empty()) out << ", " << allowed << " tokens allowed";
    const auto count = [&](auto&& is, const char* what) {
        if (const auto n = std::ranges::count_if(row.logits, is); n > 0) out << ", " << n << " logits " << what;
    };
    count([](float x) { return std::isnan(x); }, "NaN");
    count([](float x) { return x == INFINITY; }, "+inf");
    count([](float x) { return x == -INFINITY; }, "-inf");
    out << ')';
    return out.str();
}

std::vector<const RowCase*> all(const std::deque<RowCase>& cases) {
    std::vector<const RowCase*> out;
    for (const RowCase& c : cases) out.push_back(&c);
    return out;
}

namespace {

constexpr size_t kGuards = 16; // values after each buffer

Result<> sample_there(const host::Component& sampler, const host::Component& device, pb_sample_batch b, Sampled& out) {
    const auto& table = *sampler.extension<pb_sampler_device>();
    const auto& its = *static_cast<const pb_device*>(device.type().vtable);
    std::vector<int32_t> faults(b.row_count + kGuards, 1);
    PB_TRY(const auto logits, send(device, out.logits));
    PB_TRY(const auto tokens, send(device, out.tokens));
    PB_TRY(const auto logprobs, send(device, out.logprobs));
    PB_TRY(const auto top_tokens, send(device, out.top_tokens));
    PB_TRY(const auto top_logprobs, send(device, out.top_logprobs));
    PB_TRY(const auto faulty, send(device, faults));
    PB_CHECK(device.check(its.begin_step(device.self()), "begin_step"));
    b.logits.data = nullptr;
    b.logits.device = 1;
    b.tokens = b.top_tokens = nullptr;
    b.logprobs = b.top_logprobs = nullptr;
    pb_sample_plan plan = sized<pb_sample_plan>();
    PB_CHECK(sampler.check(table.plan(sampler.self(), &b, &plan), "plan"));
    std::vector<std::byte> copy(static_cast<const std::byte*>(plan.inputs),
                                static_cast<const std::byte*>(plan.inputs) + plan.input_bytes);
    PB_TRY(const auto inputs, send(device, copy));
    std::vector<std::byte> dirt(plan.scratch_bytes, std::byte{0xff});
    PB_TRY(const auto scratch, send(device, dirt));
    pb_sample_work work{};
    work.struct_size = sizeof work;
    work.row_count = b.row_count;
    work.max_logprobs = b.max_logprobs;
    if (its.queue) work.queue = its.queue(device.self());
    work.logits = b.logits;
    work.logits.data = logits->at<float>();
    work.inputs = inputs->at<void>();
    work.scratch = scratch->at<void>();
    work.tokens = tokens->at<int32_t>();
    work.faults = faulty->at<int32_t>();
    work.logprobs = logprobs->at<float>();
    work.top_tokens = top_tokens->at<int32_t>();
    work.top_logprobs = top_logprobs->at<float>();
    PB_CHECK(sampler.check(table.enqueue(sampler.self(), &work), "enqueue"));
    PB_CHECK(device.check(its.end_step(device.self()), "end_step"));
    for (const DeviceBuffer* each : {logits.get(), tokens.get(), logprobs.get(), top_tokens.get(), top_logprobs.get(),
                              faulty.get()})
        PB_CHECK(each->fetch());
    for (size_t i = 0; i < faults.size(); ++i) {
        if (i < b.row_count) out.faults.push_back(faults[i]);
        else out.within_bounds = out.within_bounds && faults[i] == 1;
    }
    return {};
}

// Rows of logits with room between them, which would win if they were of the row; then the guards.
float* lend_logits(LentMemory& lent, const std::vector<float>& logits, size_t rows, size_t stride) {
    constexpr float kBetween = 1e6f;
    std::vector<float> apart(rows * stride, kBetween);
    for (size_t i = 0; i < rows; ++i) std::copy_n(&logits[i * kVocab], kVocab, &apart[i * stride]);
    apart.insert(apart.end(), logits.end() - kGuards, logits.end());
    return lent.lend(apart);
}

void fetch_logits(const float* apart, size_t rows, size_t stride, std::vector<float>& logits) {
    for (size_t i = 0; i < rows; ++i) std::copy_n(apart + i * stride, kVocab, &logits[i * kVocab]);
    std::copy_n(apart + rows * stride, kGuards, &logits[rows * kVocab]);
}

}  // namespace

Result<Sampled> sample(Subject& subject, const host::Component& component, const std::vector<const RowCase*>& cases,
                       Call call, LentMemory* memory, uint32_t extra) {
    constexpr int32_t kGuardToken = 0x7eadbeef;
    constexpr float kGuard = 7.5f;
    const size_t n = cases.size();
    Sampled out;
    std::vector<pb_sample_row> rows;
    LentMemory& lent = memory ? *memory : subject.lent();
    const auto& table = *static_cast<const pb_sampler*>(component.type().vtable);
    for (size_t i = 0; i < n; ++i) {
        const RowCase& c = *cases[i];
        pb_sampling_params p = c.params;
        p.dry_breakers = lent.lend(c.breakers);
        p.dry_breaker_count = static_cast<uint32_t>(c.breakers.size());
        p.logit_bias = c.biases.empty() ? nullptr : lent.lend(c.biases);
        p.logit_bias_count = static_cast<uint32_t>(c.biases.size());
        const auto refused = [&] { return table.accepts && table.accepts(component.self(), &p) != PB_OK; };
        if (refused()) p.dry_multiplier = p.top_n_sigma = p.typical_p = p.xtc_probability = p.mirostat_tau = 0;
        if (refused()) p.logit_bias_count = 0;
        out.logits.insert(out.logits.end(), c.logits.begin(), c.logits.end());
        rows.push_back({100 + i, c.seed, c.position, lent.lend(p), lent.lend(c.prompt), lent.lend(c.output),
                        static_cast<uint32_t>(c.prompt.size()), static_cast<uint32_t>(c.output.size()),
                        c.allowed.empty() ? nullptr : lent.lend(c.allowed),
                        p.mirostat_tau > 0 ? lent.lend(c.surprisal) : nullptr});
    }
    out.logits.resize(n * kVocab + kGuards, kGuard);
    out.tokens.assign(n + kGuards, kGuardToken);
    out.logprobs.assign(n + kGuards, kGuard);
    out.top_tokens.assign(n * kTop + kGuards, -1);
    out.top_logprobs.assign(n * kTop + kGuards, kGuard);
    out.surprisal.assign(n, NAN);
    out.surprisal.resize(n + kGuards, kGuard);
    std::vector<int32_t> faults(n, 0);
    faults.resize(n + kGuards, kGuardToken);
    pb_sample_batch b{};
    b.struct_size = sizeof b;
    b.row_count = static_cast<uint32_t>(n);
    b.row_stride = sizeof(pb_sample_row) + extra;
    b.max_logprobs = kTop;
    b.logits = tensor(out.logits.data(), PB_F32, {static_cast<int64_t>(n), kVocab});
    b.rows = lent.lend_apart(rows, b.row_stride, std::byte{0});
    b.tokens = out.tokens.data();
    b.logprobs = out.logprobs.data();
    b.top_tokens = out.top_tokens.data();
    b.top_logprobs = out.top_logprobs.data();
    b.surprisal = out.surprisal.data();
    b.faults = faults.data();
    std::string why;
    if (!table.device) {
        const size_t stride = kVocab + extra / sizeof(float);
        b.logits.strides[0] = static_cast<int64_t>(stride);
        b.logits.data = lend_logits(lent, out.logits, n, stride);
        pb_sample_batch* const batch = lent.lend(b);
        if (call == Call::kProcess) batch->faults = nullptr;
        if (call == Call::kSample) PB_CHECK(component.check(table.sample(component.self(), batch), "sample"));
        else PB_CHECK(component.check(table.process(component.self(), batch), "process"));
        out.faults.assign(faults.begin(), faults.end() - kGuards);
        fetch_logits(static_cast<const float*>(b.logits.data), n, stride, out.logits);
    } else if (const host::Component* const its = subject.device(table.device, why)) {
        std::fill_n(out.top_tokens.begin(), n * kTop, kGuardToken); // which none of them may stay
        PB_CHECK(sample_there(component, *its, b, out));
    } else {
        return fail(why);
    }
    out.within_bounds &= lent.end_call();
    const auto guarded = [](const auto& v, auto guard) {
        return std::all_of(v.end() - kGuards, v.end(), [&](auto x) { return x == guard; });
    };
    out.within_bounds = out.within_bounds && guarded(out.tokens, kGuardToken) && guarded(out.logprobs, kGuard) &&
                        guarded(out.top_tokens, -1) && guarded(out.top_logprobs, kGuard) &&
                        guarded(out.logits, kGuard) && guarded(out.surprisal, kGuard) && guarded(faults, kGuardToken);
    return out;
}

}  // namespace patchbay::conformance
