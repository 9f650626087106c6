// patchbay/testing/kv_policy.hpp - a KV policy that hears of pages and is asked which to evict.
#pragma once
#include <vector>

#include "patchbay/sdk/kv_policy.hpp"
#include "patchbay/testing/component.hpp"

namespace patchbay::testing {

class KvPolicy : public Subject {
  public:
    // No page is cached in the beginning; ids are below total_pages.
    KvPolicy(const Plugin& plugin, uint32_t total_pages, const Settings& settings = {}, std::string_view name = {})
        : Subject(plugin, PB_KV_POLICY, settings, name), total_pages_(total_pages) {
        report({}, component.table<pb_kv_policy>().adopt);
    }

    struct Page {
        uint32_t page;
        uint64_t used_us = 0; // when its last sequence released it
        uint32_t hits = 0;    // requests that found it
        uint64_t block = 0;   // hash of its tokens and all before them; 0: of its id
        uint32_t parent = 0;  // page before it, plus one; 0: none
    };
    void cached(const Page& p) {
        change({p.page, PB_KV_CACHED, p.block ? p.block : p.page + 1, p.used_us, p.parent, 0, p.hits, 0});
    }
    void used(uint32_t page) { change({page, PB_KV_USED, 0, 0, 0, 0, 0, 0}); }
    void removed(uint32_t page) { change({page, PB_KV_REMOVED, 0, 0, 0, 0, 0, 0}); }

    // Pages to be evicted, the first first. They stay cached until removed(). Throws Error where it counts too many.
    std::vector<uint32_t> choose(uint32_t max_pages, uint64_t now_us = 0) {
        std::vector<uint32_t> out(max_pages, UINT32_MAX);
        auto choice = sized<pb_kv_choice>();
        choice.max_pages = max_pages;
        choice.pages = out.data();
        choice.now_us = now_us;
        component.check(component.table<pb_kv_policy>().choose(component.self(), &choice));
        if (choice.page_count > max_pages)
            throw Error(PB_FAILED, "it counts " + std::to_string(choice.page_count) + " pages, expected at most " +
                                       std::to_string(max_pages));
        out.resize(choice.page_count);
        return out;
    }

  private:
    void change(const pb_kv_page& page) { report({page}, component.table<pb_kv_policy>().update); }
    void report(const std::vector<pb_kv_page>& pages, pb_status (*call)(void*, const pb_kv_pages*)) {
        auto in = sized<pb_kv_pages>();
        in.page_stride = sizeof(pb_kv_page);
        in.page_count = static_cast<uint32_t>(pages.size());
        in.total_pages = total_pages_;
        in.block_size = 16;
        in.pages = pages.data();
        component.check(call(component.self(), &in));
    }

    uint32_t total_pages_;
};

}  // namespace patchbay::testing
