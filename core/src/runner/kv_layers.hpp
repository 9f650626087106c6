// The layers' KV on a device: their groups, attention bound for each, and the pool's memory. Part of KvMemory.
#pragma once
#include <span>
#include <string>
#include <utility>
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
    struct BoundAttention { // for layers of one group, dtype, scale and soft cap, with sinks or without
        void *self, *plan_buffer;
        uint32_t group;
    };

    // Both must outlive it; the attention, until another one or none is bound.
    KvLayers(const host::Device& device, const host::Component& attention) : device_(device) {
        bound_.attention = &attention;
    }
    ~KvLayers();
    KvLayers(const KvLayers&) = delete;
    KvLayers& operator=(const KvLayers&) = delete;

    // What each layer keeps.
    Result<std::vector<kv::LayerKv>> describe(std::span<const pb_kv_spec> layers, const KvForm&);
    // The grouping may be that of several models: its `layers` are the places of this one's.
    Result<> bind(std::span<const pb_kv_spec> layers, const KvForm&, kv::Grouping);
    // ---- another attention
    Result<> check_pages(const host::Component& attention) const; // that it can have these. [any thread]
    // Binds it in place of the current one, which stays bound beside it until unbind_other(). A failure changes
    // nothing. True: it can read what is in the pages.
    Result<bool> rebind(const host::Component& attention);
    void unbind_other();
    void unbind(); // all: nothing attends any more
    Result<> allocate(uint32_t pages); // in place of what was
    void release();                    // no pages are left
    void share_pool(const KvLayers& other) { pool_ = &other; } // pages are those of another model's, which outlives it

    std::span<const pb_kv_spec> layers() const { return layers_; }
    const kv::Grouping& grouping() const { return grouping_; }
    uint32_t page_count() const { return pool_->page_count_; }
    const std::string& layout_tag() const { return bound_.layout_tag; } // of all layers
    pb_attention_graphs graphs() const { return bound_.graphs; } // what every bound attention can capture
    std::span<const BoundAttention> bound() const { return bound_.attentions; }
    const BoundAttention* bound_of(uint32_t layer) const { // null: it keeps a state
        return bound_of_[layer] < 0 ? nullptr : &bound_.attentions[static_cast<size_t>(bound_of_[layer])];
    }
    bool keeps_its_own(uint32_t layer) const { return !shares_[layer]; } // else k and v are another layer's
    uint32_t group_of(uint32_t layer) const { return grouping_.layers[layer].group; }
    pb_kv_view view(uint32_t layer, const float* sinks) const; // sinks: the layer's, null: none
    void* page(kv::BlockId) const; // of all layers; null on a device that computes nothing

  private:
    struct Bound { // all that is bound of one attention
        const host::Component* attention = nullptr;
        std::vector<BoundAttention> attentions;
        pb_attention_graphs graphs = PB_GRAPHS_ANY;
        std::string layout_tag; // of all layers
    };
    static Result<kv::LayerKv> describe(const host::Component& attention, const pb_kv_spec&, const pb_attention_spec&);
    Result<std::vector<kv::LayerKv>> describe_all(const host::Component& attention) const;
    Result<> bind(Bound&) const; // as specs_ say
    void unbind(Bound&) const;

    const host::Device& device_;
    KvForm form_;
    std::vector<pb_kv_spec> layers_;
    std::vector<uint64_t> layer_bytes_; // of a page
    std::vector<std::pair<pb_attention_spec, uint32_t>> specs_; // of what is bound, and its group
    kv::Grouping grouping_;
    Bound bound_, other_; // current; the one before it, or none
    std::vector<int32_t> bound_of_; // by layer
    std::vector<bool> shares_;      // likewise
    const KvLayers* pool_ = this;   // where the pages are
    void* memory_ = nullptr;        // (page_count, grouping.page_bytes)
    uint32_t page_count_ = 0;
};

}  // namespace patchbay::runner
