// A healthy kv_policy, and some each wrong in one way, as components of one library.
#include <algorithm>
#include <vector>

#include "patchbay/sdk/kv_policy.hpp"

namespace {

using patchbay::Victims;

struct Oldest { // of those that are cached
    std::vector<uint32_t> pages;
    void reset(uint32_t) { pages.clear(); }
    void cached(const pb_kv_page& p) { pages.push_back(p.page); }
    void removed(uint32_t page) { std::erase(pages, page); }
    void choose(Victims& victims) {
        for (const uint32_t page : pages)
            if (!victims.add(page)) return;
    }
};

struct WritesAPageTooMany : Oldest {
    void choose(Victims& victims) {
        Oldest::choose(victims);
        victims.raw.pages[victims.raw.max_pages] = 0;
    }
};

struct NamesWhatIsUsed : Oldest {
    void used(uint32_t) {}
    void cached(const pb_kv_page& p) {
        removed(p.page);
        Oldest::cached(p);
    }
};

struct NamesOneTwice : Oldest {
    void choose(Victims& victims) {
        Oldest::choose(victims);
        if (victims.raw.page_count > 1) victims.raw.pages[1] = victims.raw.pages[0];
    }
};

struct NamesOneTooFew : Oldest {
    void choose(Victims& victims) {
        Oldest::choose(victims);
        victims.raw.page_count -= 1;
    }
};

struct RemembersWhatIsVoid : Oldest {
    void reset(uint32_t) {}
};

struct DependsOnWhichObjectItIs : Oldest {
    static inline uint32_t alive = 0;
    const uint32_t number = alive++;
    ~DependsOnWhichObjectItIs() { alive -= 1; }
    void choose(Victims& victims) {
        Oldest::choose(victims);
        if (number) std::reverse(victims.raw.pages, victims.raw.pages + victims.raw.page_count);
    }
};

struct KeepsThePages : Oldest { // and turns round where the last one is not as it was
    const pb_kv_page* last = nullptr;
    uint64_t block = 0;
    void cached(const pb_kv_page& p) {
        Oldest::cached(p);
        last = &p;
        block = p.block;
    }
    void choose(Victims& victims) {
        Oldest::choose(victims);
        if (last && last->block != block) std::reverse(victims.raw.pages, victims.raw.pages + victims.raw.page_count);
    }
};

struct FailsOnNoChanges : patchbay::detail::KvPolicyTable<Oldest> {
    static pb_status update(void* self, const pb_kv_pages* pages) {
        return pages->page_count == 0 ? PB_INVALID : patchbay::detail::KvPolicyTable<Oldest>::update(self, pages);
    }
    static constexpr pb_kv_policy table{sizeof(pb_kv_policy), 0, adopt, update, choose};
};

// Records read as if they were as long as its own.
template <class F>
pb_status by_own_sizeof(const pb_kv_pages* pages, F&& use) {
    pb_kv_pages own = *pages;
    own.page_stride = sizeof(pb_kv_page);
    std::vector<pb_kv_page> known; // of whose ids it can be sure
    for (uint32_t i = 0; i < own.page_count; ++i)
        if (own.pages[i].page < own.total_pages) known.push_back(own.pages[i]);
    own.pages = known.data();
    own.page_count = static_cast<uint32_t>(known.size());
    return use(&own);
}

struct OwnSizeof : patchbay::detail::KvPolicyTable<Oldest> {
    static pb_status update(void* self, const pb_kv_pages* pages) {
        return by_own_sizeof(pages, [&](const pb_kv_pages* own) { return KvPolicyTable::update(self, own); });
    }
    static constexpr pb_kv_policy table{sizeof(pb_kv_policy), 0, adopt, update, choose};
};

struct AdoptsByOwnSizeof : patchbay::detail::KvPolicyTable<Oldest> {
    static pb_status adopt(void* self, const pb_kv_pages* pages) {
        return by_own_sizeof(pages, [&](const pb_kv_pages* own) { return KvPolicyTable::adopt(self, own); });
    }
    static constexpr pb_kv_policy table{sizeof(pb_kv_policy), 0, adopt, update, choose};
};

struct ForgetsWhatItAdopts : patchbay::detail::KvPolicyTable<Oldest> {
    static pb_status adopt(void* self, const pb_kv_pages* pages) {
        pb_kv_pages none = *pages;
        none.page_count = 0;
        return KvPolicyTable::adopt(self, &none);
    }
    static constexpr pb_kv_policy table{sizeof(pb_kv_policy), 0, adopt, update, choose};
};

template <class T, class Table = patchbay::detail::KvPolicyTable<T>>
constexpr pb_component component(const char* name) {
    return patchbay::detail::component<T, Table>(
        PB_KV_POLICY, PB_KV_POLICY_REVISION,
        {.name = name, .version = "1.0.0", .summary = "for the tests of the probe"});
}

}  // namespace

PATCHBAY_PLUGIN(component<Oldest>("healthy"), component<Oldest, FailsOnNoChanges>("fails_on_no_changes"),
                component<WritesAPageTooMany>("writes_a_page_too_many"),
                component<NamesWhatIsUsed>("names_what_is_used"), component<NamesOneTwice>("names_one_twice"),
                component<NamesOneTooFew>("names_one_too_few"),
                component<RemembersWhatIsVoid>("remembers_what_is_void"),
                component<Oldest, OwnSizeof>("trusts_its_own_sizeof"),
                component<Oldest, AdoptsByOwnSizeof>("adopts_by_its_own_sizeof"),
                component<Oldest, ForgetsWhatItAdopts>("forgets_what_it_adopts"),
                component<DependsOnWhichObjectItIs>("depends_on_which_object_it_is"),
                component<KeepsThePages>("keeps_the_pages"))
