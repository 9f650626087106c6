#include "conformance/sampler_case.hpp"

#include <algorithm>
#include <cmath>

#include "conformance/noise.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {

std::deque<RowCase> random_rows(uint64_t seed, uint32_t count) {
    Noise noise(seed);
    std::deque<RowCase> out;
    for (uint32_t i = 0; i < count; ++i) {
        RowCase c;
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

std::vector<const RowCase*> all(const std::deque<RowCase>& cases) {
    std::vector<const RowCase*> out;
    for (const RowCase& c : cases) out.push_back(&c);
    return out;
}

Result<Sampled> sample(const host::Component& component, const std::vector<const RowCase*>& cases, Call call) {
    constexpr size_t kGuards = 16; // values behind each buffer
    constexpr int32_t kGuardToken = 0x7eadbeef;
    constexpr float kGuard = 7.5f;
    const size_t n = cases.size();
    Sampled out;
    std::vector<pb_sample_row> rows;
    for (size_t i = 0; i < n; ++i) {
        const RowCase& c = *cases[i];
        out.logits.insert(out.logits.end(), c.logits.begin(), c.logits.end());
        rows.push_back({100 + i, c.seed, c.position, &c.params, c.prompt.data(), c.output.data(),
                        static_cast<uint32_t>(c.prompt.size()), static_cast<uint32_t>(c.output.size()),
                        c.allowed.empty() ? nullptr : c.allowed.data()});
    }
    out.logits.resize(n * kVocab + kGuards, kGuard);
    out.tokens.assign(n + kGuards, kGuardToken);
    out.logprobs.assign(n + kGuards, kGuard);
    out.top_tokens.assign(n * kTop + kGuards, -1);
    out.top_logprobs.assign(n * kTop + kGuards, kGuard);
    pb_sample_batch b{};
    b.struct_size = sizeof b;
    b.row_count = static_cast<uint32_t>(n);
    b.row_stride = sizeof(pb_sample_row);
    b.max_logprobs = kTop;
    b.logits = tensor(out.logits.data(), PB_F32, {static_cast<int64_t>(n), kVocab});
    b.rows = rows.data();
    b.tokens = out.tokens.data();
    b.logprobs = out.logprobs.data();
    b.top_tokens = out.top_tokens.data();
    b.top_logprobs = out.top_logprobs.data();
    const auto& table = *static_cast<const pb_sampler*>(component.type().vtable);
    if (call == Call::kSample) PB_CHECK(component.check(table.sample(component.self(), &b), "sample"));
    else PB_CHECK(component.check(table.process(component.self(), &b), "process"));
    out.faults = b.fault_count;
    const auto guarded = [](const auto& v, auto guard) {
        return std::all_of(v.end() - kGuards, v.end(), [&](auto x) { return x == guard; });
    };
    out.within_bounds = guarded(out.tokens, kGuardToken) && guarded(out.logprobs, kGuard) &&
                        guarded(out.top_tokens, -1) && guarded(out.top_logprobs, kGuard) && guarded(out.logits, kGuard);
    return out;
}

}  // namespace patchbay::conformance
