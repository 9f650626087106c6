// The layers' KV on a device: their groups, attention bound for each, and the pool's memory. Part of the ModelRunner.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "host/component.hpp"
#include "kv/block_pool.hpp"
#include "kv/groups.hpp"
#include "patchbay/abi/model.h"

namespace patchbay::runner {

struct KvForm { // what a page of tokens holds
    uint32_t block_size;
    pb_dtype activation_dtype;
    std::vector<pb_dtype> kv_dtypes; // by layer
    std::string device; // the device plugin's name
    bool simulated = false; // it computes nothing
    uint32_t max_seqs = 0, max_tokens = 0, max_seq_len = 0; // of a batch, as in pb_attention_spec
};

class KvLayers {
  public:
    struct BoundAttention { // for layers of one group, dtype, scale and soft cap
        void *self, *plan_buffer;
        uint32_t group;
    };

    // Both must outlive it.
    KvLayers(const host::Device& device, const host::Attention& attention) : device_(device), attention_(attention) {}
    ~KvLayers();
    KvLayers(const KvLayers&) = delete;
    KvLayers& operator=(const KvLayers&) = delete;

    // What each layer keeps.
    Result<std::vector<kv::LayerKv>> describe(std::span<const pb_kv_spec> layers, const KvForm&);
    // The grouping may be that of several models: its `layers` are the places of this one's.
    Result<> bind(std::span<const pb_kv_spec> layers, const KvForm&, kv::Grouping);
    Result<> allocate(uint32_t pages); // in place of what was
    void release();                    // no pages are left
    void share_pool(const KvLayers& other) { pool_ = &other; } // pages are those of another model's, which outlives it

    const kv::Grouping& grouping() const { return grouping_; }
    uint32_t page_count() const { return pool_->page_count_; }
    const std::string& layout_tag() const { return layout_tag_; } // of all layers
    pb_attention_graphs graphs() const { return graphs_; } // what every bound attention can capture
    std::span<const BoundAttention> bound() const { return bound_; }
    const BoundAttention* bound_of(uint32_t layer) const { // null: it keeps a state
        return bound_of_[layer] < 0 ? nullptr : &bound_[static_cast<size_t>(bound_of_[layer])];
    }
    bool keeps_its_own(uint32_t layer) const { return !shares_[layer]; } // else k and v are another layer's
    uint32_t group_of(uint32_t layer) const { return grouping_.layers[layer].group; }
    pb_kv_view view(uint32_t layer) const;
    void* page(kv::BlockId) const; // of all layers; null on a device that computes nothing

  private:
    Result<kv::LayerKv> describe(const pb_kv_spec&, const pb_attention_spec&) const;
    Result<> bind(const pb_attention_spec&, uint32_t group);

    const host::Device& device_;
    const host::Attention& attention_;
    kv::Grouping grouping_;
    std::string layout_tag_;
    pb_attention_graphs graphs_ = PB_GRAPHS_ANY;
    std::vector<BoundAttention> bound_;
    std::vector<int32_t> bound_of_; // by layer
    std::vector<bool> shares_;      // likewise
    const KvLayers* pool_ = this;   // where the pages are
    void* memory_ = nullptr;        // (page_count, grouping.page_bytes)
    uint32_t page_count_ = 0;
};

}  // namespace patchbay::runner
