// patchbay/sdk/attention.hpp - an attention backend as a class T with a nested class T::Bound:
//   pb_attention_layout describe(const pb_attention_spec&);            throws Error(PB_UNSUPPORTED, reason)
//   std::unique_ptr<Bound> bind(const pb_attention_spec&);
//   void plan(Bound&, const pb_attention_batch&, void* buffer);
//   void append_kv(Bound&, batch, const pb_kv_view&, k, v) noexcept;
//   void run(Bound&, batch, const pb_kv_view&, out, q) noexcept;
//   pb_cost cost(const Bound&, batch);                                 optional: serves devices that compute nothing
//   static constexpr const char* kDevice;                              optional: that it works on, else "cpu"
//   static constexpr uint32_t kCapabilities;                           optional: bits of PB_ATTENTION_…
#pragma once
#include <memory>
#include <string>

#include "patchbay/abi/attention.h"
#include "patchbay/plugin.hpp"

namespace patchbay {
namespace detail {

template <class T>
struct AttentionTable {
    using Bound = typename T::Bound;
    static pb_status describe(void* self, const pb_attention_spec* spec, pb_attention_layout* out) {
        return enter<T>(self, [&](T& t) { copy_out(out, t.describe(*Whole(spec))); });
    }
    static pb_status bind(void* self, const pb_attention_spec* spec, void** bound) {
        return enter<T>(self, [&](T& t) { *bound = t.bind(*Whole(spec)).release(); });
    }
    static void unbind(void*, void* bound) noexcept { delete static_cast<Bound*>(bound); }
    static pb_status plan(void* self, void* bound, const pb_attention_batch* batch, void* buffer) {
        return enter<T>(self, [&](T& t) { t.plan(*static_cast<Bound*>(bound), *Whole(batch), buffer); });
    }
    static void append_kv(void* self, void* bound, const pb_attention_batch* batch, const pb_kv_view* kv,
                          const pb_tensor* k, const pb_tensor* v) noexcept {
        static_cast<Box<T>*>(self)->value.append_kv(*static_cast<Bound*>(bound), *Whole(batch), *Whole(kv), *k, *v);
    }
    static void run(void* self, void* bound, const pb_attention_batch* batch, const pb_kv_view* kv,
                    const pb_tensor* out, const pb_tensor* q) noexcept {
        static_cast<Box<T>*>(self)->value.run(*static_cast<Bound*>(bound), *Whole(batch), *Whole(kv), *out,
                                               *q);
    }
    static pb_status cost(void* self, void* bound, const pb_attention_batch* batch, pb_cost* out) {
        return enter<T>(self, [&](T& t) {
            if constexpr (kCost) copy_out(out, t.cost(*static_cast<const Bound*>(bound), *Whole(batch)));
        });
    }
    static constexpr bool kCost =
        requires(T t, const Bound& bound, const pb_attention_batch& batch) { t.cost(bound, batch); };
    static constexpr const char* device_name() {
        if constexpr (requires { T::kDevice; }) return T::kDevice;
        return nullptr;
    }
    static constexpr uint32_t capabilities() {
        if constexpr (requires { T::kCapabilities; }) return T::kCapabilities;
        return 0;
    }
    static constexpr pb_attention table{sizeof(pb_attention), 0, describe, bind, unbind, plan, append_kv, run,
                                        kCost ? cost : nullptr, device_name(), capabilities(), 0};
};

}  // namespace detail

// Throws Error(PB_UNSUPPORTED) unless kv_heads divides heads, and both heads and block_size are of 1 to 65536.
inline void check_heads_and_pages(const pb_attention_spec& spec) {
    constexpr uint32_t kMax = 65536;
    const auto number = [](uint32_t n) { return std::to_string(n); };
    if (spec.kv_heads == 0 || spec.heads == 0 || spec.heads % spec.kv_heads != 0)
        throw Error(PB_UNSUPPORTED,
                    "heads " + number(spec.heads) + " is not a multiple of kv_heads " + number(spec.kv_heads));
    if (spec.heads > kMax || spec.block_size == 0 || spec.block_size > kMax)
        throw Error(PB_UNSUPPORTED, "heads " + number(spec.heads) + " or block_size " + number(spec.block_size) +
                                        " not in 1 to " + number(kMax));
}

template <class T>
constexpr pb_component attention(const About& about) {
    return detail::component<T, detail::AttentionTable<T>>(PB_ATTENTION, PB_ATTENTION_REVISION, about);
}

}  // namespace patchbay
