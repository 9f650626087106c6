// patchbay/sdk/sampler.hpp - a sampler as a class: void sample(patchbay::SampleBatch&). Optional: process(batch). One
// that runs on a device has in their place static constexpr const char* kDevice, pb_sample_plan
// plan(patchbay::SampleBatch&) and void enqueue(const pb_sample_work&). Optional for both: void accepts(const
// pb_sampling_params&), which throws Error(PB_UNSUPPORTED, ...) for what it does not have.
#pragma once
#include "patchbay/abi/sampler.h"
#include "patchbay/plugin.hpp"

namespace patchbay {

struct SampleBatch {
    explicit SampleBatch(pb_sample_batch& batch) : raw(batch) {}
    uint32_t size() const { return raw.row_count; }
    int64_t vocab() const { return raw.logits.shape[1]; }
    const pb_sample_row& row(uint32_t i) const {
        return *reinterpret_cast<const pb_sample_row*>(reinterpret_cast<const char*>(raw.rows) +
                                                       size_t{i} * raw.row_stride);
    }
    std::span<float> logits(uint32_t i) const {
        return {static_cast<float*>(raw.logits.data) + i * raw.logits.strides[0], static_cast<size_t>(vocab())};
    }
    pb_sample_batch& raw;
};

// Temperature 1 and every other stage off.
constexpr pb_sampling_params plain_params() {
    pb_sampling_params p{};
    p.struct_size = sizeof p;
    p.temperature = p.top_p = p.repetition_penalty = 1;
    p.logprobs = -1;
    return p;
}

namespace detail {

template <class T>
struct SamplerTable {
    template <class F>
    static pb_status with_batch(void* self, pb_sample_batch* batch, F&& f) {
        return enter<T>(self, [&](T& t) {
            SampleBatch b(*batch);
            f(t, b);
        });
    }
    static pb_status sample(void* self, pb_sample_batch* batch) {
        return with_batch(self, batch, [](T& t, SampleBatch& b) {
            if constexpr (kSample) t.sample(b);
        });
    }
    static pb_status process(void* self, pb_sample_batch* batch) {
        return with_batch(self, batch, [](T& t, SampleBatch& b) {
            if constexpr (kProcess) t.process(b);
        });
    }
    static pb_status plan(void* self, const pb_sample_batch* batch, pb_sample_plan* out) {
        pb_sample_batch copy = *batch;
        return with_batch(self, &copy, [&](T& t, SampleBatch& b) {
            if constexpr (kOnDevice) *out = t.plan(b);
        });
    }
    static pb_status enqueue(void* self, const pb_sample_work* work) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kOnDevice) t.enqueue(*work);
        });
    }
    static pb_status accepts(void* self, const pb_sampling_params* params) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kAccepts) t.accepts(*params);
        });
    }
    static constexpr bool kAccepts = requires(T t, const pb_sampling_params& p) { t.accepts(p); };
    static constexpr bool kSample = requires(T t, SampleBatch& b) { t.sample(b); };
    static constexpr bool kProcess = requires(T t, SampleBatch& b) { t.process(b); };
    static constexpr bool kOnDevice = requires(T t, SampleBatch& b, const pb_sample_work& work) {
        T::kDevice;
        t.plan(b);
        t.enqueue(work);
    };
    static constexpr const char* device_name() {
        if constexpr (kOnDevice) return T::kDevice;
        return "host";
    }
    static constexpr pb_sampler table{sizeof(pb_sampler), 0, device_name(), kSample ? sample : nullptr,
                                      kProcess ? process : nullptr, kOnDevice ? plan : nullptr,
                                      kOnDevice ? enqueue : nullptr, kAccepts ? accepts : nullptr};
};

}  // namespace detail

template <class T>
    requires(detail::SamplerTable<T>::kSample != detail::SamplerTable<T>::kOnDevice)
constexpr pb_component sampler(const About& about) {
    return detail::component<T>(PB_SAMPLER, PB_SAMPLER_DIGEST, about, &detail::SamplerTable<T>::table);
}

}  // namespace patchbay
