#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/kv_codes.hpp"
#include "kernels/reference.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::kernels::reference {
namespace {

enum class Half { Keys, Values };

// Of one token and head: its elements, after its scale where they are codes.
uint64_t row_bytes(const AttentionShape& s) {
    const auto elements = uint64_t(s.head_dim * dtype_bytes(s.kv_dtype));
    return in_codes(s.kv_dtype) ? (elements + 3) / 4 * 4 + sizeof(float) : elements;
}

uint8_t* at(const AttentionShape& s, const KvPages& kv, Half half, int64_t page, int64_t offset, int64_t head) {
    const int64_t row = (half == Half::Values ? s.kv_heads * s.block_size : 0) + head * s.block_size + offset;
    return kv.data + uint64_t(page) * kv.page_stride + uint64_t(row) * row_bytes(s);
}

void write(const AttentionShape& s, uint8_t* to, const float* values) {
    if (in_codes(s.kv_dtype)) {
        const float scale = to_codes(s.kv_dtype, values, s.head_dim, to + sizeof(float));
        std::memcpy(to, &scale, sizeof scale);
    } else if (s.kv_dtype == PB_BF16) {
        for (int32_t i = 0; i < s.head_dim; ++i) {
            const uint16_t bits = f32_to_bf16(values[i]);
            std::memcpy(to + i * 2, &bits, 2);
        }
    } else {
        std::memcpy(to, values, size_t(s.head_dim) * sizeof(float));
    }
}

double read(pb_dtype dtype, const uint8_t* from, int64_t i) {
    if (in_codes(dtype)) {
        float scale;
        std::memcpy(&scale, from, sizeof scale);
        return double(scale) * double(from_code(dtype, from[sizeof(float) + size_t(i)]));
    }
    if (dtype == PB_BF16) {
        uint16_t bits;
        std::memcpy(&bits, from + i * 2, 2);
        return bf16_to_f32(bits);
    }
    float value;
    std::memcpy(&value, from + i * 4, 4);
    return value;
}

// (tokens, heads, head_dim) f32, unit inner stride
float* row_of(const pb_tensor& x, int64_t token, int64_t head) {
    return static_cast<float*>(x.data) + token * x.strides[0] + head * x.strides[1];
}

}  // namespace

uint64_t page_bytes(const AttentionShape& s) {
    return 2 * uint64_t(s.kv_heads) * uint64_t(s.block_size) * row_bytes(s);
}

void append_kv(const AttentionShape& s, const AttentionBatch& batch, const KvPages& kv, const pb_tensor& k,
               const pb_tensor& v) {
    for (int32_t t = 0; t < batch.token_count; ++t) {
        const int64_t slot = batch.slot_mapping[t];
        if (slot < 0) continue;
        const int64_t page = slot / s.block_size, offset = slot % s.block_size;
        for (int32_t h = 0; h < s.kv_heads; ++h) {
            write(s, at(s, kv, Half::Keys, page, offset, h), row_of(k, t, h));
            write(s, at(s, kv, Half::Values, page, offset, h), row_of(v, t, h));
        }
    }
}

void attend(const AttentionShape& s, const AttentionBatch& batch, const KvPages& kv, const pb_tensor& out,
            const pb_tensor& q, uint32_t seq, int32_t from, int32_t to) {
    const int32_t* table = batch.table(seq);
    const int32_t group = s.heads / s.kv_heads;
    std::vector<double> weights, sum(size_t(s.head_dim));
    for (int32_t t = from; t < to; ++t) {
        const int64_t last = batch.positions[t], first = first_key(s, last);
        weights.resize(size_t(last - first + 1));
        for (int32_t h = 0; h < s.heads; ++h) {
            double max_score = kv.sinks ? double(kv.sinks[h]) : -std::numeric_limits<double>::infinity();
            for (int64_t key = first; key <= last; ++key) {
                const uint8_t* k = at(s, kv, Half::Keys, table[key / s.block_size], key % s.block_size, h / group);
                double score = 0;
                for (int32_t i = 0; i < s.head_dim; ++i) score += row_of(q, t, h)[i] * read(s.kv_dtype, k, i);
                score *= s.scale;
                if (s.soft_cap > 0) score = s.soft_cap * std::tanh(score / s.soft_cap);
                if (s.slopes) score += double(s.slopes[h]) * double(key - last);
                weights[size_t(key - first)] = score;
                max_score = std::max(max_score, score);
            }
            double total = kv.sinks ? std::exp(double(kv.sinks[h]) - max_score) : 0;
            std::fill(sum.begin(), sum.end(), 0.0);
            for (int64_t key = first; key <= last; ++key) {
                const uint8_t* v = at(s, kv, Half::Values, table[key / s.block_size], key % s.block_size, h / group);
                const double weight = std::exp(weights[size_t(key - first)] - max_score);
                total += weight;
                for (int32_t i = 0; i < s.head_dim; ++i) sum[size_t(i)] += weight * read(s.kv_dtype, v, i);
            }
            for (int32_t i = 0; i < s.head_dim; ++i) row_of(out, t, h)[i] = float(sum[size_t(i)] / total);
        }
    }
}

}  // namespace patchbay::kernels::reference
