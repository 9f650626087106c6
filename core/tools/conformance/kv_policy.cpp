// The checks of a kv_policy: sequences come, share prefixes, and go; where pages run out the policy is asked.
#include <algorithm>
#include <set>
#include <utility>

#include "conformance/check.hpp"
#include "conformance/noise.hpp"

namespace patchbay::conformance {
namespace {

constexpr uint32_t kPages = 40, kBlockSize = 16;

struct Run {
    std::vector<std::vector<uint32_t>> choices;
    // The first breach of each rule; empty: none.
    std::string past, stranger, twice, few;
};

// A prefix cache in small, which plays the host. It goes on where the policy is wrong, as a host does.
class World {
  public:
    // extra: bytes that a record is longer than this host's.
    World(const host::Component& component, LentMemory& lent, size_t extra = 0)
        : component_(component), lent_(lent), extra_(extra), pages_(kPages) {}

    Result<Run> live(uint32_t steps) {
        PB_CHECK(adopt({}));
        for (uint32_t i = 0; i < steps; ++i) {
            now_us_ += 1000;
            if (sequences_.size() > 3 || (noise_.one_in(3) && !sequences_.empty())) end();
            else PB_CHECK(begin());
        }
        return run_;
    }
    Result<> adopt(const std::vector<pb_kv_page>& pages) {
        pb_kv_pages in = wire(pages);
        const Result<> done = host::checked<&pb_kv_policy::adopt>(component_, lent_.lend(in));
        return ended(done);
    }
    Result<std::vector<uint32_t>> choose(uint32_t count) {
        if (!changes_.empty()) PB_CHECK(update());
        pb_kv_choice wanted = sized<pb_kv_choice>();
        std::vector<uint32_t> none(count, UINT32_MAX);
        wanted.max_pages = count;
        wanted.pages = lent_.lend(none);
        wanted.now_us = now_us_;
        pb_kv_choice* const choice = lent_.lend(wanted);
        const Result<> done = host::checked<&pb_kv_policy::choose>(component_, choice);
        if (choice->page_count > count)
            note(run_.past, "it counts " + std::to_string(choice->page_count) + " pages, expected at most " +
                                std::to_string(count));
        const std::vector<uint32_t> out(wanted.pages, wanted.pages + std::min(choice->page_count, count));
        PB_CHECK(ended(done));
        return out;
    }

    // With all that happened since the last one, and `also`.
    Result<> update(const std::vector<pb_kv_page>& also = {}) {
        changes_.insert(changes_.end(), also.begin(), also.end());
        pb_kv_pages in = wire(std::exchange(changes_, {}));
        const Result<> done = host::checked<&pb_kv_policy::update>(component_, lent_.lend(in));
        return ended(done);
    }

  private:
    struct Page {
        uint32_t references = 0, parent = 0, hits = 0, position = 0; // parent: plus one
        uint64_t block = 0; // 0: it is empty
    };

    static void note(std::string& breach, const std::string& what) {
        if (breach.empty()) breach = what;
    }
    Result<> ended(const Result<>& done) {
        if (!lent_.end_call()) note(run_.past, "it wrote past the end of its buffers");
        return done;
    }
    pb_kv_pages wire(const std::vector<pb_kv_page>& pages) {
        const size_t stride = sizeof(pb_kv_page) + extra_;
        std::vector<uint64_t> bytes(pages.size() * stride / sizeof(uint64_t), 0xABABABABABABABAB);
        for (size_t i = 0; i < pages.size(); ++i) write_row(bytes.data(), i, stride, as_words(pages[i]));
        pb_kv_pages out = sized<pb_kv_pages>();
        out.page_stride = static_cast<uint32_t>(stride);
        out.page_count = static_cast<uint32_t>(pages.size());
        out.total_pages = kPages;
        out.block_size = kBlockSize;
        out.pages = reinterpret_cast<const pb_kv_page*>(lent_.lend(bytes));
        return out;
    }
    struct Words {
        uint64_t all[sizeof(pb_kv_page) / sizeof(uint64_t)];
    };
    static Words as_words(const pb_kv_page& page) { return widened<Words>(&page, sizeof page); }
    static void write_row(uint64_t* first, size_t i, size_t stride, const Words& words) {
        std::copy(std::begin(words.all), std::end(words.all), first + i * stride / sizeof(uint64_t));
    }
    void change(uint32_t page, pb_kv_change what) {
        const Page& p = pages_[page];
        pb_kv_page out{page, what, 0, 0, 0, 0, 0, 0};
        if (what == PB_KV_CACHED) out = {page, what, p.block, now_us_, p.parent, p.position, p.hits, 0};
        changes_.push_back(out);
    }
    bool is_cached(uint32_t page) const { return pages_[page].block != 0 && pages_[page].references == 0; }

