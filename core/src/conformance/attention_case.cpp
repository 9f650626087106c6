#include "conformance/attention_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "conformance/noise.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {

pb_attention_spec Shape::spec() const {
    return {sizeof(pb_attention_spec),
            heads,
            kv_heads,
            head_dim,
            block_size,
            window,
            PB_F32,
            kv_dtype,
            1 / std::sqrt(static_cast<float>(head_dim)),
            0,
            "cpu"};
}

Tokens random_tokens(uint64_t seed, const Shape& shape, uint32_t length) {
    Noise noise(seed);
    const size_t d = shape.head_dim;
    Tokens out{noise.reals(length * shape.heads * d, -2, 2), noise.reals(length * shape.kv_heads * d, -2, 2),
               noise.reals(length * shape.kv_heads * d, -2, 2), length};
    // A backend may round q to the dtype of keys.
    if (shape.kv_dtype == PB_BF16)
        for (float& x : out.q) x = bf16_to_f32(f32_to_bf16(x));
    return out;
}

std::vector<double> attend(const Shape& shape, const Tokens& t, uint32_t token) {
    const uint32_t d = shape.head_dim,
                   first = shape.window > 0 && token + 1 > shape.window ? token + 1 - shape.window : 0;
    const auto kept = [&](float x) { return shape.kv_dtype == PB_BF16 ? bf16_to_f32(f32_to_bf16(x)) : x; };
    std::vector<double> out(shape.heads * d);
    for (uint32_t h = 0; h < shape.heads; ++h) {
        const uint32_t g = h / (shape.heads / shape.kv_heads);
        std::vector<double> scores;
        for (uint32_t j = first; j <= token; ++j) {
            double dot = 0;
            for (uint32_t i = 0; i < d; ++i)
                dot += double{t.q[(token * shape.heads + h) * d + i]} * kept(t.k[(j * shape.kv_heads + g) * d + i]);
            scores.push_back(dot * shape.spec().scale);
        }
        const double most = *std::max_element(scores.begin(), scores.end());
        double sum = 0;
        for (double& s : scores) sum += s = std::exp(s - most);
        for (uint32_t j = first; j <= token; ++j)
            for (uint32_t i = 0; i < d; ++i)
                out[h * d + i] += scores[j - first] / sum * kept(t.v[(j * shape.kv_heads + g) * d + i]);
    }
    return out;
}

Result<Pages> Pages::create(const host::Component& c, const Shape& shape, uint32_t pages) {
    Pages out(c, shape);
    const pb_attention_spec spec = shape.spec();
    out.layout_.struct_size = sizeof out.layout_;
    PB_CHECK(c.check(out.table().describe(c.self(), &spec, &out.layout_), "describe"));
    PB_CHECK(c.check(out.table().bind(c.self(), &spec, &out.bound_), "bind"));
    if (out.layout_.page_bytes == 0 || out.layout_.page_bytes > 1u << 26 || out.layout_.plan_bytes > 1u << 26)
        return fail("a page of " + std::to_string(out.layout_.page_bytes) + " bytes and a plan of " +
                    std::to_string(out.layout_.plan_bytes) + " make no sense for a small layer");
    out.layout_.page_bytes = (out.layout_.page_bytes + 63) / 64 * 64; // as the host strides them
    out.memory_.assign(out.layout_.page_bytes / 8 * pages, ~uint64_t{0});
    out.plan_.resize(out.layout_.plan_bytes / 8 + 1);
    out.pages_ = pages;
    return out;
}

Pages::Pages(Pages&& o) noexcept
    : component_(o.component_),
      shape_(o.shape_),
      layout_(o.layout_),
      bound_(std::exchange(o.bound_, nullptr)),
      memory_(std::move(o.memory_)),
      plan_(std::move(o.plan_)),
      blocks_(std::move(o.blocks_)),
      taken_(o.taken_),
      pages_(o.pages_) {}

Pages::~Pages() {
    if (bound_) table().unbind(component_->self(), bound_);
}

