#include "conformance/sequence_kv.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "kernels/reference.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::conformance {
namespace {

kernels::AttentionShape shape_of(const pb_kv_spec& s, uint32_t block_size) {
    return {.heads = int32_t(s.heads),
            .kv_heads = int32_t(s.kv_heads),
            .head_dim = int32_t(s.head_dim),
            .block_size = int32_t(block_size),
            .window = s.sliding_window,
            .scale = s.scale,
            .soft_cap = s.soft_cap,
            .kv_dtype = PB_F32,
            .slopes = s.slopes};
}

}  // namespace

Result<> SequenceKv::lay_out(const host::Component& component, uint32_t layer_count) {
    for (uint32_t layer = 0; layer < layer_count; ++layer) {
        PB_TRY(const pb_kv_spec s, (filled<&pb_model::kv_spec, pb_kv_spec>(component, layer)));
        if (s.sinks > weights_.count() || (s.sinks && weights_.at(s.sinks - 1).values.size() != s.heads))
            return fail("layer " + std::to_string(layer) + " has no sinks of its heads in the weight that it names");
        specs_.push_back(s);
        const uint64_t bytes =
            s.kind == PB_KV_RECURRENT ? 0 : kernels::reference::page_bytes(shape_of(s, kBlock)) * (kMaxTokens / kBlock);
        pages_.emplace_back(bytes / sizeof(float), NAN);
    }
    return {};
}

bool SequenceKv::has_states() const {
    return std::ranges::any_of(specs_, [](const pb_kv_spec& s) { return s.kind == PB_KV_RECURRENT; });
}

void SequenceKv::clear() {
    for (auto& page : pages_) std::ranges::fill(page, NAN);
}

Result<> SequenceKv::attend(uint32_t layer, std::span<const int32_t> positions, const pb_tensor& out,
                            const pb_tensor& q, const pb_tensor* k, const pb_tensor* v) {
    if (layer >= specs_.size() || specs_[layer].kind == PB_KV_RECURRENT)
        return fail("attend: layer " + std::to_string(layer) + " has no attention");
    const pb_kv_spec& s = specs_[layer];
    const auto tokens = static_cast<int64_t>(positions.size());
    const auto fits = [&](const pb_tensor& t, uint32_t heads) {
        return t.rank == 3 && t.shape[0] == tokens && t.shape[1] == heads && t.shape[2] == s.head_dim;
    };
    if (!fits(q, s.heads) || !fits(out, s.heads) || (k && (!fits(*k, s.kv_heads) || !v || !fits(*v, s.kv_heads))))
        return fail("attend: layer " + std::to_string(layer) + ": q is " + shape_text(q.dtype, q.shape, q.rank) +
                    ", kv_spec says " + std::to_string(s.heads) + " heads over " + std::to_string(s.kv_heads) + " of " +
                    std::to_string(s.head_dim));
    if (!k == (s.kv_source_layer == 0))
        return fail("attend: layer " + std::to_string(layer) +
                    (k ? " has keys, and shares another layer's" : " has no keys"));
    const uint32_t from = k ? layer : s.kv_source_layer - 1;
    const kernels::AttentionShape shape = shape_of(s, kBlock);
    const std::vector<int32_t> starts = {0, static_cast<int32_t>(tokens)}, lens = {positions.back() + 1};
    const std::vector<int32_t> block_starts = {0, int32_t{kMaxTokens / kBlock}};
    std::vector<int32_t> blocks(kMaxTokens / kBlock);
    std::iota(blocks.begin(), blocks.end(), 0);
    const std::vector<int64_t> slots(positions.begin(), positions.end());
    const kernels::AttentionBatch batch{.seq_count = 1,
                                        .token_count = static_cast<int32_t>(tokens),
                                        .query_starts = starts.data(),
                                        .seq_lens = lens.data(),
                                        .block_starts = block_starts.data(),
                                        .blocks = blocks.data(),
                                        .slot_mapping = slots.data(),
                                        .positions = positions.data()};
    const kernels::KvPages pages{reinterpret_cast<uint8_t*>(pages_[from].data()),
                                 kernels::reference::page_bytes(shape),
                                 s.sinks ? weights_.at(s.sinks - 1).values.data() : nullptr};
    if (k) kernels::reference::append_kv(shape, batch, pages, *k, *v);
    kernels::reference::attend(shape, batch, pages, out, q, 0, 0, static_cast<int32_t>(tokens));
    return {};
}

}  // namespace patchbay::conformance
