// The sampler's checks: which ids may come out, and that a row's token is a function of that row alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "conformance/sampler_case.hpp"

namespace patchbay::conformance {
namespace {

bool in_vocab(int32_t t) { return t >= 0 && t < static_cast<int32_t>(kVocab); }

Outcome answers(Subject& subject) {
    PB_TRY(auto component, subject.make());
    PB_CHECK(sample(subject, *component, {}));
    for (const auto& rows : {random_rows(1, 40), strange_rows()}) PB_CHECK(sample(subject, *component, all(rows)));
    return {};
}

Outcome range(Subject& subject) {
    PB_TRY(auto component, subject.make());
    for (const auto& rows : {random_rows(2, 40), strange_rows()}) {
        PB_TRY(const Sampled s, sample(subject, *component, all(rows)));
        for (size_t i = 0; i < rows.size(); ++i)
            if (!in_vocab(s.tokens[i]))
                return fail(name_of(i, rows[i]) + " became token " + std::to_string(s.tokens[i]) + ", expected 0 to " +
                            std::to_string(kVocab - 1));
    }
    return {};
}

Outcome bounds(Subject& subject) {
    PB_TRY(auto component, subject.make());
    auto rows = random_rows(3, 17);
    for (RowCase& r : rows) r.params.logprobs = kTop + 1;
    PB_TRY(const Sampled s, sample(subject, *component, all(rows)));
    if (!s.within_bounds) return fail("it wrote past the end of the logits or of an output");
    return {};
}

Outcome greedy(Subject& subject) {
    PB_TRY(auto component, subject.make());
    auto rows = random_rows(4, 40);
    for (RowCase& r : rows) {
        r.params = plain_params();
        r.params.temperature = 0;
        r.allowed.clear();
        r.biases.clear();
    }
    PB_TRY(const Sampled s, sample(subject, *component, all(rows)));
    for (size_t i = 0; i < rows.size(); ++i) {
        const auto& l = rows[i].logits;
        const auto best = std::max_element(l.begin(), l.end()) - l.begin();
        if (s.tokens[i] != best)
            return fail(name_of(i, rows[i]) + " became token " + std::to_string(s.tokens[i]) +
                        ", the highest logit is that of " + std::to_string(best));
    }
    return {};
}

Outcome mask(Subject& subject) {
    PB_TRY(auto component, subject.make());
    const auto rows = random_rows(6, 120);
    PB_TRY(const Sampled s, sample(subject, *component, all(rows)));
    for (size_t i = 0; i < rows.size(); ++i)
        if (in_vocab(s.tokens[i]) && !rows[i].may(static_cast<uint32_t>(s.tokens[i])))
            return fail(name_of(i, rows[i]) + " became token " + std::to_string(s.tokens[i]) +
                        ", which its mask excludes");
    return {};
}

Outcome repeatable(Subject& subject) {
    const auto rows = random_rows(7, 40);
    PB_TRY(auto first, subject.make());
    PB_TRY(auto second, subject.make());
    PB_TRY(const Sampled a, sample(subject, *first, all(rows)));
    PB_TRY(const Sampled b, sample(subject, *second, all(rows)));
    PB_TRY(const Sampled c, sample(subject, *first, all(rows)));
    for (size_t i = 0; i < rows.size(); ++i)
        if (a.tokens[i] != b.tokens[i] || a.tokens[i] != c.tokens[i])
            return fail(name_of(i, rows[i]) + " became two different tokens for the same logits, seed and position");
    return {};
}

Outcome batch(Subject& subject) {
    const auto rows = random_rows(8, 33);
    const auto order = all(rows);
    const std::vector<const RowCase*> turned(order.rbegin(), order.rend());
    PB_TRY(auto with_two_threads, subject.make(2));
    PB_TRY(const Sampled together, sample(subject, *with_two_threads, order));
    PB_TRY(auto another, subject.make(2));
    PB_TRY(const Sampled reversed, sample(subject, *another, turned));
    for (size_t i = 0; i < rows.size(); ++i) {
        PB_TRY(auto fresh, subject.make());
        PB_TRY(const Sampled alone, sample(subject, *fresh, {order[i]}));
        if (alone.tokens[0] != together.tokens[i])
            return fail(name_of(i, rows[i]) + " becomes token " + std::to_string(alone.tokens[0]) + " alone and " +
                        std::to_string(together.tokens[i]) + " in a batch of " + std::to_string(rows.size()));
        if (alone.tokens[0] != reversed.tokens[rows.size() - 1 - i])
            return fail(name_of(i, rows[i]) + " becomes another token when the batch is turned round");
    }
    return {};
}

Outcome faults(Subject& subject) {
    PB_TRY(auto component, subject.make());
    const auto sane = random_rows(9, 20), strange = strange_rows();
    std::vector<const RowCase*> rows = all(sane);
    std::vector<int32_t> expected(rows.size(), 0);
    for (size_t i = 0; i < 4; ++i) { // NaN, -inf, masked
        rows.insert(rows.begin() + static_cast<ptrdiff_t>(3 * i), &strange[i]);
        expected.insert(expected.begin() + static_cast<ptrdiff_t>(3 * i), 1);
    }
    PB_TRY(const Sampled sampled, sample(subject, *component, rows));
    for (size_t i = 0; i < rows.size(); ++i)
        if (sampled.faults[i] != expected[i])
            return fail(name_of(i, *rows[i]) + " has " + (expected[i] ? "nothing" : "something") +
                        " to choose from (NaN, -inf and masked tokens are not chosen), and its fault is " +
                        std::to_string(sampled.faults[i]) + ", expected " + std::to_string(expected[i]));
    return {};
}

Outcome logprobs(Subject& subject) {
    PB_TRY(auto component, subject.make());
    auto rows = random_rows(10, 20);
    for (size_t i = 0; i < rows.size(); ++i) rows[i].params.logprobs = 1 + static_cast<uint32_t>(i % (kTop + 1));
    PB_TRY(const Sampled s, sample(subject, *component, all(rows)));
    for (size_t i = 0; i < rows.size(); ++i) {
        const auto& l = rows[i].logits;
        const double max_logit = *std::max_element(l.begin(), l.end());
        double sum = 0;
        for (const float x : l) sum += std::exp(x - max_logit);
        const auto logprob = [&](int32_t t) { return l[static_cast<size_t>(t)] - max_logit - std::log(sum); };
        const auto wrong = [](double got, double expected) { return !(std::abs(got - expected) <= 1e-3); };
        if (in_vocab(s.tokens[i]) && wrong(s.logprobs[i], logprob(s.tokens[i])))
            return fail(name_of(i, rows[i]) + " has logprob " + std::to_string(s.logprobs[i]) +
                        " of its token, expected " + std::to_string(logprob(s.tokens[i])) +
                        " (log-softmax of the raw logits)");
        std::vector<float> sorted = l;
        std::sort(sorted.begin(), sorted.end(), std::greater<>());
        for (size_t k = 0; k < kTop; ++k) {
            const int32_t t = s.top_tokens[i * kTop + k];
            const bool wanted = k + 1 < rows[i].params.logprobs;
            if (wanted && (!in_vocab(t) || l[static_cast<size_t>(t)] != sorted[k] ||
                           wrong(s.top_logprobs[i * kTop + k], logprob(t))))
                return fail(name_of(i, rows[i]) + " has token " + std::to_string(t) + " at place " + std::to_string(k) +
                            " of its top list, or a wrong logprob there");
            if (!wanted && t != -1) return fail(name_of(i, rows[i]) + " has more in its top list than it asked for");
        }
    }
    return {};
}

constexpr uint64_t kFar = 100'000; // where positions of draws begin: in no text that a test of a plugin has

// The row's tokens with other noise: change(row, k) before draw k.
template <class Change>
Result<std::vector<int32_t>> draws(Subject& subject, const host::Component& component, const RowCase& row,
                                   uint32_t count, Change&& change) {
    constexpr uint32_t kRows = 500; // of a call
    std::vector<int32_t> out;
    while (out.size() < count) {
        std::deque<RowCase> rows(std::min<size_t>(kRows, count - out.size()), row);
        for (size_t i = 0; i < rows.size(); ++i) change(rows[i], out.size() + i);
        PB_TRY(const Sampled s, sample(subject, component, all(rows)));
        out.insert(out.end(), s.tokens.begin(), s.tokens.begin() + static_cast<ptrdiff_t>(rows.size()));
    }
    return out;
}

// One whose logits are nearly equal: another token is drawn nearly every time.
Outcome noise(Subject& subject) {
    constexpr uint32_t kDraws = 64;
    PB_TRY(auto component, subject.make());
    auto rows = random_rows(15, 4);
    uint32_t likeliest = 0;
    for (RowCase& r : rows) {
        r.params = plain_params();
        r.allowed.clear();
        r.biases.clear();
        for (float& x : r.logits) x /= 6;
        const auto other_position = [](RowCase& row, uint64_t k) { row.position += kFar + k; };
        const auto other_seed = [](RowCase& row, uint64_t k) { row.seed += k; };
        PB_TRY(const auto by_position, draws(subject, *component, r, kDraws, other_position));
        PB_TRY(const auto by_seed, draws(subject, *component, r, kDraws, other_seed));
        const auto best = std::ranges::max_element(r.logits) - r.logits.begin();
        const auto equal = [](const std::vector<int32_t>& all) { return std::ranges::count(all, all[0]) == kDraws; };
        if (equal(by_position) && equal(by_seed) && by_position[0] == best && by_seed[0] == best) {
            likeliest += 1;
            continue;
        }
        const std::string same = " becomes token " + std::to_string(by_seed[0]) + " ";
        if (equal(by_position))
            return fail(name_of(0, r) + same + "at each of " + std::to_string(kDraws) + " positions");
        if (equal(by_seed))
            return fail(name_of(0, r) + same + "with each of " + std::to_string(kDraws) + " seeds");
    }
    if (likeliest == rows.size()) return Outcome::skip("it takes the highest logit at any temperature");
    return {};
}

// What chi-square exceeds by chance once in some millions (Wilson and Hilferty).
double highest_chi_square(double degrees) {
    const double part = 2 / (9 * degrees), cube = 1 - part + 5 * std::sqrt(part);
    return degrees * cube * cube * cube;
}

// Whether the row's tokens, drawn often, are distributed as process() says. What is wrong, or nothing.
Result<std::string> compare_draws(Subject& subject, const host::Component& component, const RowCase& row,
                                  std::span<const float> processed) {
    constexpr uint32_t kDraws = 2000;
    PB_TRY(const auto tokens, draws(subject, component, row, kDraws, [](RowCase& r, uint64_t k) {
               r.seed += 7919 * k;
               r.position += kFar + k;
           }));
    std::vector<double> counts(kVocab, 0);
    for (const int32_t t : tokens)
        if (in_vocab(t)) counts[static_cast<size_t>(t)] += 1;
    double chi_square = 0, bins = 0, rare_count = 0, rare_expected = 0, worst = 0;
    uint32_t worst_token = 0;
    const auto part = [](double count, double expected) { // of what is rarer than five, less than it would be
        return (count - expected) * (count - expected) / std::max(expected, 5.0);
    };
    for (uint32_t t = 0; t < kVocab; ++t) {
        const double expected = kDraws * std::exp(static_cast<double>(processed[t]));
        const double of_token = part(counts[t], expected);
        if (of_token > worst) worst = of_token, worst_token = t;
        if (expected >= 5) chi_square += of_token, bins += 1;
        else rare_count += counts[t], rare_expected += expected;
    }
    chi_square += part(rare_count, rare_expected);
    if (chi_square <= highest_chi_square(std::max(bins, 1.0))) return std::string();
    return " became token " + std::to_string(worst_token) + " in " +
           std::to_string(static_cast<int>(counts[worst_token])) + " of " + std::to_string(kDraws) +
           " draws, process() gives it a probability of " + std::to_string(std::exp(processed[worst_token]));
}

Outcome process(Subject& subject) {
    if (!subject.table<pb_sampler>().process) return Outcome::skip("it has no process()");
    PB_TRY(auto component, subject.make());
    const auto rows = random_rows(11, 24);
    PB_TRY(const Sampled s, sample(subject, *component, all(rows), Call::kProcess));
    PB_TRY(const Sampled chosen, sample(subject, *component, all(rows)));
    for (size_t i = 0; i < rows.size(); ++i) {
        double sum = 0;
        for (uint32_t t = 0; t < kVocab; ++t) {
            const float x = s.logits[i * kVocab + t];
            if (!rows[i].may(t) && x > -INFINITY)
                return fail(name_of(i, rows[i]) + " keeps token " + std::to_string(t) + ", which its mask excludes");
            sum += std::exp(static_cast<double>(x));
        }
        if (!(std::abs(sum - 1) < 1e-3))
            return fail("the probabilities of " + name_of(i, rows[i]) + " sum to " + std::to_string(sum));
        if (const int32_t t = chosen.tokens[i];
            in_vocab(t) && !(s.logits[i * kVocab + static_cast<size_t>(t)] > -INFINITY))
            return fail(name_of(i, rows[i]) + " samples token " + std::to_string(t) + ", which process() excludes");
    }
    const auto often = drawn_rows();
    PB_TRY(const Sampled of_often, sample(subject, *component, all(often), Call::kProcess));
    for (size_t i = 0; i < often.size(); ++i) {
        const std::span processed(of_often.logits.data() + i * kVocab, kVocab);
        PB_TRY(const std::string wrong, compare_draws(subject, *component, often[i], processed));
        if (!wrong.empty()) return fail(name_of(i, often[i]) + wrong);
    }
    return {};
}

Outcome stride(Subject& subject) {
    PB_TRY(auto first, subject.make());
    PB_TRY(auto second, subject.make());
    const auto rows = random_rows(15, 24);
    PB_TRY(const Sampled exact, sample(subject, *first, all(rows)));
    PB_TRY(const Sampled longer, sample(subject, *second, all(rows), Call::kSample, nullptr, 48));
    for (size_t i = 0; i < rows.size(); ++i)
        if (exact.tokens[i] != longer.tokens[i])
            return fail(name_of(i, rows[i]) + " becomes another token when the host's rows are larger: step by "
                                              "row_stride, and by the strides of the logits");
    return {};
}

Outcome lifetimes(Subject& subject) {
    if (subject.table<pb_sampler>().device) return Outcome::skip("it samples on a device");
    LentMemory left(LentMemory::After::kLeft);
    PB_TRY(auto first, subject.make());
    PB_TRY(auto second, subject.make());
    for (uint64_t k = 0; k < 4; ++k) {
        const auto rows = random_rows(20 + k, 12);
        PB_TRY(const Sampled a, sample(subject, *first, all(rows), Call::kSample, &left));
        PB_TRY(const Sampled b, sample(subject, *second, all(rows)));
        for (size_t i = 0; i < rows.size(); ++i)
            if (a.tokens[i] != b.tokens[i])
                return fail("in batch " + std::to_string(k) + " " + name_of(i, rows[i]) +
                            " becomes another token where batches are overwritten after their call: a pointer is kept");
    }
    return {};
}

// What a row was given of its past it may be given again.
Outcome surprisal(Subject& subject) {
    const auto accepts = subject.table<pb_sampler>().accepts;
    PB_TRY(auto component, subject.make());
    auto rows = random_rows(13, 24);
    for (RowCase& r : rows) {
        r.params.mirostat_tau = 3;
        if (accepts && accepts(component->self(), &r.params) != PB_OK) return Outcome::skip("it takes no mirostat_tau");
    }
    PB_TRY(const Sampled s, sample(subject, *component, all(rows)));
    if (std::isnan(s.surprisal[0])) return Outcome::skip("it gives no surprisal");
    for (size_t i = 0; i < rows.size(); ++i)
        if (!(s.surprisal[i] > -1e-3f && s.surprisal[i] < 1e3f))
            return fail(name_of(i, rows[i]) + " has a token with a surprisal of " + std::to_string(s.surprisal[i]) +
                        " bits, expected a number from 0 on");
    return {};
}

// Those of a device are tried where there is one.
template <Outcome (*Run)(Subject&)>
Outcome there(Subject& subject) {
    const char* const device = subject.table<pb_sampler>().device;
    std::string why;
    if (device && !subject.device(device, why)) return Outcome::skip(why);
    return Run(subject);
}

constexpr Check kChecks[] = {
    {"sampler.answers", "samples every batch without an error", there<answers>},
    {"sampler.range", "gives ids of the vocabulary, for NaN and -inf rows too", there<range>},
    {"sampler.bounds", "writes within its buffers", there<bounds>},
    {"sampler.greedy", "takes the highest logit at temperature 0", there<greedy>},
    {"sampler.mask", "samples only tokens that are allowed", there<mask>},
    {"sampler.repeatable", "gives the same token for the same logits, seed and position", there<repeatable>},
    {"sampler.noise", "draws other tokens at other positions, and with other seeds", there<noise>},
    {"sampler.batch", "gives a row the same token alone, in a batch, and in another order", there<batch>},
    {"sampler.faults", "notes the rows that have nothing to choose from, and no others", there<faults>},
    {"sampler.logprobs", "reports log-softmax of the raw logits, highest first", there<logprobs>},
    {"sampler.surprisal", "gives the surprisal of a token where mirostat_tau is set", there<surprisal>},
    {"sampler.stride", "steps from row to row by row_stride, and by the strides of the logits", there<stride>},
    {"sampler.lifetimes", "keeps no pointer past the call that it came with", there<lifetimes>},
    {"sampler.process", "leaves log-probabilities that sum to 1 and are those of what it samples", there<process>},
};

Result<> exercise(Subject& subject, const host::Component& component) {
    if (subject.table<pb_sampler>().device) return {};
    const auto rows = random_rows(12, 8);
    PB_CHECK(sample(subject, component, all(rows)));
    return {};
}

}  // namespace

const Suite kSampler{kChecks, exercise};

}  // namespace patchbay::conformance
