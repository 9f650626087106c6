// patchbay/sdk/kv_rows.hpp - the plainest layout of a page of KV, for attention in host memory: the keys of its tokens
// (block_size, kv_heads, head_dim), then their values likewise, in f32 or bf16. A row is one token's of one head.
#pragma once
#include <cstdio>
#include <cstring>

#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay {

// Row (token, head) of a tensor (T, heads, head_dim) f32.
inline float* head_row(const pb_tensor& x, int64_t token, int64_t head) {
    return static_cast<float*>(x.data) + token * x.strides[0] + head * x.strides[1];
}

class KvRows {
  public:
    enum class Part : uint32_t { kKeys = 0, kValues = 1 };

    // Throws Error(PB_UNSUPPORTED) for KV other than f32 or bf16, and for what check_heads_and_pages() refuses.
    explicit KvRows(const pb_attention_spec& spec)
        : block_size_(spec.block_size), kv_heads_(spec.kv_heads), head_dim_(spec.head_dim), dtype_(spec.kv_dtype) {
        check_heads_and_pages(spec);
        if (dtype_ != PB_F32 && dtype_ != PB_BF16)
            throw Error(PB_UNSUPPORTED, std::string("kv dtype ") + dtype_name(dtype_) + " is neither f32 nor bf16");
    }

    // What describe() returns; `backend`: the first word of the layout's tag.
    pb_attention_layout layout(const char* backend) const {
        auto out = sized<pb_attention_layout>();
        out.page_bytes = uint64_t{2} * block_size_ * kv_heads_ * row_bytes();
        std::snprintf(out.layout_tag, sizeof out.layout_tag, "%s/%s/%ux%ux%u", backend, dtype_name(dtype_),
                      block_size_, kv_heads_, head_dim_);
        return out;
    }

    // slot: page · block_size + offset in it. row: (head_dim).
    void write(const pb_kv_view& kv, Part part, int64_t slot, uint32_t head, const float* row) const noexcept {
        uint8_t* const to = address(kv, part, slot, head);
        if (dtype_ == PB_F32) {
            std::memcpy(to, row, row_bytes());
            return;
        }
        for (uint32_t i = 0; i < head_dim_; ++i) reinterpret_cast<uint16_t*>(to)[i] = f32_to_bf16(row[i]);
    }
    void read(const pb_kv_view& kv, Part part, int64_t slot, uint32_t head, float* row) const noexcept {
        const uint8_t* const from = address(kv, part, slot, head);
        if (dtype_ == PB_F32) {
            std::memcpy(row, from, row_bytes());
            return;
        }
        for (uint32_t i = 0; i < head_dim_; ++i) row[i] = bf16_to_f32(reinterpret_cast<const uint16_t*>(from)[i]);
    }

  private:
    uint64_t row_bytes() const { return static_cast<uint64_t>(dtype_bytes(dtype_)) * head_dim_; }
    uint8_t* address(const pb_kv_view& kv, Part part, int64_t slot, uint32_t head) const {
        const uint64_t page = static_cast<uint64_t>(slot) / block_size_;
        const uint64_t offset = static_cast<uint64_t>(slot) % block_size_;
        const uint64_t before = static_cast<uint64_t>(part) * block_size_ + offset; // tokens
        return kv.data + page * kv.page_stride + (before * kv_heads_ + head) * row_bytes();
    }

    uint32_t block_size_, kv_heads_, head_dim_;
    pb_dtype dtype_;
};

}  // namespace patchbay
