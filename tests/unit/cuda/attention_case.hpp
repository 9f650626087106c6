// Batches over pages, for tests of how attention is split and of the kernels that do it.
#pragma once
#include <algorithm>
#include <functional>
#include <vector>

#include "kernels/cuda_attention.hpp"
#include "kernels/reference.hpp"
#include "unit/cuda/values.hpp"

namespace patchbay::kernels::cuda {

struct Span { // tokens [from, to) of a sequence are computed
    int32_t from, to;
};

// The values of a token: 0 its query, 1 its key, 2 its value.
using ValuesOfToken = std::function<Floats(int which, int32_t position, size_t count)>;

// A batch, its arrays, and pages (in the reference's layout) that hold the KV of all tokens before `to`; everything
// else in the pages is NaN.
class Case {
  public:
    // values: of every sequence alike; none: noise
    Case(const AttentionShape& shape, pb_dtype activations, std::vector<Span> spans, ValuesOfToken values = {})
        : shape_(shape), dtype_(activations), spans_(std::move(spans)), values_(std::move(values)) {
        starts_ = {0};
        block_starts_ = {0};
        for (const Span& s : spans_) max_blocks_ = std::max(max_blocks_, blocks_of(s.to));
        const int32_t pages = int32_t(spans_.size()) * max_blocks_ * 2 + 1;
        int32_t taken = 0;
        for (size_t s = 0; s < spans_.size(); ++s) {
            const int32_t kept = shape.window > 0 ? int32_t(first_key(shape, spans_[s].from)) / shape.block_size : 0;
            for (int32_t b = 0; b < blocks_of(spans_[s].to); ++b) // earlier pages were freed
                blocks_.push_back(b >= kept ? (taken++ * 2 + 1) % pages : -1);
            for (int32_t t = spans_[s].from; t < spans_[s].to; ++t) {
                positions_.push_back(t);
                const int64_t page = blocks_[size_t(block_starts_[s] + t / shape.block_size)];
                slots_.push_back(page * shape.block_size + t % shape.block_size);
            }
            starts_.push_back(int32_t(positions_.size()));
            lengths_.push_back(spans_[s].to);
            block_starts_.push_back(int32_t(blocks_.size()));
        }
    }
    AttentionBatch batch() const {
        return {uint32_t(spans_.size()), int32_t(positions_.size()), starts_.data(), lengths_.data(),
                block_starts_.data(), blocks_.data(), slots_.data(), positions_.data()};
    }
    int64_t tokens() const { return int64_t(positions_.size()); }
    const AttentionShape& shape() const { return shape_; }
    void set_sinks(const Floats& of_heads) { sinks_.assign(of_heads.begin(), of_heads.end()); }
    KvPages kv() {
        if (pages_.empty()) fill_pages();
        return {reinterpret_cast<uint8_t*>(pages_.data()), page_stride(), sinks_.empty() ? nullptr : sinks_.data()};
    }

    // Values of tokens by sequence and position, so that the same token is the same in every batch.
    Values rows(int which, int32_t heads) const {
        Floats out;
        for (size_t s = 0; s < spans_.size(); ++s)
            for (int32_t t = spans_[s].from; t < spans_[s].to; ++t) {
                const auto row = row_of(which, s, t, heads);
                out.insert(out.end(), row.begin(), row.end());
            }
        return {dtype_, {tokens(), heads, shape_.head_dim}, out, 16};
    }

