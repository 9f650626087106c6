// patchbay/sdk/sampler.hpp - a sampler as a class: void sample(patchbay::SampleBatch&). Optional: process(batch).
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

namespace detail {

template <class T>
struct SamplerTable {
    static pb_status sample(void* self, pb_sample_batch* batch) {
        return enter<T>(self, [&](T& t) {
            SampleBatch b(*batch);
            t.sample(b);
        });
    }
    static pb_status process(void* self, pb_sample_batch* batch) {
        return enter<T>(self, [&](T& t) {
            SampleBatch b(*batch);
            if constexpr (requires { t.process(b); }) t.process(b);
        });
    }
    static constexpr bool kProcess = requires(T t, SampleBatch& b) { t.process(b); };
    static constexpr pb_sampler table{sizeof(pb_sampler), 0, "host", sample, kProcess ? process : nullptr};
};

}  // namespace detail

template <class T>
    requires requires(T t, SampleBatch& b) { t.sample(b); }
constexpr pb_component sampler(const About& about) {
    return detail::component<T>(PB_SAMPLER, PB_SAMPLER_DIGEST, about, &detail::SamplerTable<T>::table);
}

}  // namespace patchbay
