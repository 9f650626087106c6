#include <algorithm>

#include "unit/policies/plugins_fixture.hpp"

namespace patchbay::policies::suffix_test {
namespace {

using Tokens = std::vector<int32_t>;

struct Noise { // a stream of small numbers
    uint32_t state;
    uint32_t below(uint32_t n) { return (state = state * 1664525 + 1013904223) / 65536 % n; }
};

class Proposer {
  public:
    explicit Proposer(std::initializer_list<host::Settings::value_type> settings = {})
        : plugin_(must(registry().proposer("suffix", host::Settings(settings), services()))) {}

    Tokens propose(uint64_t id, const Tokens& history, uint32_t max_tokens) {
        Tokens drafts(max_tokens, -1);
        uint32_t count = 0;
        const pb_propose_row row{id, history.data(), static_cast<uint32_t>(history.size()), max_tokens};
        pb_propose_batch b{sizeof b, 1, sizeof row, max_tokens, &row, drafts.data(), &count, nullptr};
        EXPECT_EQ(plugin_.table->propose(plugin_.self(), &b), PB_OK);
        drafts.resize(count);
        return drafts;
    }
    // With room for so many paths, as they lie there: drafts and parents.
    std::pair<Tokens, Tokens> propose_tree(uint64_t id, const Tokens& history, uint32_t max_tokens,
                                           uint32_t max_paths) {
        Tokens drafts(max_tokens * max_paths, -1), parents(max_tokens * max_paths, -9);
        uint32_t count = 0;
        const pb_propose_row row{id, history.data(), static_cast<uint32_t>(history.size()), max_tokens, max_paths, 0};
        pb_propose_batch b{sizeof b, 1,      sizeof row,     max_tokens * max_paths,
                           &row,     drafts.data(), &count, parents.data()};
        EXPECT_EQ(plugin_.table->propose(plugin_.self(), &b), PB_OK);
        drafts.resize(count);
        parents.resize(count);
        return {drafts, parents};
    }
    void finish(uint64_t id) { plugin_.table->finished(plugin_.self(), id); }

  private:
    host::Proposer plugin_;
};

struct Guess {
    Tokens tokens;
    double score = 0;
};

// The same by looking at every place in every text.
struct Oracle {
    size_t depth = 24;
    double factor = 1, min_probability = 0.1;

    Guess guess(const std::vector<Tokens>& texts, const Tokens& context, size_t max_tokens) const {
        Guess best;
        for (size_t n = 1; n <= std::min(context.size(), depth - 1); ++n) {
            const Guess one = after(texts, {context.end() - static_cast<ptrdiff_t>(n), context.end()}, max_tokens);
            if (!one.tokens.empty() && one.score >= best.score) best = one;
        }
        return best;
    }

