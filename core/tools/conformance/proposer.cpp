// The proposer's checks. Its guesses may be wrong; what it writes may not be.
#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

#include "conformance/check.hpp"
#include "conformance/noise.hpp"

namespace patchbay::conformance {
namespace {

constexpr uint32_t kMaxDrafts = 5; // one after the other
constexpr uint32_t kMaxPaths = 3;  // of a tree
constexpr int32_t kGuard = -77;     // what no proposer writes

struct History {
    std::vector<int32_t> tokens;
    uint32_t max_drafts;
};

// "row 3 (17 tokens, the newest 5; max_drafts 4)"
std::string name_of(size_t i, const History& h) {
    return "row " + std::to_string(i) + " (" + std::to_string(h.tokens.size()) + " tokens, the newest " +
           std::to_string(h.tokens.back()) + "; max_drafts " + std::to_string(h.max_drafts) + ")";
}

// Repetitive ones, for plugins that look back; of one token, and with room for none.
std::vector<History> histories() {
    Noise noise(5);
    std::vector<History> out = {{{3}, kMaxDrafts}, {{7}, kMaxDrafts}, {{7, 7}, 0}};
    for (uint32_t i = 0; i < 24; ++i) {
        History h{{}, i % (kMaxDrafts + 1)};
        for (uint32_t k = noise.between(2, 120); k > 0; --k)
            h.tokens.push_back(static_cast<int32_t>(noise.below(2 + i / 2)));
        out.push_back(std::move(h));
    }
    return out;
}

enum class Asked { kChains, kTrees, kProbabilities }; // kProbabilities: as for verification by rejection

struct Proposed {
    std::vector<int32_t> drafts; // (rows, room)
    std::vector<int32_t> parents; // likewise, of trees
    std::vector<uint32_t> counts;
    std::vector<float> probs;    // (rows, room, vocab), where asked
    std::vector<uint8_t> drawn;  // (rows, room)
    size_t room = kMaxDrafts;
    bool within_bounds = true;
};

constexpr size_t kGuards = 16;
constexpr float kGuardProb = -7.5f;
constexpr uint8_t kGuardDrawn = 77;

template <class T>
bool guarded(const std::vector<T>& v, T guard) {
    return v.empty() || std::all_of(v.end() - kGuards, v.end(), [&](T x) { return x == guard; });
}

// What is lent for the call lies in `memory`; null: in the subject's. extra: bytes by which the host's rows are longer
// than the plugin's.
Result<Proposed> propose(Subject& subject, const host::Component& component, const std::vector<History>& histories,
                         Asked asked = Asked::kChains, LentMemory* memory = nullptr, uint32_t extra = 0) {
    const size_t n = histories.size();
    LentMemory& lent = memory ? *memory : subject.lent();
    std::vector<pb_propose_row> rows;
    for (size_t i = 0; i < n; ++i)
        rows.push_back({100 + i, lent.lend(histories[i].tokens), static_cast<uint32_t>(histories[i].tokens.size()),
                        histories[i].max_drafts, asked == Asked::kTrees ? kMaxPaths : 1, 0});
    Proposed out;
    if (asked == Asked::kTrees) out.room = kMaxDrafts * kMaxPaths;
    out.drafts.assign(n * out.room + kGuards, kGuard);
    out.counts.assign(n + kGuards, 0);
    std::fill(out.counts.begin() + static_cast<ptrdiff_t>(n), out.counts.end(), static_cast<uint32_t>(kGuard));
    if (asked == Asked::kTrees) {
        out.parents.assign(n * out.room + kGuards, kGuard);
        for (size_t k = 0; k < n * out.room; ++k) out.parents[k] = static_cast<int32_t>(k % out.room) - 1;
    }
    const uint32_t row_stride = sizeof(pb_propose_row) + extra;
    pb_propose_batch b{sizeof b,
                       static_cast<uint32_t>(n),
                       row_stride,
                       static_cast<uint32_t>(out.room),
                       lent.lend_apart(rows, row_stride, std::byte{0}),
                       out.drafts.data(),
                       out.counts.data(),
                       out.parents.empty() ? nullptr : out.parents.data()};
    if (asked == Asked::kProbabilities) {
        out.probs.assign(n * kMaxDrafts * MadeUpModel::kVocab, NAN);
        out.drawn.assign(n * kMaxDrafts, 0);
        out.probs.insert(out.probs.end(), kGuards, kGuardProb);
        out.drawn.insert(out.drawn.end(), kGuards, kGuardDrawn);
        b.probs = out.probs.data();
        b.drawn = out.drawn.data();
        b.vocab_size = MadeUpModel::kVocab;
    }
    std::unordered_map<uint64_t, uint32_t> max_drafts;
    for (const pb_propose_row& row : rows) max_drafts[row.id] = row.max_drafts;
    subject.runner().enter(MadeUpModel::Call::kPropose, std::move(max_drafts));
    const pb_status status = subject.table<pb_proposer>().propose(component.self(), lent.lend(b));
    subject.runner().leave();
    PB_CHECK(component.check(status, "propose"));
    out.within_bounds = lent.end_call() && guarded(out.drafts, kGuard) && guarded(out.parents, kGuard) &&
                        guarded(out.counts, static_cast<uint32_t>(kGuard)) && guarded(out.probs, kGuardProb) &&
                        guarded(out.drawn, kGuardDrawn);
    out.probs.resize(out.probs.size() - (out.probs.empty() ? 0 : kGuards));
    out.drawn.resize(out.drawn.size() - (out.drawn.empty() ? 0 : kGuards));
    // A row without drafts owns no room: what lies there belongs to no row.
    for (size_t i = 0; i < n; ++i)
        if (histories[i].max_drafts == 0)
            out.within_bounds &= std::all_of(out.drafts.begin() + static_cast<ptrdiff_t>(i * out.room),
                                             out.drafts.begin() + static_cast<ptrdiff_t>((i + 1) * out.room),
                                             [](int32_t t) { return t == kGuard; });
    return out;
}

Outcome answers(Subject& subject) {
    PB_TRY(auto component, subject.make());
    PB_CHECK(propose(subject, *component, {}));
    PB_CHECK(propose(subject, *component, histories()));
    return {};
}

Outcome bounds(Subject& subject) {
    PB_TRY(auto component, subject.make());
    PB_TRY(const Proposed p, propose(subject, *component, histories()));
    PB_TRY(const Proposed trees, propose(subject, *component, histories(), Asked::kTrees));
    PB_TRY(const Proposed drawn, propose(subject, *component, histories(), Asked::kProbabilities));
    if (!p.within_bounds || !trees.within_bounds || !drawn.within_bounds)
        return fail("it wrote where no draft may go: past its buffers, or into a row with max_drafts 0");
    return {};
}

Outcome counts(Subject& subject) {
    PB_TRY(auto component, subject.make());
    const auto all = histories();
    PB_TRY(const Proposed p, propose(subject, *component, all));
    for (size_t i = 0; i < all.size(); ++i)
        if (p.counts[i] > all[i].max_drafts)
            return fail("it counts " + std::to_string(p.counts[i]) + " drafts in " + name_of(i, all[i]));
    return {};
}

Outcome tokens(Subject& subject) {
    PB_TRY(auto component, subject.make());
    const auto all = histories();
    PB_TRY(const Proposed p, propose(subject, *component, all));
    for (size_t i = 0; i < all.size(); ++i)
        for (uint32_t k = 0; k < std::min(p.counts[i], all[i].max_drafts); ++k)
            if (const int32_t t = p.drafts[i * kMaxDrafts + k]; t < 0)
                return fail("draft " + std::to_string(k) + " of " + name_of(i, all[i]) + " is token " +
                            std::to_string(t));
    return {};
}

// Where a draft was drawn, what it was drawn from is a distribution, and the draft possible.
Outcome probabilities(Subject& subject) {
    PB_TRY(auto component, subject.make());
    const auto all = histories();
    PB_TRY(const Proposed p, propose(subject, *component, all, Asked::kProbabilities));
    if (std::ranges::none_of(p.drawn, [](uint8_t drawn) { return drawn != 0; }))
        return Outcome::skip("none of its drafts is drawn at random");
    for (size_t i = 0; i < all.size(); ++i)
        for (uint32_t k = 0; k < std::min(p.counts[i], all[i].max_drafts); ++k) {
            const size_t at = i * kMaxDrafts + k;
            if (!p.drawn[at]) continue;
            const auto row = std::span(p.probs).subspan(at * MadeUpModel::kVocab, MadeUpModel::kVocab);
            const std::string who = "draft " + std::to_string(k) + " of " + name_of(i, all[i]);
            double sum = 0;
            for (const float x : row) sum += x >= 0 ? x : NAN;
            if (!(std::abs(sum - 1) < 1e-3)) return fail(who + " was drawn from what sums to " + std::to_string(sum));
            const auto token = static_cast<size_t>(p.drafts[at]);
            if (token >= row.size() || !(row[token] > 0))
                return fail(who + " is token " + std::to_string(p.drafts[at]) + ", which its probabilities exclude");
        }
    return {};
}

// Each draft hangs on one before it; where a proposer leaves parents alone, they are a chain.
Outcome trees(Subject& subject) {
    PB_TRY(auto component, subject.make());
    const auto all = histories();
    PB_TRY(const Proposed p, propose(subject, *component, all, Asked::kTrees));
    for (size_t i = 0; i < all.size(); ++i) {
        const uint32_t max_tokens = all[i].max_drafts * kMaxPaths;
        if (p.counts[i] > max_tokens)
            return fail("it counts " + std::to_string(p.counts[i]) + " drafts in " + name_of(i, all[i]) +
                        ", with room for " + std::to_string(max_tokens) + " on " + std::to_string(kMaxPaths) +
                        " paths");
        std::vector<uint32_t> depth(p.counts[i]);
        std::vector<bool> ends(p.counts[i], true);
        for (uint32_t k = 0; k < p.counts[i]; ++k) {
            const std::string who = "draft " + std::to_string(k) + " of " + name_of(i, all[i]);
            const int32_t parent = p.parents[i * p.room + k];
            if (parent < -1 || parent >= static_cast<int32_t>(k))
                return fail(who + " hangs on " + std::to_string(parent) + ", expected −1 or a draft before it");
            depth[k] = parent < 0 ? 1 : depth[static_cast<size_t>(parent)] + 1;
            if (parent >= 0) ends[static_cast<size_t>(parent)] = false;
            if (depth[k] > all[i].max_drafts)
                return fail(who + " comes " + std::to_string(depth[k]) +
                            " places after the newest token, expected at most " + std::to_string(all[i].max_drafts));
        }
        if (const auto paths = std::ranges::count(ends, true); paths > kMaxPaths)
            return fail(name_of(i, all[i]) + " has " + std::to_string(paths) + " paths, expected at most " +
                        std::to_string(kMaxPaths));
    }
    return {};
}

Outcome stride(Subject& subject) {
    PB_TRY(auto first, subject.make());
    PB_TRY(auto second, subject.make());
    PB_TRY(const Proposed exact, propose(subject, *first, histories()));
    PB_TRY(const Proposed longer, propose(subject, *second, histories(), Asked::kChains, nullptr, 48));
    if (exact.counts != longer.counts || exact.drafts != longer.drafts)
        return fail("it proposes otherwise when the host's records are larger: step by row_stride");
    return {};
}

Outcome lifetimes(Subject& subject) {
    LentMemory left(LentMemory::After::kLeft);
    PB_TRY(auto first, subject.make());
    PB_TRY(auto second, subject.make());
    auto all = histories();
    for (uint32_t k = 0; k < 4; ++k) {
        PB_TRY(const Proposed a, propose(subject, *first, all, Asked::kChains, &left));
        PB_TRY(const Proposed b, propose(subject, *second, all));
        if (a.counts != b.counts || a.drafts != b.drafts)
            return fail("it proposes otherwise where batches are overwritten after their call: it keeps a pointer");
        for (History& h : all) h.tokens.push_back(static_cast<int32_t>(k));
    }
    return {};
}

// Ids that it has never seen among them: a swap brings those.
Outcome notices(Subject& subject) {
    PB_TRY(auto component, subject.make());
    const auto& table = subject.table<pb_proposer>();
    if (!table.observe && !table.finished) return Outcome::skip("it has neither observe() nor finished()");
    PB_CHECK(propose(subject, *component, histories()));
    for (const uint64_t id : {uint64_t{101}, uint64_t{424242}}) {
        if (table.observe) table.observe(component->self(), id, 3, 1);
        if (table.finished) table.finished(component->self(), id);
    }
    PB_CHECK(propose(subject, *component, histories()));
    return {};
}

// A model that it has the host run.
Outcome runner(Subject& subject) {
    const uint32_t before = subject.runner().loads();
    PB_TRY(auto component, subject.make());
    if (subject.runner().loads() == before) return Outcome::skip("it loads no draft model");
    PB_CHECK(propose(subject, *component, histories()));
    PB_CHECK(propose(subject, *component, {}));
    if (!subject.runner().breach().empty()) return fail(subject.runner().breach());
    return {};
}

constexpr Check kChecks[] = {
    {"proposer.answers", "proposes for every batch without an error, the empty one too", answers},
    {"proposer.bounds", "writes within its buffers, and nothing into a row that wants no drafts", bounds},
    {"proposer.counts", "counts at most a row's max_drafts", counts},
    {"proposer.tokens", "proposes no negative token", tokens},
    {"proposer.trees", "hangs each draft on one before it, within max_drafts and max_paths", trees},
    {"proposer.probabilities", "says truly what its drafts were drawn from, where they are drawn", probabilities},
    {"proposer.notices", "hears of acceptance and ends, of unknown sequences too", notices},
    {"proposer.stride", "steps from row to row by row_stride", stride},
    {"proposer.lifetimes", "keeps no pointer past the call that it came with", lifetimes},
    {"proposer.runner", "has its model go on for rows of the batch only, once a pass, within max_drafts", runner},
};

Result<> exercise(Subject& subject, const host::Component& component) {
    PB_CHECK(propose(subject, component, histories()));
    return {};
}

}  // namespace

const Suite kProposer{kChecks, exercise};

}  // namespace patchbay::conformance
