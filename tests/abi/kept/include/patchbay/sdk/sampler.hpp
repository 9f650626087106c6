// patchbay/sdk/sampler.hpp - a sampler as a class: void sample(patchbay::SampleBatch&). Optional: process(batch). One
// that runs on a device has in their place static constexpr const char* kDevice, pb_sample_plan
// plan(patchbay::SampleBatch&) and void enqueue(const pb_sample_work&). Optional for both: void accepts(const
// pb_sampling_params&), which throws Error(PB_UNSUPPORTED, ...) for what it does not have.
#pragma once
#include "patchbay/abi/sampler.h"
#include "patchbay/plugin.hpp"

namespace patchbay {

inline bool allowed(const pb_sample_row& row, size_t token) {
    return !row.allowed || (row.allowed[token / 32] >> (token % 32) & 1u);
}

// For rows that have nothing to sample from: a token that is at least in range, and allowed where any is.
inline int32_t first_allowed(const pb_sample_row& row, size_t vocab) {
    for (size_t t = 0; t < vocab; ++t)
        if (allowed(row, t)) return static_cast<int32_t>(t);
    return 0;
}

struct SampleBatch {
    explicit SampleBatch(pb_sample_batch& batch) : raw(batch), rows_(batch.rows, batch.row_count, batch.row_stride) {
        if (rows_.empty() || rows_[0].params->struct_size >= sizeof(pb_sampling_params)) return;
        whole_params_.reserve(size());
        for (pb_sample_row row : rows_) { // of a host that knows fewer parameters
            row.params = &whole_params_.emplace_back(*Whole(row.params));
            whole_rows_.push_back(row);
        }
    }
    SampleBatch(const SampleBatch&) = delete;
    SampleBatch& operator=(const SampleBatch&) = delete;
    uint32_t size() const { return raw.row_count; }
    int64_t vocab() const { return raw.logits.shape[1]; }
    const pb_sample_row& row(uint32_t i) const { return whole_rows_.empty() ? rows_[i] : whole_rows_[i]; }
    std::span<float> logits(uint32_t i) const {
        return {static_cast<float*>(raw.logits.data) + i * raw.logits.strides[0], static_cast<size_t>(vocab())};
    }
    // For a row that has nothing to choose from, its logits being all NaN or excluded: notes that, and gives the
    // token that the row gets all the same.
    int32_t fault(uint32_t i) const {
        if (raw.faults) raw.faults[i] = 1;
        return first_allowed(row(i), static_cast<size_t>(vocab()));
    }
    pb_sample_batch& raw;

  private:
    const Rows<pb_sample_row> rows_;
    std::vector<pb_sample_row> whole_rows_;
    std::vector<pb_sampling_params> whole_params_;
};

// Temperature 1 and every other stage off.
constexpr pb_sampling_params plain_params() {
    pb_sampling_params p{};
    p.struct_size = sizeof p;
    p.temperature = p.top_p = p.repetition_penalty = 1;
    return p;
}

namespace detail {

template <class T>
struct SamplerTable {
    template <class F>
    static pb_status with_batch(void* self, pb_sample_batch* batch, F&& f) {
        return enter<T>(self, [&](T& t) {
            WholeInOut whole(batch);
            SampleBatch b(*whole);
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
        auto copy = widened<pb_sample_batch>(batch, batch->struct_size);
        copy.struct_size = sizeof copy;
        return with_batch(self, &copy, [&](T& t, SampleBatch& b) {
            if constexpr (kOnDevice) copy_out(out, t.plan(b));
        });
    }
    static pb_status enqueue(void* self, const pb_sample_work* work) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kOnDevice) t.enqueue(*Whole(work));
        });
    }
    static pb_status accepts(void* self, const pb_sampling_params* params) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kAccepts) t.accepts(*Whole(params));
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
        return nullptr;
    }
    static constexpr pb_sampler table{sizeof(pb_sampler), 0, device_name(), kSample ? sample : nullptr,
                                      kProcess ? process : nullptr, kAccepts ? accepts : nullptr};
    static constexpr pb_sampler_device on_device{sizeof(pb_sampler_device), 0, plan, enqueue};
    static constexpr void add_extensions(auto& list) {
        list.add(kOnDevice, PB_SAMPLER_DEVICE, PB_SAMPLER_DEVICE_REVISION, &on_device);
    }
    static_assert(kAccepts || !PB_HAS_MEMBER(T, accepts), "accepts is: void accepts(const pb_sampling_params&)");
    static_assert(kProcess || !PB_HAS_MEMBER(T, process), "process is: void process(patchbay::SampleBatch&)");
    static_assert(!PB_HAS_MEMBER(T, accept), "it is called accepts");
};

}  // namespace detail

template <class T>
    requires(detail::SamplerTable<T>::kSample != detail::SamplerTable<T>::kOnDevice)
constexpr pb_component sampler(const About& about) {
    return detail::component<T, detail::SamplerTable<T>>(PB_SAMPLER, PB_SAMPLER_REVISION, about);
}

}  // namespace patchbay
