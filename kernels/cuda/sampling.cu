// A block samples a row. Tokens are ordered by keys of 64 bits, the likeliest first and of equal ones the lower; what
// top-k and top-p leave is all up to some key. It is looked for in bins of about equal likeliness, then digit by digit
// in the bin that holds it. Weights are added as whole numbers, so that the order of threads does not matter.
#include <cmath>

#include "cuda/kernel.cuh"
#include "kernels/cuda_sampling.hpp"

namespace patchbay::kernels::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kBins = 256;
constexpr float kBinsPerUnit = 8; // of a distance in logits: what is 32 or more below the likeliest shares the last bin
constexpr uint32_t kListed = 2048; // keys of a bin that fit into shared memory
constexpr uint64_t kNone = ~uint64_t{0};

struct Choice {
    double score;
    int32_t token; // −1: none
    int32_t unused;
};

struct Shared {
    alignas(16) uint8_t each[kThreads * sizeof(Choice)]; // what threads show each other
    uint64_t sums[kBins], top[kMaxTop], listed[kListed], left;
    uint32_t counts[kBins], collected;
    int32_t bin, whole;
    float raw;
};

// Of all threads, in one order.
template <class T, class F>
__device__ T combined(Shared& shared, T mine, F&& f) {
    T* const each = reinterpret_cast<T*>(shared.each);
    const int i = int(threadIdx.x);
    each[i] = mine;
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (i < half) each[i] = f(each[i], each[i + half]);
        __syncthreads();
    }
    const T all = each[0];
    __syncthreads();
    return all;
}

__device__ uint64_t key_of(float x, int64_t token) {
    const uint32_t bits = float_to_bits(x == 0.f ? 0.f : x); // −0 is 0
    const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return uint64_t{~ascending} << 32 | static_cast<uint32_t>(token);
}
__device__ int64_t token_of(uint64_t key) { return static_cast<int64_t>(key & 0xffffffffu); }
__device__ float value_of(uint64_t key) {
    const uint32_t ascending = ~static_cast<uint32_t>(key >> 32);
    return bits_to_float(ascending & 0x80000000u ? ascending & 0x7fffffffu : ~ascending);
}

// Elements are what each(f) gives to f(key, value), to every thread its share of them.

// Sums of weights, and counts, by bin. bin(key, value): −1 where it is not to be counted.
template <class Each, class Bin, class Weight>
__device__ void add_by_bin(Shared& shared, Each&& each, Bin&& bin, Weight&& weight) {
    for (int i = int(threadIdx.x); i < kBins; i += kThreads) shared.counts[i] = 0, shared.sums[i] = 0;
    __syncthreads();
    each([&](uint64_t key, float value) {
        const int b = bin(key, value);
        if (b < 0) return;
        add_shared(&shared.counts[b], 1u);
        if (const uint64_t w = weight(value); w > 0) add_shared(&shared.sums[b], w);
    });
    __syncthreads();
    for (int distance = 1; distance < kBins; distance *= 2) { // sums become those of all bins up to each
        const int i = int(threadIdx.x);
        const uint64_t more = i < kBins && i >= distance ? shared.sums[i - distance] : 0;
        __syncthreads();
        if (i < kBins) shared.sums[i] += more;
        __syncthreads();
    }
}

// Which bin the sum of `target` ends in, or the last that has any: what is left for it, and whether all of it is
// wanted.
struct Found {
    int bin;
    uint64_t left;
    uint32_t count; // of elements in it
    bool whole;
};
__device__ Found find_bin(Shared& shared, uint64_t target) {
    const int i = int(threadIdx.x);
    if (shared.sums[kBins - 1] < target) {
        const int last =
            combined(shared, i < kBins && shared.counts[i] > 0 ? i : 0, [](int a, int b) { return a > b ? a : b; });
        if (i == 0) shared.bin = last, shared.left = target, shared.whole = 1;
    } else if (i < kBins) {
        const uint64_t before = i == 0 ? 0 : shared.sums[i - 1];
        if (before < target && shared.sums[i] >= target) {
            shared.bin = i;
            shared.left = target - before;
            shared.whole = shared.counts[i] == 1 || shared.sums[i] == target;
        }
    }
    __syncthreads();
    const Found out{shared.bin, shared.left, shared.counts[shared.bin], shared.whole != 0};
    __syncthreads(); // the bins may be used again
    return out;
}

