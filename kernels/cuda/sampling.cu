// A block samples a row. Tokens are ordered by keys of 64 bits, the likeliest first and of equal ones the lower; what
// top-k and top-p leave is all up to some key, which is found digit by digit. Weights are added as whole numbers, so
// that the order of threads does not matter.
#include <cmath>

#include "cuda/kernel.cuh"
#include "kernels/cuda_sampling.hpp"

namespace patchbay::kernels::cuda {
namespace {

constexpr int kThreads = 512;
constexpr uint64_t kNone = ~uint64_t{0};

struct Choice {
    double score;
    int32_t token; // −1: none
    int32_t unused;
};

struct Shared {
    alignas(16) uint8_t each[kThreads * sizeof(Choice)]; // what threads show each other
    uint64_t sums[256], top[kMaxTop], left;
    uint32_t counts[256], collected;
    int32_t digit, whole;
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

// The key up to which the first elements have a sum of `target`, or that of all. key(t): kNone where t is no element.
template <class Key, class Weight>
__device__ uint64_t last_key(Shared& shared, int64_t count, uint64_t target, Key&& key, Weight&& weight) {
    uint64_t prefix = 0;
    for (int shift = 56;; shift -= 8) {
        for (int i = int(threadIdx.x); i < 256; i += kThreads) shared.counts[i] = 0, shared.sums[i] = 0;
        __syncthreads();
        for (int64_t t = threadIdx.x; t < count; t += kThreads) {
            const uint64_t k = key(t);
            if (k == kNone || (shift < 56 && k >> (shift + 8) != prefix)) continue;
            const int digit = int(k >> shift & 255);
            add_shared(&shared.counts[digit], 1u);
            add_shared(&shared.sums[digit], weight(t));
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            uint64_t left = target;
            int last = 0, digit = 0;
            for (; digit < 256; ++digit) {
                if (shared.counts[digit] == 0) continue;
                last = digit;
                if (shared.sums[digit] >= left) break;
                left -= shared.sums[digit];
            }
            shared.digit = last;
            shared.left = left;
            shared.whole = digit == 256 || shared.counts[last] == 1 || shared.sums[last] == left;
        }
        __syncthreads();
        prefix = prefix << 8 | uint64_t(shared.digit);
        target = shared.left;
        const bool whole = shared.whole != 0;
        __syncthreads();
        if (whole || shift == 0) return shift == 0 ? prefix : prefix << shift | ((uint64_t{1} << shift) - 1);
    }
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
    __device__ uint64_t key(int64_t t) const { // of those that may be sampled
        const float x = logits[t];
        return x > -INFINITY && may(t) ? key_of(x, t) : kNone;
    }
    __device__ float distance(int64_t t, float most) const {
        const float x = logits[t];
        return x == most ? 0.f : (x - most) / asked.temperature;
    }
    __device__ uint64_t weight(float distance) const {
        return static_cast<uint64_t>(exp_of(distance) * double(uint64_t{1} << weight_bits) + 0.5);
    }
};

__device__ uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

template <class Key>
__device__ uint64_t first_key(Shared& shared, int64_t count, Key&& key) {
    uint64_t mine = kNone;
    for (int64_t t = threadIdx.x; t < count; t += kThreads) mine = least(mine, key(t));
    return combined(shared, mine, [](uint64_t a, uint64_t b) { return least(a, b); });
}

// log(sum(exp(x))) of all logits; NaN counts as −infinity.
__device__ double log_sum_exp(Shared& shared, const Row& row) {
    const uint64_t first = first_key(shared, row.vocab, [&](int64_t t) {
        return row.logits[t] > -INFINITY ? key_of(row.logits[t], t) : kNone;
    });
    if (first == kNone) return -INFINITY;
    const float most = row.logits[token_of(first)];
    double mine = 0;
    for (int64_t t = threadIdx.x; t < row.vocab; t += kThreads)
        if (row.logits[t] > most - 80) mine += exp_of(row.logits[t] - most);
    return most + log(combined(shared, mine, [](double a, double b) { return a + b; }));
}

__device__ void list_top(Shared& shared, const Row& row, double norm, int32_t max_top, int32_t* tokens,
                         float* logprobs) {
    int64_t n = row.asked.logprobs < max_top ? row.asked.logprobs : max_top;
    if (n > row.vocab) n = row.vocab;
    for (int64_t i = (n > 0 ? n : 0) + threadIdx.x; i < max_top; i += kThreads) tokens[i] = -1;
    if (n <= 0) return;
    const auto key = [&](int64_t t) { // what is no number comes last
        return row.logits[t] > -INFINITY ? key_of(row.logits[t], t) : uint64_t{0xffffffffu} << 32 | uint64_t(t);
    };
    const uint64_t last = last_key(shared, row.vocab, uint64_t(n), key, [](int64_t) { return uint64_t{1}; });
    if (threadIdx.x == 0) shared.collected = 0;
    __syncthreads();
    for (int64_t t = threadIdx.x; t < row.vocab; t += kThreads)
        if (key(t) <= last) shared.top[add_shared(&shared.collected, 1u)] = key(t);
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

// The last key that top-k and top-p leave.
__device__ uint64_t last_left(Shared& shared, const Row& row, float most) {
    const auto key = [&](int64_t t) {
        return row.key(t) == kNone ? kNone : key_of(row.distance(t, most), t);
    };
    uint64_t last = kNone - 1;
    if (row.asked.top_k > 0)
        last = last_key(shared, row.vocab, uint64_t(row.asked.top_k), key, [](int64_t) { return uint64_t{1}; });
    if (!(row.asked.top_p < 1)) return last;
    const auto kept = [&](int64_t t) { return key(t) <= last ? key(t) : kNone; };
    const auto weight = [&](int64_t t) { return row.weight(row.distance(t, most)); };
    uint64_t mine = 0;
    for (int64_t t = threadIdx.x; t < row.vocab; t += kThreads)
        if (kept(t) != kNone) mine += weight(t);
    const uint64_t all = combined(shared, mine, [](uint64_t a, uint64_t b) { return a + b; });
    const double wanted = ceil(double(row.asked.top_p) * double(all));
    return last_key(shared, row.vocab, wanted < 1 ? 1 : uint64_t(wanted), kept, weight);
}

// The argmax of distance + Gumbel noise. Noise is made for those that may still win: −log(−log(u)) is at most
// −log(1 − u), which the leading bits of 1 − u bound, and the likeliest has at least −3.13.
__device__ int32_t argmax_with_noise(Shared& shared, const Row& row, float most, uint64_t last) {
    constexpr double kBit = 0.6931471806; // ln 2, rounded up
    Choice mine{-3.14, -1, 0};
    for (int64_t four = threadIdx.x; four < (row.vocab + 3) / 4; four += kThreads) {
        uint32_t bits[4];
        bool drawn = false;
        for (int64_t t = 4 * four; t < 4 * four + 4 && t < row.vocab; ++t) {
            if (row.key(t) == kNone) continue;
            const float distance = row.distance(t, most);
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

__global__ void sample_kernel(SamplingWork w) {
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
    const uint64_t first = first_key(shared, row.vocab, [&](int64_t t) { return row.key(t); });
    if (first == kNone) { // nothing to choose from
        const uint64_t any =
            first_key(shared, row.vocab, [&](int64_t t) { return row.may(t) ? uint64_t(t) : kNone; });
        token = any == kNone ? 0 : int32_t(any);
    } else if (row.asked.temperature == 0) {
        token = int32_t(token_of(first));
    } else {
        const float most = row.logits[token_of(first)];
        token = argmax_with_noise(shared, row, most, last_left(shared, row, most));
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