uint32_t Pages::page_of(uint32_t sequence, uint32_t block) {
    if (blocks_.size() <= sequence) blocks_.resize(sequence + 1);
    auto& blocks = blocks_[sequence];
    // Pages lie anywhere, so no two of a sequence are neighbours: 5 and the (odd) count have no common factor.
    while (blocks.size() <= block) blocks.push_back(static_cast<int32_t>((taken_++ * 5 + 2) % pages_));
    return static_cast<uint32_t>(blocks[block]);
}

std::vector<uint8_t> Pages::page(uint32_t index) const {
    const auto* from = reinterpret_cast<const uint8_t*>(memory_.data()) + index * layout_.page_bytes;
    return {from, from + layout_.page_bytes};
}

Result<std::vector<float>> Pages::step(const std::vector<Part>& parts) { return step(parts, Write::kYes); }

Result<std::vector<float>> Pages::step(const std::vector<Part>& parts, Write write) {
    const size_t width = size_t{shape_.heads} * shape_.head_dim, kv_width = size_t{shape_.kv_heads} * shape_.head_dim;
    std::vector<int32_t> starts = {0}, lens, positions, tables;
    std::vector<int64_t> slots;
    std::vector<float> q, k, v;
    uint32_t max_blocks = 0, max_query = 0, max_len = 0;
    for (const Part& p : parts)
        max_blocks = std::max(max_blocks, (p.to + shape_.block_size - 1) / shape_.block_size + 2);
    for (const Part& p : parts) {
        const auto add = [&](std::vector<float>& to, const std::vector<float>& from, size_t w) {
            to.insert(to.end(), from.begin() + static_cast<ptrdiff_t>(p.from * w),
                      from.begin() + static_cast<ptrdiff_t>(p.to * w));
        };
        add(q, p.tokens->q, width);
        add(k, p.tokens->k, kv_width);
        add(v, p.tokens->v, kv_width);
        for (uint32_t t = p.from; t < p.to; ++t) {
            positions.push_back(static_cast<int32_t>(t));
            const int64_t slot =
                int64_t{page_of(p.sequence, t / shape_.block_size)} * shape_.block_size + t % shape_.block_size;
            slots.push_back(write == Write::kYes ? slot : -1);
        }
        starts.push_back(static_cast<int32_t>(positions.size()));
        lens.push_back(static_cast<int32_t>(p.to));
        const uint32_t used = (p.to + shape_.block_size - 1) / shape_.block_size;
        for (uint32_t b = 0; b < max_blocks; ++b)
            tables.push_back(b < used ? static_cast<int32_t>(page_of(p.sequence, b)) : -1);
        max_query = std::max(max_query, p.to - p.from);
        max_len = std::max(max_len, p.to);
    }
    const auto tokens = static_cast<int64_t>(positions.size());
    const pb_attention_batch batch{sizeof batch,
                                   static_cast<uint32_t>(parts.size()),
                                   static_cast<uint32_t>(tokens),
                                   max_blocks,
                                   starts.data(),
                                   lens.data(),
                                   tables.data(),
                                   slots.data(),
                                   positions.data(),
                                   max_query,
                                   max_len};
    const pb_kv_view kv{reinterpret_cast<uint8_t*>(memory_.data()), layout_.page_bytes, pages_, 0};
    std::vector<float> out(static_cast<size_t>(tokens) * width, std::numeric_limits<float>::quiet_NaN());
    const int64_t heads = shape_.heads, kv_heads = shape_.kv_heads, dim = shape_.head_dim;
    const pb_tensor qt = tensor(q.data(), PB_F32, {tokens, heads, dim}),
                    ot = tensor(out.data(), PB_F32, {tokens, heads, dim});
    const pb_tensor kt = tensor(k.data(), PB_F32, {tokens, kv_heads, dim}),
                    vt = tensor(v.data(), PB_F32, {tokens, kv_heads, dim});
    void* self = component_->self();
    PB_CHECK(
        component_->check(table().plan(self, bound_, &batch, layout_.plan_bytes ? plan_.data() : nullptr), "plan"));
    table().append_kv(self, bound_, &batch, &kv, &kt, &vt);
    table().run(self, bound_, &batch, &kv, &ot, &qt);
    return out;
}

}  // namespace patchbay::conformance
