#include "bench/grammar_bench.hpp"

#include <nlohmann/json.hpp>

#include "base/refusals.hpp"
#include "bench/times.hpp"

namespace patchbay::bench {
namespace {

using grammar::Vocabulary;
using text::TokenId;

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

struct Times {
    std::vector<double> masks, advances;
};

Result<> walk(const std::shared_ptr<grammar::Grammar>& g, const std::vector<TokenId>& tokens, Clock& clock,
              Times& out) {
    std::vector<uint32_t> mask(g->vocabulary().words());
    grammar::Matcher matcher(g);
    for (const TokenId t : tokens) {
        const uint64_t start = clock.now_ns();
        PB_CHECK(matcher.allow(mask));
        const uint64_t allowed = clock.now_ns();
        PB_TRY(const bool advanced, matcher.advance(t));
        out.masks.push_back(seconds(allowed - start));
        out.advances.push_back(seconds(clock.now_ns() - allowed));
        if (!advanced || !(mask[static_cast<size_t>(t) / 32] >> (t % 32) & 1))
            return broken("token " + std::to_string(t) + " of the text is not allowed");
    }
    return {};
}

Result<GrammarResult> bench_one(const GrammarCase& one, const std::shared_ptr<const Vocabulary>& vocabulary,
                                uint32_t repeats, Clock& clock) {
    GrammarResult out{.name = one.name};
    const std::vector<TokenId> tokens = longest_tokens(*vocabulary, one.text);
    out.tokens = tokens.size();
    std::vector<double> compiles;
    Times first, later;
    for (uint32_t i = 0; i < repeats; ++i) {
        grammar::GrammarCache cache([&] { return vocabulary; }, clock);
        const uint64_t start = clock.now_ns();
        PB_TRY(const auto g, cache.get(one.asked));
        compiles.push_back(seconds(clock.now_ns() - start));
        out.states = g->automaton().state_count();
        PB_CHECK(walk(g, tokens, clock, first));
        for (int again = 0; again < 10; ++again) PB_CHECK(walk(g, tokens, clock, later));
    }
    out.compile_seconds = at_share(compiles, 0.5);
    out.first_mask_seconds = at_share(first.masks, 0.5);
    out.mask_seconds = at_share(later.masks, 0.5);
    out.mask_seconds_p99 = at_share(later.masks, 0.99);
    out.advance_seconds = at_share(later.advances, 0.5);
    return out;
}

}  // namespace

std::vector<TokenId> longest_tokens(const Vocabulary& v, std::string_view text) {
    const grammar::TokenTree& tree = v.tree(Vocabulary::Place::kLater);
    std::vector<TokenId> out;
    while (!text.empty()) {
        uint32_t n = 0;
        size_t longest = 0;
        TokenId best = 0;
        for (size_t depth = 0; depth < text.size();) {
            const uint32_t last = tree.end(n);
            uint32_t child = n + 1;
            while (child < last && tree.byte(child) != static_cast<uint8_t>(text[depth])) child = tree.end(child);
            if (child >= last) break;
            n = child;
            depth += 1;
            if (!tree.tokens(n).empty()) longest = depth, best = tree.tokens(n)[0];
        }
        if (longest == 0) break; // the vocabulary cannot spell it: the walk will say so
        out.push_back(best);
        text.remove_prefix(longest);
    }
    return out;
}

Result<GrammarBench> bench_grammars(const std::shared_ptr<const Vocabulary>& vocabulary, uint32_t repeats,
                                    Clock& clock) {
    GrammarBench out{vocabulary->size(), {}};
    for (const GrammarCase& one : grammar_cases()) {
        auto result = bench_one(one, vocabulary, repeats, clock);
        if (!result) return prefixed(one.name, result.failure());
        out.results.push_back(*std::move(result));
    }
    return out;
}

std::string table_of(const GrammarBench& bench) {
    std::string out = "vocabulary of " + std::to_string(bench.vocabulary) + " tokens; medians a token\n\n";
    out += printed("%-28s %8s %8s %12s %14s %10s %10s %12s\n", "", "states", "tokens", "compile ms", "first text µs",
                   "mask µs", "p99 µs", "advance µs");
    for (const GrammarResult& r : bench.results) {
        out += printed("%-28s %8zu %8zu %12.1f %13.1f %9.1f %9.1f %11.2f\n", r.name.c_str(), r.states, r.tokens,
                       r.compile_seconds * 1e3, r.first_mask_seconds * 1e6, r.mask_seconds * 1e6,
                       r.mask_seconds_p99 * 1e6, r.advance_seconds * 1e6);
    }
    return out;
}

std::string json_of(const GrammarBench& bench) {
    nlohmann::json out = {{"vocabulary", bench.vocabulary}, {"grammars", nlohmann::json::array()}};
    for (const GrammarResult& r : bench.results)
        out["grammars"].push_back({{"name", r.name},
                                   {"states", r.states},
                                   {"tokens", r.tokens},
                                   {"compile_seconds", r.compile_seconds},
                                   {"first_mask_seconds", r.first_mask_seconds},
                                   {"mask_seconds", r.mask_seconds},
                                   {"mask_seconds_p99", r.mask_seconds_p99},
                                   {"advance_seconds", r.advance_seconds}});
    return out.dump(2);
}

}  // namespace patchbay::bench
