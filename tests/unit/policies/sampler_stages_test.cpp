// The rarer stages of `standard`, each against a reference in double that sorts everything.
#include <set>

#include "unit/policies/sampler_rows.hpp"

namespace patchbay::policies::sampler_stages_test {
namespace {

enum class Xtc { kOff, kOn }; // its chance has come up

struct Left { // of a row's tokens
    size_t token;
    double logit, p;
};

void normalise(std::vector<Left>& left) {
    double max_logit = -INFINITY, sum = 0;
    for (const Left& x : left) max_logit = std::max(max_logit, x.logit);
    for (const Left& x : left) sum += std::exp(x.logit - max_logit);
    for (Left& x : left) x.p = std::exp(x.logit - max_logit) / sum;
    std::stable_sort(left.begin(), left.end(), [](const Left& a, const Left& b) { return a.p > b.p; });
}

// Keeps the first that make up p.
void keep_first(std::vector<Left>& left, double p) {
    size_t kept = 0;
    for (double sum = 0; kept < left.size() && (kept == 0 || sum < p); ++kept) sum += left[kept].p;
    left.resize(kept);
}

// In the documented order: top-n-sigma, top-k, typical, top-p, min-p, XTC, mirostat.
std::vector<double> exact(const Row& r, Xtc xtc) {
    const pb_sampling_params& p = r.params;
    std::vector<Left> left;
    double mean = 0, variance = 0;
    for (size_t t = 0; t < r.logits.size(); ++t) {
        left.push_back({t, r.logits[t] / p.temperature, 0});
        mean += left.back().logit / static_cast<double>(r.logits.size());
    }
    for (const Left& x : left) variance += (x.logit - mean) * (x.logit - mean) / static_cast<double>(left.size());
    normalise(left);
    if (p.top_n_sigma > 0) {
        const double least = left[0].logit - p.top_n_sigma * std::sqrt(variance);
        std::erase_if(left, [&](const Left& x) { return x.logit < least; });
    }
    if (p.top_k > 0 && static_cast<size_t>(p.top_k) < left.size()) left.resize(static_cast<size_t>(p.top_k));
    normalise(left);
    if (p.typical_p > 0 && p.typical_p < 1) {
        double entropy = 0;
        for (const Left& x : left) entropy -= x.p * std::log(x.p);
        std::stable_sort(left.begin(), left.end(), [&](const Left& a, const Left& b) {
            return std::abs(-std::log(a.p) - entropy) < std::abs(-std::log(b.p) - entropy);
        });
        keep_first(left, p.typical_p);
        normalise(left);
    }
    if (p.top_p < 1) keep_first(left, p.top_p), normalise(left);
    if (const double least = p.min_p * left[0].p; p.min_p > 0)
        std::erase_if(left, [&](const Left& x) { return x.p < least; });
    normalise(left);
    if (xtc == Xtc::kOn) {
        size_t top = 0;
        while (top < left.size() && left[top].p >= p.xtc_threshold) top += 1;
        if (top > 1) left.erase(left.begin(), left.begin() + static_cast<ptrdiff_t>(top) - 1);
        normalise(left);
    }
    if (p.mirostat_tau > 0) {
        double mu = 2.0 * p.mirostat_tau;
        for (const float s : r.surprisal) mu -= p.mirostat_eta * (s - p.mirostat_tau);
        while (left.size() > 1 && -std::log2(left.back().p) > mu) left.pop_back();
        normalise(left);
    }
    std::vector<double> out(r.logits.size(), 0);
    for (const Left& x : left) out[x.token] = x.p;
    return out;
}

std::vector<double> exact(const Row& r) { // over all chances
    const auto off = exact(r, Xtc::kOff), on = exact(r, Xtc::kOn);
    std::vector<double> out;
    const double chance = r.params.xtc_probability;
    for (size_t t = 0; t < off.size(); ++t) out.push_back((1 - chance) * off[t] + chance * on[t]);
    return out;
}

struct Named {
    const char* name;
    Row row;
};

std::vector<Named> distributions() {
    std::vector<Named> out(8);
    for (Named& d : out) d.row.params.temperature = 0.9f;
    out[0].name = "top_n_sigma", out[0].row.params.top_n_sigma = 1.2f;
    out[1].name = "typical", out[1].row.params.typical_p = 0.6f;
    out[2].name = "typical, where much is possible", out[2].row.params.typical_p = 0.5f;
    out[2].row.params.temperature = 2;
    out[3].name = "xtc", out[3].row.params.xtc_probability = 0.4f, out[3].row.params.xtc_threshold = 0.1f;
    out[4].name = "xtc always", out[4].row.params.xtc_probability = 1, out[4].row.params.xtc_threshold = 0.05f;
    out[5].name = "mirostat", out[5].row.params.mirostat_tau = 1.5f, out[5].row.params.mirostat_eta = 0.2f;
    out[6].name = "mirostat after surprisals", out[6].row.params = out[5].row.params;
    out[6].row.output = {1, 2, 3}, out[6].row.surprisal = {0.5f, 4.25f, 2};
    out[7].name = "all at once";
    out[7].row.params.temperature = 1.4f, out[7].row.params.top_n_sigma = 2.5f, out[7].row.params.top_k = 10;
    out[7].row.params.typical_p = 0.97f, out[7].row.params.top_p = 0.95f, out[7].row.params.min_p = 0.05f;
    out[7].row.params.xtc_probability = 0.5f, out[7].row.params.xtc_threshold = 0.2f;
    out[7].row.params.mirostat_tau = 2, out[7].row.params.mirostat_eta = 0.1f, out[7].row.seed = 9;
    return out;
}

TEST(SamplerStages, DrawTheirTokensByTheExactProbabilities) {
    for (const Named& d : distributions()) {
        const auto p = exact(d.row);
        ASSERT_GT(std::count_if(p.begin(), p.end(), [](double x) { return x > 0; }), 1) << d.name;
        expect_drawn_from(p, draw_many(d.row, 100'000), d.name);
    }
}

TEST(SamplerStages, ChangeWhatIsDrawn) {
    for (const Named& d : distributions()) {
        Row without = d.row;
        without.params = plain_params();
        without.params.temperature = d.row.params.temperature;
        const auto p = exact(d.row), plain = exact(without);
        double moved = 0;
        for (size_t t = 0; t < kVocab; ++t) moved += std::abs(p[t] - plain[t]) / 2;
        EXPECT_GT(moved, 0.02) << d.name;
    }
}

TEST(SamplerStages, ProcessGivesTheFinalLogProbabilities) {
    for (const Named& d : distributions()) {
        Row r = d.row;
        std::set<Xtc> seen;
        for (r.position = 0; r.position < 40; ++r.position) {
            const auto got = sample("standard", {r}, Call::kProcess).processed;
            const auto is_near = [&](const std::vector<double>& p) {
                for (size_t t = 0; t < kVocab; ++t)
                    if (!(std::abs(std::exp(got[t]) - p[t]) < 1e-6)) return false;
                return true;
            };
            const bool off = r.params.xtc_probability < 1 && is_near(exact(r, Xtc::kOff));
            const bool on = r.params.xtc_probability > 0 && is_near(exact(r, Xtc::kOn));
            ASSERT_NE(off, on) << d.name << " at " << r.position;
            seen.insert(on ? Xtc::kOn : Xtc::kOff);
        }
        const bool both = r.params.xtc_probability > 0 && r.params.xtc_probability < 1;
        EXPECT_EQ(seen.size(), both ? 2u : 1u) << d.name;
    }
}

TEST(SamplerStages, LeaveTheTokenOfARowThatTheyDoNotCut) {
    std::vector<Row> plain(300), staged;
    for (size_t i = 0; i < plain.size(); ++i) {
        plain[i].position = i;
        if (i % 4 == 1) plain[i].params.top_k = 5;
        if (i % 4 == 2) plain[i].params.top_p = 0.8f;
        if (i % 4 == 3) plain[i].params.min_p = 0.1f, plain[i].mask = {0xfdd};
        staged.push_back(plain[i]);
        staged[i].params.top_n_sigma = 50; // on, but everything is nearer
    }
    EXPECT_EQ(sample("standard", plain).tokens, sample("standard", staged).tokens);
}

TEST(SamplerStages, TakeTheLikeliestAtTemperatureZero) {
    Row r;
    r.params.temperature = 0;
    r.params.typical_p = 0.1f, r.params.top_n_sigma = 1, r.params.xtc_probability = 1, r.params.mirostat_tau = 3;
    EXPECT_EQ(sample("standard", {r}).tokens[0], 1);
}

TEST(SamplerStages, ATemperatureNextToNothingLeavesTheLikeliest) {
    Row r;
    r.params.temperature = 1e-40f;
    r.params.typical_p = 0.5f, r.params.top_n_sigma = 1, r.params.mirostat_tau = 3;
    r.params.xtc_probability = 1;
    EXPECT_EQ(sample("standard", {r}).tokens[0], 1);
}

TEST(SamplerStages, TypicalMayLeaveTheLikeliestOut) {
    Row r;
    r.logits = {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}; // the first is less surprising than most are
    r.params.typical_p = 0.5f;
    EXPECT_EQ(sample("standard", {r}, Call::kProcess).processed[0], -INFINITY);
}

// ---- mirostat ------------------------------------------------------------------------------------

TEST(Mirostat, ReportsTheSurprisalOfItsTokenInWhatItWasDrawnFrom) {
    Row r;
    r.params.mirostat_tau = 1.2f;
    for (r.position = 0; r.position < 50; ++r.position) {
        const Sampled drawn = sample("standard", {r});
        const auto p = exact(r, Xtc::kOff);
        EXPECT_NEAR(drawn.surprisal[0], -std::log2(p[static_cast<size_t>(drawn.tokens[0])]), 1e-5);
    }
    Row without;
    EXPECT_EQ(sample("standard", {without}).surprisal[0], -1) << "not requested";
}

TEST(Mirostat, KeepsTheMeanSurprisalAtItsTarget) {
    for (const float tau : {0.8f, 1.5f, 2.2f}) {
        Row r;
        r.params.mirostat_tau = tau;
        r.params.mirostat_eta = 0.1f;
        double sum = 0;
        for (; r.position < 1500; ++r.position) {
            const Sampled drawn = sample("standard", {r});
            r.output.push_back(drawn.tokens[0]);
            r.surprisal.push_back(drawn.surprisal[0]);
            sum += r.position < 100 ? 0 : drawn.surprisal[0];
        }
        EXPECT_NEAR(sum / 1400, tau, 0.1) << tau;
    }
}

// ---- DRY -----------------------------------------------------------------------------------------

// What is taken from each token's logit, by looking at every place for every length.
std::vector<double> dry_penalties(const Row& r) {
    const pb_sampling_params& p = r.params;
    std::vector<int32_t> x = r.prompt;
    x.insert(x.end(), r.output.begin(), r.output.end());
    if (p.dry_range > 0 && p.dry_range < x.size()) x.erase(x.begin(), x.end() - p.dry_range);
    const auto breaks = [&](int32_t t) { return std::count(r.breakers.begin(), r.breakers.end(), t) > 0; };
    std::vector<double> out(r.logits.size(), 0);
    for (size_t next = 1; next < x.size(); ++next)
        for (size_t length = 1; length <= next; ++length) { // of x[next - length .. next), and of the end
            if (!std::equal(x.end() - static_cast<ptrdiff_t>(length), x.end(),
                            x.begin() + static_cast<ptrdiff_t>(next - length)))
                break;
            if (std::any_of(x.end() - static_cast<ptrdiff_t>(length), x.end(), breaks) || breaks(x[next])) break;
            if (length < p.dry_allowed_length) continue;
            const double penalty =
                p.dry_multiplier * std::pow(double{p.dry_base}, static_cast<double>(length - p.dry_allowed_length));
            double& max_penalty = out[static_cast<size_t>(x[next])];
            max_penalty = std::max(max_penalty, penalty);
        }
    return out;
}

TEST(Dry, TakesFromWhatWouldGoOnWithARepetition) {
    size_t penalised = 0;
    for (uint64_t i = 0; i < 400; ++i) {
        auto next = [&, at = 0u](uint32_t n) mutable { return draw(i, at++, Stream::kTest, 0)[0] % n; };
        Row r;
        const uint32_t letters = 2 + next(3);
        for (uint32_t k = next(25); k > 0; --k) r.prompt.push_back(static_cast<int32_t>(next(letters)));
        for (uint32_t k = next(25); k > 0; --k) r.output.push_back(static_cast<int32_t>(next(letters)));
        r.params.dry_multiplier = 0.5f, r.params.dry_base = 1.25f;
        r.params.dry_allowed_length = next(5);
        if (next(2)) r.params.dry_range = 1 + next(30);
        if (next(3) == 0) r.breakers = {0};
        const auto penalties = dry_penalties(r);
        penalised += std::any_of(penalties.begin(), penalties.end(), [](double x) { return x > 0; });
        Row expected;
        for (size_t t = 0; t < kVocab; ++t) expected.logits[t] -= static_cast<float>(penalties[t]);
        const auto p = exact(expected);
        const auto got = sample("standard", {r}, Call::kProcess).processed;
        for (size_t t = 0; t < kVocab; ++t)
            ASSERT_NEAR(std::exp(got[t]), p[t], 1e-5) << "case " << i << ", token " << t;
    }
    EXPECT_GT(penalised, 200u);
}

TEST(Dry, DrawsByTheExactProbabilities) {
    Row r, expected;
    r.prompt = {1, 6, 3, 10}, r.output = {2, 1, 6, 3};
    r.params.dry_multiplier = 0.8f, r.params.dry_base = 1.75f, r.params.dry_allowed_length = 2;
    expected.logits[10] -= 0.8f * 1.75f;
    expect_drawn_from(exact(expected), draw_many(r, 100'000), "dry");
    expect_drawn_from(exact(Row{}), draw_many(Row{}, 100'000), "plain");
}

TEST(Dry, OfAnEndlessRepetitionStaysFinite) {
    Row r;
    r.output.assign(5000, 1);
    r.params.dry_multiplier = 1, r.params.dry_base = 2, r.params.dry_allowed_length = 2;
    const Sampled drawn = sample("standard", {r});
    EXPECT_NE(drawn.tokens[0], 1);
    EXPECT_EQ(drawn.faults, 0u);
    r.mask = {0x2}; // it alone may come
    EXPECT_EQ(sample("standard", {r}).tokens[0], 1);
}

}  // namespace
}  // namespace patchbay::policies::sampler_stages_test
