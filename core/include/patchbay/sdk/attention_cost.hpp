// patchbay/sdk/attention_cost.hpp - what attention of one layer takes where each sequence's KV is read once: an
// attention's cost(), for devices that compute nothing.
#pragma once
#include <algorithm>

#include "patchbay/abi/attention.h"
#include "patchbay/sizes.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {

// Queries read the keys and values that at least one of them sees, once a KV head; q, k and v are read, what they give
// and the appended KV is written. Scores stay on the chip.
inline pb_cost attention_cost(const pb_attention_spec& spec, const pb_attention_batch& batch) {
    const bool scaled = spec.kv_dtype == PB_FP8 || spec.kv_dtype == PB_I8;
    const auto head_bytes = uint64_t(dtype_bytes(spec.kv_dtype)) * spec.head_dim + (scaled ? sizeof(float) : 0);
    const uint64_t kv_bytes = 2 * head_bytes * spec.kv_heads;                            // of a token
    const auto row_bytes = uint64_t(dtype_bytes(spec.activation_dtype)) * spec.head_dim; // of a head
    uint64_t keys_seen = 0, tokens_read = 0, appended = 0;
    for (uint32_t s = 0; s < batch.seq_count; ++s) {
        const int64_t queries = int64_t{batch.query_starts[s + 1]} - batch.query_starts[s];
        const int64_t length = batch.seq_lens[s];
        if (queries <= 0) continue;
        const int64_t window = spec.sliding_window ? int64_t{spec.sliding_window} : length;
        const int64_t before = length - queries;                            // tokens before the first query
        const int64_t growing = std::clamp<int64_t>(window - before, 0, queries); // queries that see all before them
        keys_seen += uint64_t(growing * before + growing * (growing + 1) / 2 + (queries - growing) * window);
        tokens_read += uint64_t(length - std::max<int64_t>(before + 1 - window, 0));
    }
    for (uint32_t t = 0; t < batch.token_count; ++t) appended += batch.slot_mapping[t] >= 0;
    pb_cost out = patchbay::sized<pb_cost>();
    out.launches = 2; // one appends, one attends
    out.flop = 4 * uint64_t{spec.heads} * spec.head_dim * keys_seen;
    out.flop_dtype = spec.activation_dtype;
    out.read_bytes = tokens_read * kv_bytes + batch.token_count * row_bytes * (spec.heads + 2 * spec.kv_heads);
    out.write_bytes = appended * kv_bytes + batch.token_count * row_bytes * spec.heads;
    return out;
}

}  // namespace patchbay
