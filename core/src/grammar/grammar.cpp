#include "grammar/grammar.hpp"

#include <algorithm>

#include "base/refusals.hpp"

namespace patchbay::grammar {
namespace {

enum class Below { kYes, kNo }; // whether a walk goes on below a node

}  // namespace

Grammar::Grammar(Automaton a, std::shared_ptr<const Vocabulary> v)
    : automaton_(std::move(a)),
      lookahead_(automaton_),
      vocabulary_(std::move(v)),
      machine_(std::make_shared<Machine>(automaton_)) {
    measure();
}

const std::shared_ptr<Machine>& Grammar::machine() {
    if (machine_->bytes() > kMaxMachineBytes) machine_ = std::make_shared<Machine>(automaton_);
    machine_->budget().refill();
    return machine_;
}

void Grammar::measure() {
    bytes_.store(token_bytes_ + machine_->bytes() + automaton_.bytes(), std::memory_order_relaxed);
}

// Reports each node below `node` to which its bytes lead from c, the configuration at the node, unless the one above
// it was to be the last of its branch.
template <class OnNode>
void Grammar::walk(Machine& m, const TokenTree& tree, uint32_t node, ConfigId c, const OnNode& on_node) {
    path_.resize(std::max<size_t>(path_.size(), tree.max_depth() + 1));
    path_[tree.depth(node)] = c;
    const uint32_t last = tree.end(node);
    uint32_t looked_at = 0;
    for (uint32_t n = node + 1; n < last;) {
        const uint32_t depth = tree.depth(n);
        const ConfigId to = m.step(path_[depth - 1], tree.byte(n));
        looked_at += 1;
        if (to == kDead) {
            n = tree.end(n);
            continue;
        }
        path_[depth] = to;
        n = on_node(n, to) == Below::kYes ? n + 1 : tree.end(n);
    }
    walked_ += looked_at;
    (void)m.budget().spend(looked_at / 8);
}

const Grammar::StateTokens& Grammar::tokens_of(Machine& m, StateId s) {
    const bool shared = lookahead_.has_likes(s);
    s = lookahead_.alike(s);
    const auto known = state_tokens_.find(s);
    if (known != state_tokens_.end()) return known->second;
    if (token_bytes_ > kMaxTokenBytes) {
        state_tokens_.clear();
        token_bytes_ = 0;
    }
    StateTokens out;
    const TokenTree& tree = vocabulary_->tree(Vocabulary::Place::kLater);
    const ConfigId c = m.of({s, 0});
    out.ends_at_once = m.ends(c);
    found_.clear();
    walk(m, tree, 0, c, [&](uint32_t n, ConfigId at) {
        const auto ids = tree.tokens(n);
        found_.insert(found_.end(), ids.begin(), ids.end());
        if (m.ends(at))
            for (uint32_t child = n + 1; child < tree.end(n); child = tree.end(child))
                if (lookahead_.after_rule(s)[tree.byte(child)]) out.after_rule.push_back(child);
        if (!shared || tree.depth(n) < Lookahead::kDepth) return Below::kYes;
        if (tree.end(n) > n + 1) out.deep.push_back(n);
        return Below::kNo;
    });
    if (found_.size() > vocabulary_->words()) {
        out.mask.assign(vocabulary_->words(), 0);
        for (const TokenId t : found_) out.mask[static_cast<size_t>(t) / 32] |= 1u << (t % 32);
    } else {
        out.ids = found_;
    }
    if (!m.budget().fault().empty()) return incomplete_;
    token_bytes_ += 4 * (out.mask.size() + out.ids.size() + out.after_rule.size() + out.deep.size()) + sizeof out;
    return state_tokens_.emplace(s, std::move(out)).first->second;
}

void Grammar::prepare(uint64_t nodes) {
    walked_ = 0;
    Machine& m = *machine();
    m.budget().refill(kPrepareWork); // for all of them
    for (StateId s = 0; s < automaton_.state_count() && walked_ < nodes; ++s) {
        (void)tokens_of(m, s);
        if (!m.budget().fault().empty() || token_bytes_ > kMaxTokenBytes || m.bytes() > kMaxMachineBytes) break;
    }
    m.budget().clear_fault(); // a text that needs this state reports it
    m.budget().refill();
    measure();
}

void Grammar::allow(Machine& m, ConfigId c, Vocabulary::Place place, std::span<uint32_t> mask) {
    std::ranges::fill(mask, 0u);
    const auto set = [&](TokenId t) { mask[static_cast<size_t>(t) / 32] |= 1u << (t % 32); };
    const TokenTree& tree = vocabulary_->tree(place);
    const auto set_all = [&](uint32_t n, ConfigId) {
        for (const TokenId t : tree.tokens(n)) set(t);
        return Below::kYes;
    };
    if (place == Vocabulary::Place::kFirst && vocabulary_->own_first()) {
        if (first_mask_.empty()) {
            walk(m, tree, 0, c, set_all);
            if (!m.budget().fault().empty()) return;
            first_mask_.assign(mask.begin(), mask.end());
        }
        std::copy(first_mask_.begin(), first_mask_.end(), mask.begin());
        return;
    }
    std::vector<Machine::Item> items;
    for (const Machine::Item i : m.kernel(c)) items.push_back(i);
    for (size_t k = 0; k < items.size(); ++k) {
        const auto [state, stack] = items[k];
        const StateTokens& allowed = tokens_of(m, state);
        if (!m.budget().fault().empty()) return; // and the mask is not used
        for (size_t w = 0; w < allowed.mask.size(); ++w) mask[w] |= allowed.mask[w];
        for (const TokenId t : allowed.ids) set(t);
        for (const uint32_t n : allowed.deep) { // the same way again, with all that is known now
            ConfigId at = m.of({state, stack});
            const std::string_view bytes = vocabulary_->bytes(tree.first_token(n), place);
            for (const char b : bytes.substr(0, Lookahead::kDepth)) at = m.step(at, static_cast<uint8_t>(b));
            if (at != kDead) walk(m, tree, n, at, set_all);
        }
        if (stack == 0) continue;
        if (allowed.ends_at_once && std::ranges::find(items, m.top(stack)) == items.end())
            items.push_back(m.top(stack));
        const ConfigId after = m.after(stack);
        if (!m.goes_on(after)) continue;
        for (const uint32_t n : allowed.after_rule)
            if (const ConfigId there = m.step(after, tree.byte(n)); there != kDead) {
                (void)set_all(n, there);
                walk(m, tree, n, there, set_all);
            }
    }
}

Matcher::Matcher(std::shared_ptr<Grammar> g, Vocabulary::Place begins)
    : grammar_(std::move(g)),
      machine_(grammar_->machine()),
      path_{machine_->of({grammar_->automaton().start(), 0})},
      begins_(begins) {}

Result<> Matcher::follow() {
    const auto& now = grammar_->machine();
    if (now == machine_) return {};
    const uint64_t before = now->bytes();
    now->adopt(*machine_, path_);
    machine_ = now;
    PB_CHECK(check());
    if (now->bytes() - before > Grammar::kMaxMachineBytes / 2) return invalid("the grammar is too ambiguous here");
    return {};
}

Result<> Matcher::check() {
    MaskBudget& budget = machine_->budget();
    if (budget.fault().empty()) return {};
    const std::string text = budget.fault();
    budget.clear_fault();
    return invalid(text);
}

Result<bool> Matcher::advance(TokenId t) {
    PB_CHECK(follow());
    const Vocabulary& v = grammar_->vocabulary();
    if (t < 0 || static_cast<uint32_t>(t) >= v.size()) return false;
    const std::string_view bytes = v.bytes(t, place());
    if (bytes.empty()) return false;
    ConfigId c = path_.back();
    for (const char b : bytes)
        if ((c = machine_->step(c, static_cast<uint8_t>(b))) == kDead) break;
    grammar_->measure();
    PB_CHECK(check());
    if (c == kDead) return false;
    if (path_.size() > 2 * kMaxRollback) path_.erase(path_.begin(), path_.end() - kMaxRollback);
    path_.push_back(c);
    length_ += 1;
    return true;
}

void Matcher::roll_back(size_t tokens) {
    tokens = std::min(tokens, path_.size() - 1);
    path_.resize(path_.size() - tokens);
    length_ -= tokens;
}

Result<> Matcher::allow(std::span<uint32_t> mask) {
    PB_CHECK(follow());
    grammar_->allow(*machine_, path_.back(), place(), mask);
    grammar_->measure();
    return check();
}

}  // namespace patchbay::grammar
