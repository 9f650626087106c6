#include "grammar/lookahead.hpp"

#include <array>
#include <map>

namespace patchbay::grammar {
namespace {

constexpr int kMaxRounds = 16; // of going over all states; a grammar that takes more gets the safe answer

using Hash = std::array<uint64_t, 2>; // of what a state reads; two that differ do so but for one chance in 2^128

uint64_t mixed(uint64_t h, uint64_t x, uint64_t factor) {
    h = (h ^ x) * factor;
    return h ^ h >> 29;
}

Hash mixed(const Hash& h, uint64_t x) {
    return {mixed(h[0], x, 0x9E3779B97F4A7C15u), mixed(h[1], x, 0xD6E8FEB86659FD93u)};
}

}  // namespace

Lookahead::Lookahead(const Automaton& a) {
    rules_.resize(a.state_count());
    std::map<StateId, uint32_t> numbers;
    for (StateId s = 0; s < a.state_count(); ++s)
        rules_[s] = numbers.try_emplace(a[s].rule, static_cast<uint32_t>(numbers.size())).first->second;
    after_rule_.resize(numbers.size());
    find_after_rule(a);
    find_alike(a);
}

void Lookahead::find_after_rule(const Automaton& a) {
    const auto count = static_cast<StateId>(a.state_count());
    may_end_.resize(count);
    std::vector<Bytes> first(count);
    for (StateId s = 0; s < count; ++s) {
        may_end_[s] = a[s].ends;
        for (const Automaton::Edge& e : a.edges(a[s]))
            for (uint32_t byte = e.low; byte <= e.high; ++byte) first[s].set(byte);
    }
    bool changed = true;
    const auto rounds = [&](const auto& visit) { // until nothing changes; false: that takes too long
        changed = true;
        for (int round = 0; changed; ++round) {
            if (round == kMaxRounds) return false;
            changed = false;
            for (StateId i = count; i-- > 0;) visit(i); // rules are called by those before them, mostly
        }
        return true;
    };
    const auto grow = [&](Bytes& bytes, const Bytes& more) {
        if ((more & ~bytes).none()) return;
        bytes |= more;
        changed = true;
    };
    const bool known = rounds([&](StateId s) {
        for (const Automaton::Call& c : a.calls(a[s])) {
            grow(first[s], first[c.callee]);
            if (!may_end_[c.callee]) continue;
            grow(first[s], first[c.to]);
            if (may_end_[c.to] && !may_end_[s]) may_end_[s] = changed = true;
        }
    });
    const bool complete = known && rounds([&](StateId i) {
                              const StateId s = count - 1 - i; // callers first
                              for (const Automaton::Call& c : a.calls(a[s])) {
                                  Bytes& bytes = after_rule_[rules_[c.callee]];
                                  grow(bytes, first[c.to]);
                                  if (may_end_[c.to]) grow(bytes, after_rule_[rules_[s]]);
                              }
                          });
    if (!known) may_end_.assign(count, true);
    if (!complete) after_rule_.assign(after_rule_.size(), Bytes().set());
}

// Round k distinguishes states that texts of k bytes distinguish: every edge and every call takes at least one; a state
// with a call that may take none is like no other.
void Lookahead::find_alike(const Automaton& a) {
    const auto count = static_cast<StateId>(a.state_count());
    std::vector<Hash> now(count), next(count);
    const auto begin = [&](StateId s) {
        Hash h{1, 2};
        return mixed(mixed(h, a[s].rule), a[s].ends);
    };
    for (StateId s = 0; s < count; ++s) now[s] = begin(s);
    for (uint32_t round = 0; round < kDepth; ++round) {
        for (StateId s = 0; s < count; ++s) {
            Hash h = begin(s);
            const auto add = [&](uint64_t what, StateId to) {
                h = mixed(h, what);
                h = {mixed(h[0], now[to][0], 0xA0761D6478BD642Fu), mixed(h[1], now[to][1], 0xE7037ED1A0B428DBu)};
            };
            for (const Automaton::Edge& e : a.edges(a[s])) add(uint64_t{1} << 32 | e.low << 8 | e.high, e.to);
            for (const Automaton::Call& c : a.calls(a[s])) {
                add(uint64_t{2} << 32 | c.callee, c.to);
                if (may_end_[c.callee]) h = mixed(h, uint64_t{3} << 32 | s);
            }
            next[s] = h;
        }
        std::swap(now, next);
    }
    alike_.resize(count);
    shared_.resize(count);
    std::map<Hash, StateId> firsts;
    for (StateId s = 0; s < count; ++s) {
        alike_[s] = firsts.try_emplace(now[s], s).first->second;
        if (alike_[s] != s) shared_[s] = shared_[alike_[s]] = true;
    }
}

}  // namespace patchbay::grammar
