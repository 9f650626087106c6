// The layers' KV: their groups, and attention bound for each. Part of KvMemory.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "host/component.hpp"
#include "kv/groups.hpp"
#include "patchbay/abi/model.h"
#include "runner/attention_binding.hpp"

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
    // Both must outlive it; the attention, until another one or none is bound.
    KvLayers(const host::Device& device, const host::Component& attention)
        : device_(device), attention_(attention) {}

    // What each layer keeps.
    Result<std::vector<kv::LayerKv>> describe(std::span<const pb_kv_spec> layers, const KvForm&);
    // The grouping may be that of several models: its `layers` are the places of this one's.
    Result<> bind(std::span<const pb_kv_spec> layers, const KvForm&, kv::Grouping);
    // ---- another attention
    Result<> check_pages(const host::Component& attention) const; // that it can have these. [any thread]
    // Binds it in place of the current one, which stays bound beside it until unbind_other(). A failure changes
    // nothing. True: it can read what is in the pages.
    Result<bool> rebind(const host::Component& attention);
    void unbind_other() { other_.reset(); }
    bool keeps(const host::Component& attention) const { return other_ && &other_->attention() == &attention; }
    void unbind(); // all: nothing attends any more

    std::span<const pb_kv_spec> layers() const { return layers_; }
    const kv::Grouping& grouping() const { return grouping_; }
    const AttentionBinding& binding() const { return *bound_; }
    const BoundAttention* bound_of(uint32_t layer) const { // null: it keeps a state
        return bound_of_[layer] < 0 ? nullptr : &bound_->all()[static_cast<size_t>(bound_of_[layer])];
    }
    bool keeps_its_own(uint32_t layer) const { return layers_[layer].kv_source_layer == 0; } // else another's k and v
    uint32_t group_of(uint32_t layer) const { return grouping_.layers[layer].group; }

  private:
    Result<std::unique_ptr<AttentionBinding>> bind(const host::Component& attention) const; // as specs_ say

    const host::Device& device_;
    const host::Component& attention_; // the first
    KvForm form_;
    std::vector<pb_kv_spec> layers_;
    std::vector<uint64_t> layer_bytes_; // of a page
    std::vector<GroupAttention> specs_; // of what is bound
    std::vector<int32_t> bound_of_;     // by layer
    kv::Grouping grouping_;
    std::unique_ptr<AttentionBinding> bound_, other_; // current; the one before it, or none
};

}  // namespace patchbay::runner