    // A sequence that shares the path to some page that is in the cache, and adds pages of its own.
    Result<> begin() {
        std::vector<uint32_t> path;
        for (uint32_t at = noise_.below(kPages) + 1; at > 0 && pages_[at - 1].block != 0; at = pages_[at - 1].parent)
            path.insert(path.begin(), at - 1);
        for (const uint32_t page : path) {
            if (is_cached(page)) change(page, PB_KV_USED);
            pages_[page].references += 1;
            pages_[page].hits += 1;
        }
        const uint32_t own = noise_.between(1, 6);
        PB_CHECK(make_room(own));
        for (uint32_t i = 0; i < own; ++i) {
            const auto empty = std::ranges::find(pages_, uint64_t{0}, &Page::block);
            if (empty == pages_.end()) break; // all are held
            const auto page = static_cast<uint32_t>(empty - pages_.begin());
            *empty = {1, path.empty() ? 0 : path.back() + 1, 0, static_cast<uint32_t>(path.size()) * kBlockSize,
                      ++blocks_};
            path.push_back(page);
        }
        sequences_.push_back(std::move(path));
        return {};
    }
    void end() {
        const size_t which = noise_.below(static_cast<uint32_t>(sequences_.size()));
        const std::vector<uint32_t> path = std::move(sequences_[which]);
        sequences_.erase(sequences_.begin() + static_cast<ptrdiff_t>(which));
        for (size_t i = path.size(); i-- > 0;) {
            if (--pages_[path[i]].references > 0) continue;
            if (noise_.one_in(16)) remove(path[i]); // as after a write into it: it is never cached
            else change(path[i], PB_KV_CACHED), order_.push_back(path[i]);
        }
    }
    void remove(uint32_t page) {
        for (Page& p : pages_)
            if (p.parent == page + 1) p.parent = 0;
        pages_[page] = {};
        change(page, PB_KV_REMOVED);
    }
    Result<> make_room(uint32_t wanted) {
        const auto empty = static_cast<uint32_t>(std::ranges::count(pages_, uint64_t{0}, &Page::block));
        uint32_t cached = 0;
        for (uint32_t page = 0; page < kPages; ++page) cached += is_cached(page);
        const uint32_t count = std::min(wanted - std::min(wanted, empty), cached);
        if (count == 0) return {};
        PB_TRY(std::vector<uint32_t> chosen, choose(count));
        run_.choices.push_back(chosen);
        check(chosen, count);
        for (uint32_t left = count; left > 0; --left) { // the oldest where the policy is wrong
            std::erase_if(chosen, [&](uint32_t p) { return p >= kPages || !is_cached(p); });
            std::erase_if(order_, [&](uint32_t p) { return !is_cached(p); });
            const uint32_t victim = chosen.empty() ? order_.front() : chosen.front();
            remove(victim);
        }
        return {};
    }
    void check(const std::vector<uint32_t>& chosen, uint32_t wanted) {
        uint32_t cached = 0;
        for (uint32_t page = 0; page < kPages; ++page) cached += is_cached(page);
        const std::string inputs = " (choice " + std::to_string(run_.choices.size()) + ": " + std::to_string(wanted) +
                                   " pages wanted, " + std::to_string(cached) + " of " + std::to_string(kPages) +
                                   " cached)";
        std::set<uint32_t> seen;
        for (const uint32_t page : chosen) {
            const std::string text = "it names page " + std::to_string(page);
            if (page >= kPages || !is_cached(page)) note(run_.stranger, text + ", which is not cached" + inputs);
            if (!seen.insert(page).second) note(run_.twice, text + " twice" + inputs);
        }
        if (chosen.size() < wanted)
            note(run_.few, "it names " + std::to_string(chosen.size()) + " pages, fewer than are wanted" + inputs);
    }