// The key up to which the first elements have a sum of `target`, or that of all, digit by digit.
template <class Each, class Weight>
__device__ uint64_t last_key_by_digits(Shared& shared, Each&& each, uint64_t target, Weight&& weight) {
    uint64_t prefix = 0;
    for (int shift = 56;; shift -= 8) {
        const auto digit = [&](uint64_t key, float) {
            return shift < 56 && key >> (shift + 8) != prefix ? -1 : int(key >> shift & 255);
        };
        add_by_bin(shared, each, digit, weight);
        const Found found = find_bin(shared, target);
        prefix = prefix << 8 | uint64_t(found.bin);
        target = found.left;
        if (!found.whole && shift > 0) continue;
        uint64_t mine = 0; // of those that begin with these digits, the last
        each([&](uint64_t key, float) {
            if (key >> shift == prefix && key > mine) mine = key;
        });
        return combined(shared, mine, [](uint64_t a, uint64_t b) { return a > b ? a : b; });
    }
}

struct Bins { // of how far a value is below the greatest
    float from = 0, per_unit = kBinsPerUnit;
    int chosen = 0;
    __device__ int of(float below) const {
        const float at = (below - from) * per_unit;
        return at < kBins - 1 ? at > 0 ? int(at) : 0 : kBins - 1;
    }
};

// The same, target_of(the sum of all) being wanted, first through bins of values: once, and then through finer ones
// if more are in the bin that was found than can be listed.
template <class Each, class Target, class Weight>
__device__ uint64_t last_key(Shared& shared, Each&& each, float max_logit, Target&& target_of, Weight&& weight) {
    constexpr int kMaxDepth = 2;
    Bins bins[kMaxDepth];
    int depth = 0;
    uint64_t target = 0;
    bool fit = false;
    const auto inside = [&](float below) {
        for (int d = 0; d < kMaxDepth; ++d)
            if (d < depth && bins[d].of(below) != bins[d].chosen) return false;
        return true;
    };
    while (depth < kMaxDepth && !fit) {
        const Bins now = bins[depth];
        add_by_bin(
            shared, each,
            [&](uint64_t, float value) { return inside(max_logit - value) ? now.of(max_logit - value) : -1; }, weight);
        if (depth == 0) target = target_of(shared.sums[kBins - 1]);
        const Found found = find_bin(shared, target);
        bins[depth].chosen = found.bin;
        target = found.left;
        fit = found.count <= kListed;
        if (++depth < kMaxDepth)
            bins[depth] = {now.from + float(found.bin) / now.per_unit, now.per_unit * kBins, 0};
    }
    const auto each_inside = [&](auto&& f) {
        each([&](uint64_t key, float value) {
            if (inside(max_logit - value)) f(key, value);
        });
    };
    if (!fit) return last_key_by_digits(shared, each_inside, target, weight);
    if (threadIdx.x == 0) shared.collected = 0;
    __syncthreads();
    each_inside([&](uint64_t key, float) { shared.listed[add_shared(&shared.collected, 1u)] = key; });
    __syncthreads();
    const auto each_listed = [&](auto&& f) {
        for (uint32_t i = threadIdx.x; i < shared.collected; i += kThreads)
            f(shared.listed[i], value_of(shared.listed[i]));
    };
    return last_key_by_digits(shared, each_listed, target, weight);
}

// As patchbay/sdk/philox.hpp draws for the noise of tokens 4 index … 4 index + 3.
__device__ void draw(uint32_t (&c)[4], uint64_t seed, uint64_t position, uint32_t index) {
    c[0] = uint32_t(position);
    c[1] = uint32_t(position >> 32);
    c[2] = index;
    c[3] = 0x50424159u;
    uint32_t low = uint32_t(seed), high = uint32_t(seed >> 32);
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
        c[0] = uint32_t(b >> 32) ^ c[1] ^ low;
        c[1] = uint32_t(b);
        c[2] = uint32_t(a >> 32) ^ c[3] ^ high;
        c[3] = uint32_t(a);
        low += 0x9E3779B9u;
        high += 0xBB67AE85u;
    }
}

__device__ double exp_of(float x) { return double(float(exp(double(x)))); } // rounded as a float's

// What a block knows of its row.
struct Row {
    SamplingRow asked;
    float* logits;
    const uint32_t* allowed;
    int64_t vocab;
    int weight_bits;