    // What one attend() gives, by a plan for `busy` blocks, of two warps each where rows are few, and so many rows of
    // partial sums.
    Floats attend_by(uint32_t busy, int32_t partial_rows = 1 << 16, AttentionGrid grid = {3, 2, 2}) {
        AttentionLimits limits = attention_limits(shape_, int32_t(spans_.size()), int32_t(tokens()) + 1, 4096,
                                                  {busy, busy, 2});
        limits.partial_rows = std::min(limits.partial_rows, partial_rows);
        AttentionPlan plan;
        if (!plan_attention(shape_, batch(), limits, plan)) return {};
        const AttentionLayout layout = attention_layout(shape_, limits);
        Shared<Line> memory(layout.bytes / 16 + 1, {~0ull, ~0ull});
        auto* const bytes = reinterpret_cast<uint8_t*>(memory.data());
        const AttentionHeader header = plan.header();
        std::memcpy(bytes, &header, sizeof header);
        std::copy(plan.items.begin(), plan.items.end(), reinterpret_cast<AttentionItem*>(bytes + layout.items));
        std::copy(plan.merges.begin(), plan.merges.end(), reinterpret_cast<AttentionMerge*>(bytes + layout.merges));
        Values q = rows(0, shape_.heads), out(dtype_, {tokens(), shape_.heads, shape_.head_dim}, {}, 16);
        attend(nullptr, {shape_, kv(), bytes, layout, block_starts_.data(), blocks_.data(), positions_.data(), grid},
               out.tensor(), q.tensor());
        return out.padding_is_untouched() ? out.dense() : Floats{};
    }

    Floats expected() { // by the reference, from the same pages
        const auto q = rows(0, shape_.heads).dense();
        Floats out(q.size());
        const auto as_tensor = [&](const Floats& v) {
            return tensor(const_cast<float*>(v.data()), PB_F32, {tokens(), shape_.heads, shape_.head_dim});
        };
        for (uint32_t s = 0; s < spans_.size(); ++s)
            reference::attend(shape_, batch(), kv(), as_tensor(out), as_tensor(q), s, starts_[s], starts_[s + 1]);
        return out;
    }

    uint64_t page_stride() const { return (page_bytes(shape_) + 63) / 64 * 64; }

  private:
    struct alignas(16) Line {
        uint64_t low, high;
    };
    int32_t blocks_of(int32_t tokens) const { return (tokens + shape_.block_size - 1) / shape_.block_size; }
    Floats row_of(int which, size_t s, int32_t t, int32_t heads) const {
        const size_t count = size_t(heads) * size_t(shape_.head_dim);
        if (values_) return rounded(dtype_, values_(which, t, count));
        return rounded(dtype_, noise(1 + uint64_t(which) * 1000003 + s * 10007 + uint64_t(t) * 3, count));
    }
    void fill_pages() { // by the reference, token by token
        const size_t pages = spans_.size() * size_t(max_blocks_) * 2 + 1;
        pages_.resize(pages * page_stride() / 16 + 1, {~0ull, ~0ull});
        for (size_t s = 0; s < spans_.size(); ++s)
            for (int32_t t = 0; t < spans_[s].to; ++t) {
                const int32_t page = blocks_[size_t(block_starts_[s] + t / shape_.block_size)];
                if (page < 0) continue;
                const int64_t slot = int64_t{page} * shape_.block_size + t % shape_.block_size;
                auto k = row_of(1, s, t, shape_.kv_heads), v = row_of(2, s, t, shape_.kv_heads);
                AttentionBatch one;
                one.token_count = 1;
                one.slot_mapping = &slot;
                const KvPages to{reinterpret_cast<uint8_t*>(pages_.data()), page_stride()};
                reference::append_kv(shape_, one, to, tensor(k.data(), PB_F32, {1, shape_.kv_heads, shape_.head_dim}),
                                     tensor(v.data(), PB_F32, {1, shape_.kv_heads, shape_.head_dim}));
            }
    }

    AttentionShape shape_;
    pb_dtype dtype_;
    std::vector<Span> spans_;
    ValuesOfToken values_;
    int32_t max_blocks_ = 1;
    Ints starts_, lengths_, blocks_, block_starts_, positions_;
    Shared<int64_t> slots_;
    Shared<float> sinks_; // (heads); empty: none
    Shared<Line> pages_;
};

}  // namespace patchbay::kernels::cuda
