// patchbay/sdk/query_attention.hpp - attention in host memory that computes one query of one head at a time: a class
// that derives from QueryAttention<itself> writes attend(query, out); pages, batches and tasks are done here.
//   class Mine : public patchbay::QueryAttention<Mine> {
//     public:
//       void attend(const patchbay::Query&, float* out) const noexcept;   // out: (head_dim)
#pragma once
#include <algorithm>
#include <cmath>

#include "patchbay/sdk/kv_rows.hpp"

namespace patchbay {

// A query, and the keys and values of its sequence that it sees: those at positions first() to position().
class Query {
  public:
    static constexpr uint32_t kMaxHeadDim = 256;

    Query(const pb_attention_spec& spec, const KvRows& rows, const pb_kv_view& kv, const int32_t* blocks,
          int64_t position, uint32_t head, const float* q)
        : spec_(spec), rows_(rows), kv_(kv), blocks_(blocks), position_(position), head_(head), q_(q) {}

    uint32_t head_dim() const { return spec_.head_dim; }
    int64_t position() const { return position_; }
    int64_t first() const {
        return spec_.sliding_window ? std::max<int64_t>(0, position_ + 1 - spec_.sliding_window) : 0;
    }
    // Of the key at a position: scale · q·k, within the soft cap where there is one.
    double score(int64_t at) const noexcept {
        float key[kMaxHeadDim];
        read(KvRows::Part::kKeys, at, key);
        double sum = 0;
        for (uint32_t i = 0; i < head_dim(); ++i) sum += q_[i] * key[i];
        sum *= spec_.scale;
        return spec_.soft_cap > 0 ? spec_.soft_cap * std::tanh(sum / spec_.soft_cap) : sum;
    }
    void value(int64_t at, float* row) const noexcept { read(KvRows::Part::kValues, at, row); } // row: (head_dim)

  private:
    void read(KvRows::Part part, int64_t at, float* row) const noexcept {
        const int64_t slot = int64_t{blocks_[at / spec_.block_size]} * spec_.block_size + at % spec_.block_size;
        rows_.read(kv_, part, slot, head_ / (spec_.heads / spec_.kv_heads), row);
    }

    const pb_attention_spec& spec_;
    const KvRows& rows_;
    const pb_kv_view& kv_;
    const int32_t* const blocks_; // page ids of the sequence
    const int64_t position_;
    const uint32_t head_;
    const float* const q_; // (head_dim)
};

template <class T>
class QueryAttention {
  public:
    struct Bound { // the layers of one KV group
        pb_attention_spec spec;
        KvRows rows;
    };

    // name: the first word of the layout's tag. heads_per_task: that one task of the thread pool computes.
    QueryAttention(const Context& context, const char* name, uint32_t heads_per_task)
        : pool_(context.host()), name_(name), heads_per_task_(heads_per_task) {}

    pb_attention_layout describe(const pb_attention_spec& s) const {
        const auto refuse = [](const std::string& why) { throw Error(PB_UNSUPPORTED, why); };
        if (std::string_view(s.device ? s.device : "") != "cpu") refuse("the device is not 'cpu'");
        if (s.activation_dtype != PB_F32) refuse("activations are not f32");
        if (s.head_dim < 1 || s.head_dim > Query::kMaxHeadDim)
            refuse("head_dim " + std::to_string(s.head_dim) + " is not in 1 to " + std::to_string(Query::kMaxHeadDim));
        return KvRows(s).layout(name_);
    }
    std::unique_ptr<Bound> bind(const pb_attention_spec& s) const {
        return std::make_unique<Bound>(Bound{s, KvRows(s)});
    }
    void plan(Bound&, const pb_attention_batch&, void*) const {}

    void append_kv(Bound& b, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& k,
                   const pb_tensor& v) const noexcept {
        for (uint32_t t = 0; t < batch.token_count; ++t)
            for (uint32_t h = 0; h < b.spec.kv_heads && batch.slot_mapping[t] >= 0; ++h) {
                b.rows.write(kv, KvRows::Part::kKeys, batch.slot_mapping[t], h, head_row(k, t, h));
                b.rows.write(kv, KvRows::Part::kValues, batch.slot_mapping[t], h, head_row(v, t, h));
            }
    }
    void run(Bound& b, const pb_attention_batch& batch, const pb_kv_view& kv, const pb_tensor& out,
             const pb_tensor& q) const noexcept {
        const uint32_t heads = b.spec.heads, tasks = (heads + heads_per_task_ - 1) / heads_per_task_; // of a sequence
        pool_.run(batch.seq_count * tasks, [&](uint32_t task) {
            const uint32_t seq = task / tasks, first = task % tasks * heads_per_task_;
            for (int32_t t = batch.query_starts[seq]; t < batch.query_starts[seq + 1]; ++t)
                for (uint32_t h = first; h < std::min(heads, first + heads_per_task_); ++h)
                    attend_one(Query(b.spec, b.rows, kv, batch.blocks + batch.block_starts[seq], batch.positions[t], h,
                                     head_row(q, t, h)),
                               head_row(out, t, h));
        });
    }

  private:
    void attend_one(const Query& query, float* out) const noexcept {
        static_cast<const T*>(this)->attend(query, out);
    }

    Pool pool_;
    const char* name_;
    uint32_t heads_per_task_;
};

}  // namespace patchbay
