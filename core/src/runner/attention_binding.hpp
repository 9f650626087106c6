// One attention, bound once for each spec of layers that differs, with room for its plans. Part of KvLayers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "host/component.hpp"
#include "patchbay/abi/attention.h"

namespace patchbay::runner {

struct BoundAttention { // for layers of one group, dtype, scale and soft cap, with sinks or without
    void *self, *plan_buffer;
    uint32_t group;
};

struct GroupAttention { // what is to be bound
    pb_attention_spec spec;
    uint32_t group;
};

class AttentionBinding {
  public:
    // Both must outlive it.
    AttentionBinding(const host::Device& device, const host::Component& attention, std::string layout_tag)
        : device_(device), attention_(attention), layout_tag_(std::move(layout_tag)) {}
    ~AttentionBinding();
    AttentionBinding(const AttentionBinding&) = delete;
    AttentionBinding& operator=(const AttentionBinding&) = delete;

    Result<> bind(std::span<const GroupAttention>); // what was bound before a failure stays until this ends

    const host::Component& attention() const { return attention_; }
    std::span<const BoundAttention> all() const { return bound_; } // one for each that was to be
    const std::string& layout_tag() const { return layout_tag_; } // as it lays out the pages of all layers
    pb_attention_graphs graphs() const { return graphs_; } // what every one of them can capture

  private:
    const host::Device& device_;
    const host::Component& attention_;
    const std::string layout_tag_;
    std::vector<BoundAttention> bound_;
    pb_attention_graphs graphs_ = PB_GRAPHS_ANY;
};

}  // namespace patchbay::runner