    __device__ bool may(int64_t t) const { return !allowed || (allowed[t / 32] >> (t % 32) & 1u); }
    __device__ uint64_t key(int64_t t, float x) const { // of those that may be sampled
        return x > -INFINITY && may(t) ? key_of(x, t) : kNone;
    }
    // Calls f(token, logit) for this thread's share of all tokens. Several are read ahead.
    template <class F>
    __device__ void for_each(F&& f) const {
        constexpr int kAhead = 4;
        for (int64_t first = threadIdx.x; first < vocab; first += kAhead * kThreads) {
            float x[kAhead];
#pragma unroll
            for (int j = 0; j < kAhead; ++j) {
                const int64_t t = first + j * kThreads;
                x[j] = t < vocab ? logits[t] : 0.f;
            }
#pragma unroll
            for (int j = 0; j < kAhead; ++j)
                if (const int64_t t = first + j * kThreads; t < vocab) f(t, x[j]);
        }
    }
    __device__ float distance(float x, float max_logit) const {
        return x == max_logit ? 0.f : (x - max_logit) / asked.temperature;
    }
    __device__ uint64_t weight(float distance) const {
        return static_cast<uint64_t>(exp_of(distance) * double(uint64_t{1} << weight_bits) + 0.5);
    }
};

__device__ uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

// The first key of tokens; key(token, logit): kNone where it is not to be looked at.
template <class Key>
__device__ uint64_t first_key(Shared& shared, const Row& row, Key&& key) {
    uint64_t mine = kNone;
    row.for_each([&](int64_t t, float x) { mine = least(mine, key(t, x)); });
    return combined(shared, mine, [](uint64_t a, uint64_t b) { return least(a, b); });
}

// log(sum(exp(x))) of all logits; NaN counts as −infinity.
__device__ double log_sum_exp(Shared& shared, const Row& row) {
    const uint64_t first =
        first_key(shared, row, [&](int64_t t, float x) { return x > -INFINITY ? key_of(x, t) : kNone; });
    if (first == kNone) return -INFINITY;
    const float max_logit = row.logits[token_of(first)];
    double mine = 0;
    row.for_each([&](int64_t, float x) {
        if (x > max_logit - 80) mine += exp_of(x - max_logit);
    });
    return max_logit + log(combined(shared, mine, [](double a, double b) { return a + b; }));
}

__device__ void list_top(Shared& shared, const Row& row, double norm, int32_t max_top, int32_t* tokens,
                         float* logprobs) {
    int64_t n = row.asked.logprobs < max_top ? row.asked.logprobs : max_top;
    if (n > row.vocab) n = row.vocab;
    for (int64_t i = (n > 0 ? n : 0) + threadIdx.x; i < max_top; i += kThreads) tokens[i] = -1;
    if (n <= 0) return;
    const auto key = [&](int64_t t, float x) { // what is no number comes last
        return x > -INFINITY ? key_of(x, t) : uint64_t{0xffffffffu} << 32 | uint64_t(t);
    };
    const auto each = [&](auto&& f) {
        row.for_each([&](int64_t t, float x) { f(key(t, x), x > -INFINITY ? x : -INFINITY); });
    };
    const float max_logit = row.logits[token_of(first_key(shared, row, key))];
    const uint64_t last = last_key(
        shared, each, max_logit, [&](uint64_t) { return uint64_t(n); }, [](float) { return uint64_t{1}; });
    if (threadIdx.x == 0) shared.collected = 0;
    __syncthreads();
    each([&](uint64_t k, float) {
        if (k <= last) shared.top[add_shared(&shared.collected, 1u)] = k;
    });
    __syncthreads();
    if (threadIdx.x < n) {
        const uint64_t mine = shared.top[threadIdx.x];
        int64_t place = 0;
        for (int64_t i = 0; i < n; ++i) place += shared.top[i] < mine;
        tokens[place] = int32_t(token_of(mine));
        logprobs[place] = float(row.logits[token_of(mine)] - norm);
    }
    __syncthreads();
}

// The last key, of a distance, that top-k and top-p leave.
__device__ uint64_t last_left(Shared& shared, const Row& row, float max_logit) {
    uint64_t last = kNone - 1;
    const auto each_left = [&](auto&& f) {
        row.for_each([&](int64_t t, float x) {
            if (row.key(t, x) == kNone) return;
            const float distance = row.distance(x, max_logit);
            if (const uint64_t k = key_of(distance, t); k <= last) f(k, distance);
        });
    };
    if (row.asked.top_k > 0)
        last = last_key(
            shared, each_left, 0.f, [&](uint64_t) { return uint64_t(row.asked.top_k); },
            [](float) { return uint64_t{1}; });
    if (!(row.asked.top_p < 1)) return last;
    const auto target = [&](uint64_t all) {
        const double wanted = ceil(double(row.asked.top_p) * double(all));
        return wanted < 1 ? uint64_t{1} : uint64_t(wanted);
    };
    return last_key(shared, each_left, 0.f, target, [&](float distance) { return row.weight(distance); });
}

