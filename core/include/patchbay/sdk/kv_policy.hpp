// patchbay/sdk/kv_policy.hpp - which cached page is evicted next, as a class:
//   void reset(uint32_t total_pages);        no page is cached; ids are below total_pages
//   void cached(const pb_kv_page&);          no sequence holds it any more: it may be evicted
//   void removed(uint32_t page);             its content is gone
//   void choose(patchbay::Victims&);         names pages for eviction, which stay cached until removed()
// Optional: used(uint32_t page), when a sequence holds it again; without it removed() is called.
#pragma once
#include <algorithm>

#include "patchbay/abi/kv_policy.h"
#include "patchbay/plugin.hpp"

namespace patchbay {

class Victims {
  public:
    explicit Victims(pb_kv_choice& choice) : raw(choice) { raw.page_count = 0; }
    bool full() const { return raw.page_count >= raw.max_pages; }
    // False: it was not added, since as many are named as are wanted.
    bool add(uint32_t page) {
        if (full()) return false;
        raw.pages[raw.page_count++] = page;
        return true;
    }
    uint64_t now_us() const { return raw.now_us; }

    pb_kv_choice& raw;
};

template <class T>
concept KvPolicyLike = requires(T t, const pb_kv_page& page, Victims& victims) {
    t.reset(uint32_t{});
    t.cached(page);
    t.removed(uint32_t{});
    t.choose(victims);
};

namespace detail {

template <KvPolicyLike T>
struct KvPolicyTable {
    static pb_status adopt(void* self, const pb_kv_pages* pages) {
        return enter<T>(self, [&](T& t) {
            const Whole whole(pages);
            t.reset(whole->total_pages);
            apply(t, *whole);
        });
    }
    static pb_status update(void* self, const pb_kv_pages* pages) {
        return enter<T>(self, [&](T& t) { apply(t, *Whole(pages)); });
    }
    static pb_status choose(void* self, pb_kv_choice* choice) {
        return enter<T>(self, [&](T& t) {
            WholeInOut whole(choice);
            Victims victims(*whole);
            t.choose(victims);
        });
    }
    static void apply(T& t, const pb_kv_pages& pages) {
        for (const pb_kv_page& page : Rows<pb_kv_page>(pages.pages, pages.page_count, pages.page_stride)) {
            if (page.change == PB_KV_CACHED) t.cached(page);
            else if (kUsed && page.change == PB_KV_USED) used(t, page.page);
            else t.removed(page.page);
        }
    }
    static void used(T& t, uint32_t page) {
        if constexpr (kUsed) t.used(page);
    }
    static constexpr bool kUsed = requires(T t) { t.used(uint32_t{}); };
    static constexpr pb_kv_policy table{sizeof(pb_kv_policy), 0, adopt, update, choose};
    static_assert(kUsed || !PB_HAS_MEMBER(T, used), "used is: void used(uint32_t page)");
    static_assert(!PB_HAS_MEMBER(T, hit) && !PB_HAS_MEMBER(T, on_used), "it is called used");
    static_assert(!PB_HAS_MEMBER(T, evicted) && !PB_HAS_MEMBER(T, on_removed), "it is called removed");
};

}  // namespace detail

template <KvPolicyLike T>
constexpr pb_component kv_policy(const About& about) {
    return detail::component<T, detail::KvPolicyTable<T>>(PB_KV_POLICY, PB_KV_POLICY_REVISION, about);
}

}  // namespace patchbay