    const host::Component& component_;
    LentMemory& lent_;
    const size_t extra_;
    Noise noise_{11};
    std::vector<Page> pages_;
    std::vector<std::vector<uint32_t>> sequences_; // pages of each
    std::vector<uint32_t> order_;                  // of pages, as they came to be cached
    std::vector<pb_kv_page> changes_;
    uint64_t blocks_ = 0, now_us_ = 0;
    Run run_;
};

constexpr uint32_t kSteps = 400;
constexpr size_t kLonger = 24; // bytes that a newer host's record is longer

Result<Run> run(Subject& subject, LentMemory& lent, size_t extra = 0) {
    PB_TRY(auto component, subject.make());
    return World(*component, lent, extra).live(kSteps);
}
Result<Run> run(Subject& subject) { return run(subject, subject.lent()); }

Outcome answers(Subject& subject) {
    PB_TRY(auto component, subject.make());
    World world(*component, subject.lent());
    PB_CHECK(world.adopt({}));
    PB_CHECK(world.update());
    PB_CHECK(world.live(kSteps));
    PB_CHECK(world.update());
    return {};
}

Outcome breach_of(Subject& subject, std::string Run::*rule) {
    PB_TRY(const Run done, run(subject));
    if (!(done.*rule).empty()) return fail(done.*rule);
    return {};
}
Outcome bounds(Subject& subject) { return breach_of(subject, &Run::past); }
Outcome cached(Subject& subject) { return breach_of(subject, &Run::stranger); }
Outcome unique(Subject& subject) { return breach_of(subject, &Run::twice); }
Outcome enough(Subject& subject) { return breach_of(subject, &Run::few); }

// What it knew before is void, and what comes with the adopt is as good as if it came in an update.
Outcome adopts_records(Subject& subject, size_t extra) {
    PB_TRY(auto fresh, subject.make());
    PB_TRY(auto component, subject.make());
    std::vector<pb_kv_page> all;
    for (uint32_t i = 0; i < 9; ++i) all.push_back({i * 4, PB_KV_CACHED, 1000 + i, i, i > 0 ? i * 4 - 3 : 0, 0, i, 0});
    World updated(*fresh, subject.lent()), before(*component, subject.lent());
    World world(*component, subject.lent(), extra);
    PB_CHECK(updated.adopt({}));
    PB_CHECK(updated.update(all));
    PB_TRY(const std::vector<uint32_t> expected, updated.choose(9));
    PB_CHECK(before.live(kSteps));
    PB_CHECK(world.adopt(all));
    PB_TRY(const std::vector<uint32_t> chosen, world.choose(9));
    const std::string after = "after an adopt of pages 0, 4, … 32 ";
    for (const uint32_t page : chosen)
        if (std::ranges::find(all, page, &pb_kv_page::page) == all.end())
            return fail(after + "it names page " + std::to_string(page));
    if (chosen.size() < expected.size())
        return fail(after + "it names " + std::to_string(chosen.size()) + " pages, expected " +
                    std::to_string(expected.size()) + " as after an update with them");
    return {};
}

Outcome adopts(Subject& subject) {
    if (Outcome o = adopts_records(subject, 0); o.what != Outcome::What::kOk) return o;
    const Outcome longer = adopts_records(subject, kLonger);
    if (longer.what == Outcome::What::kOk) return {};
    return fail(longer.reason + ", where the host's records are longer: see page_stride");
}

Outcome compared(const std::vector<std::vector<uint32_t>>& a, const std::vector<std::vector<uint32_t>>& b,
                 const char* where) {
    if (a == b) return {};
    return fail(std::string("it chooses other pages ") + where);
}

Outcome stride(Subject& subject) {
    PB_TRY(const Run a, run(subject));
    PB_TRY(const Run b, run(subject, subject.lent(), kLonger));
    return compared(a.choices, b.choices, "where the host's records are longer: see page_stride");
}

Outcome repeatable(Subject& subject) {
    PB_TRY(auto first, subject.make());
    PB_TRY(auto second, subject.make());
    PB_TRY(const Run a, World(*first, subject.lent()).live(kSteps));
    PB_TRY(const Run b, World(*second, subject.lent()).live(kSteps));
    return compared(a.choices, b.choices, "in a second run of the same");
}

Outcome lifetimes(Subject& subject) {
    LentMemory left(LentMemory::After::kLeft);
    PB_TRY(const Run a, run(subject, left));
    PB_TRY(const Run b, run(subject));
    return compared(a.choices, b.choices, "where pages are overwritten after their call: it keeps a pointer");
}

constexpr Check kChecks[] = {
    {"kv_policy.answers", "takes what is cached, also where that is nothing, and chooses without an error", answers},
    {"kv_policy.bounds", "writes and counts at most max_pages", bounds},
    {"kv_policy.cached", "names cached pages only", cached},
    {"kv_policy.unique", "names a page once", unique},
    {"kv_policy.enough", "names as many as are wanted", enough},
    {"kv_policy.adopts", "knows, after an adopt, the pages that came with it and no others", adopts},
    {"kv_policy.stride", "reads records by the stride that comes with them", stride},
    {"kv_policy.repeatable", "chooses the same where the same happened", repeatable},
    {"kv_policy.lifetimes", "keeps no pointer past the call that it came with", lifetimes},
};

Result<> exercise(Subject& subject, const host::Component& component) {
    PB_CHECK(World(component, subject.lent()).live(kSteps));
    return {};
}

}  // namespace

const Suite kKvPolicy{kChecks, exercise};

}  // namespace patchbay::conformance