// The argmax of distance + Gumbel noise. Noise is made for those that may still win: −log(−log(u)) is at most
// −log(1 − u), which the leading bits of 1 − u bound, and the likeliest has at least −3.13.
__device__ int32_t argmax_with_noise(Shared& shared, const Row& row, float max_logit, uint64_t last) {
    constexpr double kBit = 0.6931471806; // ln 2, rounded up
    Choice mine{-3.14, -1, 0};
    for (int64_t four = threadIdx.x; four < (row.vocab + 3) / 4; four += kThreads) {
        uint32_t bits[4];
        bool drawn = false;
        for (int64_t t = 4 * four; t < 4 * four + 4 && t < row.vocab; ++t) {
            const float x = row.logits[t];
            if (row.key(t, x) == kNone) continue;
            const float distance = row.distance(x, max_logit);
            if (!(distance >= row.asked.least) || key_of(distance, t) > last) continue;
            if (distance + 33 * kBit < mine.score) continue;
            if (!drawn) draw(bits, row.asked.seed, row.asked.position, uint32_t(four));
            drawn = true;
            const uint32_t b = bits[t % 4];
            if (distance + (leading_zeros(~b) + 1) * kBit < mine.score) continue;
            const double score = distance - log(-log((b + 0.5) * 0x1p-32));
            if (score > mine.score) mine = {score, int32_t(t), 0}; // of equal ones the first stays
        }
    }
    const auto better = [](const Choice& a, const Choice& b) {
        if (a.token < 0 || b.token < 0) return a.token < 0 ? b : a;
        return a.score > b.score || (a.score == b.score && a.token < b.token) ? a : b;
    };
    return combined(shared, mine, better).token;
}

__device__ void adjust(const Row& row, const SamplingEntry* entries, float* raw) {
    for (uint32_t i = threadIdx.x; i < row.asked.entry_count; i += kThreads) {
        const SamplingEntry& e = entries[i];
        float x = raw[i] = row.logits[e.token];
        x += e.bias;
        if (e.count >= 0) x = x > 0 ? x / row.asked.repetition : product(x, row.asked.repetition);
        if (e.count > 0) x -= row.asked.presence + product(row.asked.frequency, float(e.count));
        row.logits[e.token] = x;
    }
    __syncthreads();
}

__global__ void __launch_bounds__(kThreads) sample_kernel(SamplingWork w) {
    __shared__ Shared shared;
    const auto* const inputs = static_cast<const uint8_t*>(w.inputs);
    const auto& header = *reinterpret_cast<const SamplingHeader*>(inputs);
    const int64_t r = blockIdx.x;
    Row row{reinterpret_cast<const SamplingRow*>(inputs + header.rows_at)[r], w.logits + r * w.row_stride, nullptr,
            header.vocab, header.weight_bits};
    if (row.asked.mask >= 0)
        row.allowed = reinterpret_cast<const uint32_t*>(inputs + header.masks_at) + row.asked.mask;
    const auto* const entries =
        reinterpret_cast<const SamplingEntry*>(inputs + header.entries_at) + row.asked.entry;
    float* const raw = w.scratch + row.asked.entry;

    const double norm = row.asked.logprobs >= 0 ? log_sum_exp(shared, row) : 0;
    list_top(shared, row, norm, w.max_top, w.top_tokens + r * w.max_top, w.top_logprobs + r * w.max_top);
    adjust(row, entries, raw);

    int32_t token;
    const uint64_t first = first_key(shared, row, [&](int64_t t, float x) { return row.key(t, x); });
    if (first == kNone) { // nothing to choose from
        const uint64_t any =
            first_key(shared, row, [&](int64_t t, float) { return row.may(t) ? uint64_t(t) : kNone; });
        token = any == kNone ? 0 : int32_t(any);
    } else if (row.asked.temperature == 0) {
        token = int32_t(token_of(first));
    } else {
        const float max_logit = row.logits[token_of(first)];
        token = argmax_with_noise(shared, row, max_logit, last_left(shared, row, max_logit));
    }

    if (threadIdx.x == 0) shared.raw = row.logits[token];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < row.asked.entry_count; i += kThreads)
        if (entries[i].token == token) shared.raw = raw[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        w.tokens[r] = token;
        w.faults[r] = first == kNone;
        if (row.asked.logprobs >= 0) w.logprobs[r] = float(shared.raw - norm);
    }
}

}  // namespace

void sample_rows(Stream stream, const SamplingWork& work) {
    if (work.rows > 0) launch(sample_kernel, uint32_t(work.rows), kThreads, 0, stream, work);
}

}  // namespace patchbay::kernels::cuda