  private:
    Guess after(const std::vector<Tokens>& texts, Tokens run, size_t max_tokens) const {
        Guess out;
        double probability = 1;
        const double limit = std::max(1.0, static_cast<double>(run.size()) * factor);
        while (out.tokens.size() < max_tokens && static_cast<double>(out.tokens.size()) + 1 <= limit &&
               run.size() < depth) {
            std::map<int32_t, std::pair<uint32_t, size_t>> next; // count, latest place
            uint32_t all = 0;
            size_t place = 0;
            for (const Tokens& text : texts)
                for (size_t i = 0; i < text.size(); ++i, ++place) {
                    if (i + run.size() >= text.size() ||
                        !std::equal(run.begin(), run.end(), text.begin() + static_cast<ptrdiff_t>(i)))
                        continue;
                    auto& [count, latest] = next[text[i + run.size()]];
                    count += 1;
                    latest = place;
                    all += 1;
                }
            if (all == 0) break;
            const auto likely = std::max_element(next.begin(), next.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
            });
            probability *= static_cast<double>(likely->second.first) / all;
            if (probability < min_probability) break;
            out.tokens.push_back(likely->first);
            out.score += probability;
            run.push_back(likely->first);
        }
        return out;
    }
};

TEST(Suffix, BranchesWhereAnotherTokenCameToo) {
    // "1 2" was followed by 3 four times, by 4 twice, by 5 once
    const Tokens history = {1, 2, 3, 9, 21, 1, 2, 4, 8, 22, 1, 2, 3, 9, 23, 1, 2, 3, 9, 24, 1, 2,
                            5, 7, 25, 1, 2, 4, 8, 26, 1, 2, 3, 9, 27, 1, 2};
    EXPECT_EQ(Proposer().propose_tree(1, history, 2, 1), std::pair(Tokens({3, 9}), Tokens({-1, 0})));
    EXPECT_EQ(Proposer().propose_tree(1, history, 2, 2), std::pair(Tokens({3, 9, 4, 8}), Tokens({-1, 0, -1, 2})));
    EXPECT_EQ(Proposer().propose_tree(1, history, 2, 4),
              std::pair(Tokens({3, 9, 4, 8, 5, 7}), Tokens({-1, 0, -1, 2, -1, 4}))) << "the most probable first";
    EXPECT_EQ(Proposer({{"suffix_decoding_min_token_prob", "0.2"}}).propose_tree(1, history, 2, 4),
              std::pair(Tokens({3, 9, 4, 8}), Tokens({-1, 0, -1, 2}))) << "one in seven is not enough";
}

TEST(Suffix, BranchesToWhatCameAfterAShorterMatch) {
    // "0 1 2" was followed by 3 once, "1 2" also by 4
    const Tokens history = {5, 1, 2, 4, 8, 0, 1, 2, 3, 9, 6, 0, 1, 2};
    EXPECT_EQ(Proposer().propose_tree(1, history, 2, 3), std::pair(Tokens({3, 9, 4, 8}), Tokens({-1, 0, -1, 2})));
}

TEST(Suffix, RepeatsWhatFollowedTheLastTokensAsFarAsTheMatchIsLong) {
    EXPECT_EQ(Proposer().propose(1, {1, 2, 3, 4, 5, 9, 1, 2, 3}, 8), (Tokens{4, 5, 9}));
    EXPECT_EQ(Proposer({{"suffix_decoding_max_spec_factor", "2"}}).propose(1, {1, 2, 3, 4, 5, 9, 1, 2, 3}, 8),
              (Tokens{4, 5, 9, 1, 2, 3}));
    EXPECT_EQ(Proposer().propose(1, {1, 2, 3, 4, 5, 9, 1, 2, 3}, 2), (Tokens{4, 5}));
}

TEST(Suffix, TheMostFrequentContinuationWinsAndNotTheLatest) {
    EXPECT_EQ(Proposer().propose(1, {7, 5, 7, 5, 7, 6, 7}, 1), (Tokens{5}));
    EXPECT_EQ(Proposer().propose(1, {7, 5, 7, 6, 7}, 1), (Tokens{6})); // once each: the latest
}

TEST(Suffix, EndsAChainThatIsNotProbableEnough) {
    const Tokens history = {8, 9, 1, 8, 9, 2, 8, 9, 3, 8};
    const auto with = [&](const char* probability) {
        return Proposer({{"suffix_decoding_min_token_prob", probability}, {"suffix_decoding_max_spec_factor", "4"}})
            .propose(1, history, 2);
    };
    EXPECT_EQ(with("0.4"), (Tokens{9}));      // what comes then is one of three
    EXPECT_EQ(with("0.3"), (Tokens{9, 3}));
}

TEST(Suffix, SaysNothingWhereNothingIsRepeated) {
    EXPECT_EQ(Proposer().propose(1, {1, 2, 3, 4}, 4), (Tokens{}));
    EXPECT_EQ(Proposer().propose(1, {5}, 4), (Tokens{}));
}

TEST(Suffix, LooksAtOutputsOfPastRequestsOnlyWhereItIsAsked) {
    for (const bool asked : {false, true}) {
        Proposer p({{"suffix_decoding_max_cached_requests", asked ? "4" : "0"}});
        p.propose(1, {40, 41, 5}, 4);          // the prompt is 40 41: it is not remembered
        p.propose(1, {40, 41, 5, 6, 7, 8}, 4);
        p.finish(1);
        EXPECT_EQ(p.propose(2, {5, 6}, 4), asked ? (Tokens{7, 8}) : (Tokens{}));
        EXPECT_EQ(p.propose(3, {40}, 4), (Tokens{}));
    }
}

TEST(Suffix, ForgetsTheOldestOutputs) {
    for (const char* limit : {"suffix_decoding_max_cached_requests", "max_cached_tokens"}) {
        const bool by_tokens = limit == std::string("max_cached_tokens");
        Proposer p({{"suffix_decoding_max_cached_requests", by_tokens ? "100" : "2"},
                    {"max_cached_tokens", by_tokens ? "6" : "100"}});
        for (int32_t i = 1; i <= 3; ++i) {
            p.propose(static_cast<uint64_t>(i), {i * 10, i * 10 + 1, i * 10 + 2}, 4);
            p.finish(static_cast<uint64_t>(i)); // output: the last token and nothing before it
        }
        for (int32_t i = 4; i <= 6; ++i) {
            p.propose(static_cast<uint64_t>(i), {1, i * 10}, 4);
            p.propose(static_cast<uint64_t>(i), {1, i * 10, i * 10 + 1, i * 10 + 2}, 4);
            p.finish(static_cast<uint64_t>(i));
        }
        EXPECT_EQ(p.propose(7, {40}, 4), (Tokens{})) << limit;
        EXPECT_EQ(p.propose(8, {50}, 4), (Tokens{51})) << limit;
        EXPECT_EQ(p.propose(9, {60}, 4), (Tokens{61})) << limit;
    }
}

TEST(Suffix, AnIdThatComesBackWithOtherTokensIsAnotherSequence) {
    Proposer p;
    p.propose(1, {1, 2, 3, 1, 2}, 4);
    EXPECT_EQ(p.propose(1, {6, 7, 6}, 4), (Tokens{7}));
    EXPECT_EQ(p.propose(1, {8, 2, 4, 1, 9, 8, 2}, 4), (Tokens{4, 1}));
}

TEST(Suffix, LearnsNothingMoreWhereItsNodesAreUsedUpUntilASequenceEnds) {
    Proposer p({{"max_tree_nodes", "6"}, {"suffix_decoding_max_cached_requests", "4"}});
    EXPECT_EQ(p.propose(1, {1, 2, 3, 4, 5, 6, 7, 8}, 2), (Tokens{})); // a node a token: 7 and 8 find no room
    EXPECT_EQ(p.propose(1, {1, 2, 3, 4, 5, 6, 7, 8, 2}, 2), (Tokens{3}));
    EXPECT_EQ(p.propose(2, {9, 30, 9}, 2), (Tokens{}));
    p.finish(1); // it has not come as far as the output, of which nothing is remembered
    EXPECT_EQ(p.propose(2, {9, 30, 9}, 2), (Tokens{30}));
    EXPECT_EQ(p.propose(2, {9, 30, 9, 8}, 2), (Tokens{}));
}

TEST(Suffix, AgreesWithLookingAtEveryPlace) {
    Noise noise{3};
    for (const size_t depth : {2u, 3u, 6u, 24u})
        for (int round = 0; round < 40; ++round) {
            const std::string factor = std::to_string(0.5 + noise.below(4)),
                              probability = std::to_string(0.05 * noise.below(10));
            const Oracle oracle{depth, std::stod(factor), std::stod(probability)};
            Proposer p({{"suffix_decoding_max_tree_depth", std::to_string(depth)},
                        {"suffix_decoding_max_spec_factor", factor},
                        {"suffix_decoding_min_token_prob", probability}});
            const uint32_t words = 1 + noise.below(5);
            Tokens history;
            while (history.size() < 60) {
                for (uint32_t k = 1 + noise.below(4); k > 0; --k)
                    history.push_back(static_cast<int32_t>(noise.below(words)));
                ASSERT_EQ(p.propose(1, history, 6), oracle.guess({history}, history, 6).tokens)
                    << "depth " << depth << " round " << round << " after " << history.size();
            }
        }
}

// Many outputs come and go; what is left of them counts, and nothing of those that are forgotten.
TEST(Suffix, AgreesWithLookingAtEveryPlaceOfTheOutputsThatItRemembers) {
    Noise noise{8};
    for (const size_t depth : {3u, 8u}) {
        const Oracle oracle{depth, 2, 0.1};
        Proposer p({{"suffix_decoding_max_tree_depth", std::to_string(depth)},
                    {"suffix_decoding_max_spec_factor", "2"},
                    {"suffix_decoding_max_cached_requests", "5"}});
        std::vector<Tokens> outputs;
        for (uint64_t id = 1; id <= 60; ++id) {
            Tokens history = {static_cast<int32_t>(noise.below(4))};
            for (uint32_t k = 1 + noise.below(25); k > 0; --k) {
                history.push_back(static_cast<int32_t>(noise.below(4)));
                const Guess own = oracle.guess({history}, history, 5), past = oracle.guess(outputs, history, 5);
                ASSERT_EQ(p.propose(id, history, 5), past.score > own.score ? past.tokens : own.tokens)
                    << "depth " << depth << " id " << id << " after " << history.size();
            }
            p.finish(id);
            outputs.emplace_back(history.begin() + 1, history.end());
            if (outputs.size() > 5) outputs.erase(outputs.begin());
        }
    }
}

}  // namespace
}  // namespace patchbay::policies::suffix_test
