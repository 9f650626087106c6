#include "grammar/machine.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace patchbay::grammar {
namespace {

constexpr size_t kMaxItems = 2000; // of a configuration

uint64_t mixed(uint64_t h, uint64_t x) { // splitmix64's finaliser
    h = (h ^ x) + 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
    h = (h ^ h >> 27) * 0x94D049BB133111EBu;
    return h ^ h >> 31;
}

uint64_t packed(Machine::Item i) { return uint64_t{i.state} << 32 | i.stack; }

}  // namespace

Machine::Machine(const Automaton& a) : automaton_(a), classes_(a.class_count()) {
    configs_.push_back({{0, 0}, {0, 0}, false});
    next_.assign(classes_, kDead);
    after_.push_back(kDead);
}

ConfigId Machine::of(Item i) { return intern({i}); }

ConfigId Machine::after(StackId s) {
    if (after_[s] == kUnknown) {
        const ConfigId c = intern({top(s)});
        if (!budget_.fault().empty()) return kDead;
        after_[s] = c;
    }
    return after_[s];
}

StackId Machine::push(StateId to, StackId parent) {
    const StackId s = stacks_.push(to, parent);
    if (s == after_.size()) { // a new one
        if (stacks_[s].depth > Stacks::kMaxDepth)
            budget_.set_fault("the text nests deeper than " + std::to_string(Stacks::kMaxDepth));
        after_.push_back(kUnknown);
    }
    return s;
}

ConfigId Machine::compute(ConfigId c, uint32_t byte_class) {
    const uint8_t byte = automaton_.byte_of(byte_class);
    std::vector<Item> kernel;
    for (const Item item : span(configs_[c].active)) {
        const auto edges = automaton_.edges(automaton_[item.state]);
        if (!budget_.spend(1 + edges.size())) return kDead;
        for (const Automaton::Edge& e : edges)
            if (e.low <= byte && byte <= e.high) kernel.push_back({e.to, item.stack});
    }
    const ConfigId to = intern(std::move(kernel));
    if (budget_.fault().empty()) next_[size_t{c} * classes_ + byte_class] = to;
    return to;
}

ConfigId Machine::intern(std::vector<Item> kernel) {
    if (kernel.empty()) return kDead;
    std::sort(kernel.begin(), kernel.end());
    kernel.erase(std::unique(kernel.begin(), kernel.end()), kernel.end());
    uint64_t hash = kernel.size();
    for (const Item i : kernel) hash = mixed(hash, packed(i));
    const auto [begin, end] = config_ids_.equal_range(hash);
    for (auto at = begin; at != end; ++at)
        if (std::ranges::equal(this->kernel(at->second), kernel)) return at->second;
    if (bytes() > 2 * kMaxBytes) {
        budget_.set_fault("the grammar is too ambiguous here: a mask takes more than " +
                          std::to_string(2 * kMaxBytes >> 20) + " MiB");
        return kDead;
    }

    // The closure: calls entered, ends left.
    std::vector<Item> all = kernel, active;
    std::set<uint64_t> seen; // of a large one
    bool ends = false;
    const auto visit = [&](Item i) {
        constexpr size_t kFew = 16;
        if (all.size() <= kFew && seen.empty()) {
            if (std::find(all.begin(), all.end(), i) == all.end()) all.push_back(i);
            return;
        }
        if (seen.empty())
            for (const Item known : all) seen.insert(packed(known));
        if (seen.insert(packed(i)).second) all.push_back(i);
    };
    for (size_t n = 0; n < all.size(); ++n) {
        const Item i = all[n];
        const Automaton::State& state = automaton_[i.state];
        if (all.size() > kMaxItems)
            budget_.set_fault("the grammar is too ambiguous here: more than " + std::to_string(kMaxItems) +
                              " ways to read the text so far");
        if (!budget_.spend(1 + state.calls_end - state.calls)) return kDead;
        if (state.edges != state.edges_end) active.push_back(i);
        if (state.ends && i.stack == 0) ends = true;
        if (state.ends && i.stack != 0) visit(top(i.stack));
        for (const Automaton::Call& c : automaton_.calls(state)) // a call that is the last thing leaves no trace
            visit({c.callee, automaton_[c.to].only_ends() ? i.stack : push(c.to, i.stack)});
    }
    const auto id = static_cast<ConfigId>(configs_.size());
    const auto store = [&](const std::vector<Item>& items) {
        const auto from = static_cast<uint32_t>(items_.size());
        items_.insert(items_.end(), items.begin(), items.end());
        return Part{from, static_cast<uint32_t>(items_.size())};
    };
    const Part k = store(kernel), a = store(active);
    configs_.push_back({k, a, ends});
    next_.resize(next_.size() + classes_, kUnknown);
    config_ids_.emplace(hash, id);
    return id;
}

void Machine::adopt(const Machine& other, std::span<ConfigId> configs) {
    std::unordered_map<StackId, StackId> known{{0, 0}}; // of the other's stacks
    for (ConfigId& c : configs) {
        std::vector<Item> kernel;
        for (const Item i : other.kernel(c)) {
            std::vector<StackId> path;
            StackId at = i.stack;
            for (; !known.contains(at); at = other.stacks_[at].parent) path.push_back(at);
            StackId stack = known.at(at);
            for (auto next = path.rbegin(); next != path.rend(); ++next)
                known[*next] = stack = push(other.stacks_[*next].to, stack);
            kernel.push_back({i.state, stack});
        }
        c = intern(std::move(kernel));
    }
}

uint64_t Machine::bytes() const {
    constexpr uint64_t kNode = 48; // of a hash table's entry, about
    return items_.size() * sizeof(Item) + configs_.size() * (sizeof(Config) + kNode) + next_.size() * sizeof(uint32_t) +
           stacks_.size() * (sizeof(Stacks::Entry) + sizeof(ConfigId) + kNode);
}

}  // namespace patchbay::grammar
