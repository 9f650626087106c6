#include "grammar/dfa.hpp"

#include <algorithm>
#include <map>

#include "base/refusals.hpp"

namespace patchbay::grammar {
namespace {

constexpr uint32_t kNowhere = UINT32_MAX;

enum class Keep { kBoth, kOnlyFirst };

// Runs both at once. kOnlyFirst: the second may have ended.
Result<Dfa> product(const Dfa& a, const Dfa& b, Keep keep, Work& work) {
    Dfa out;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> known;
    std::vector<std::pair<uint32_t, uint32_t>> open;
    const auto number = [&](uint32_t x, uint32_t y) {
        const auto [at, fresh] = known.try_emplace({x, y}, static_cast<uint32_t>(out.states.size()));
        if (fresh) {
            const bool in_b = y != kNowhere && b.states[y].accepts;
            out.states.push_back({{}, a.states[x].accepts && (keep == Keep::kBoth ? in_b : !in_b)});
            open.emplace_back(x, y);
        }
        return at->second;
    };
    number(0, b.states.empty() ? kNowhere : 0);
    while (!open.empty()) {
        const auto [x, y] = open.back();
        open.pop_back();
        std::vector<Dfa::Edge> edges;
        for (const Dfa::Edge& e : a.states[x].edges) {
            PB_CHECK(work.spend(1));
            uint32_t from = e.low;
            if (y != kNowhere)
                for (const Dfa::Edge& f : b.states[y].edges) {
                    PB_CHECK(work.spend(1));
                    if (f.high < from) continue;
                    if (f.low > e.high) break;
                    const uint32_t low = std::max<uint32_t>(from, f.low), high = std::min(e.high, f.high);
                    if (keep == Keep::kOnlyFirst && low > from)
                        edges.push_back(
                            {static_cast<uint8_t>(from), static_cast<uint8_t>(low - 1), number(e.to, kNowhere)});
                    edges.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high), number(e.to, f.to)});
                    from = high + 1;
                }
            if (keep == Keep::kOnlyFirst && from <= e.high)
                edges.push_back({static_cast<uint8_t>(from), e.high, number(e.to, kNowhere)});
        }
        out.states[known.at({x, y})].edges = std::move(edges);
    }
    return out;
}

}  // namespace

Result<> Work::spend(uint64_t n) {
    if (n > left_) {
        left_ = 0;
        return invalid("it takes more than " + std::to_string(max_steps_) +
                       " steps to compile (a smaller repetition?)");
    }
    left_ -= n;
    return {};
}

bool Dfa::matches(std::string_view text) const {
    if (states.empty()) return false;
    uint32_t at = 0;
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        const auto& edges = states[at].edges;
        const auto edge =
            std::find_if(edges.begin(), edges.end(), [&](const Edge& e) { return e.low <= byte && byte <= e.high; });
        if (edge == edges.end()) return false;
        at = edge->to;
    }
    return states[at].accepts;
}

bool Dfa::empty() const {
    if (states.empty()) return true;
    std::vector<uint32_t> open{0};
    std::vector<bool> seen(states.size());
    seen[0] = true;
    while (!open.empty()) {
        const uint32_t at = open.back();
        open.pop_back();
        if (states[at].accepts) return false;
        for (const Edge& e : states[at].edges)
            if (!seen[e.to]) {
                seen[e.to] = true;
                open.push_back(e.to);
            }
    }
    return true;
}

Result<Dfa> common(const Dfa& a, const Dfa& b, Work& work) {
    if (a.states.empty() || b.states.empty()) return Dfa{};
    return product(a, b, Keep::kBoth, work);
}

Result<Dfa> without(const Dfa& a, const Dfa& excluded, Work& work) {
    if (a.states.empty()) return Dfa{};
    return product(a, excluded, Keep::kOnlyFirst, work);
}

}  // namespace patchbay::grammar
