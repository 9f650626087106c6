// The memory of a ModelRunner's KV: what each layer keeps, pages on the device and in host memory, copies between them.
#pragma once
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "runner/batch.hpp"
#include "runner/host_pages.hpp"
#include "runner/kv_layers.hpp"
#include "runner/kv_pages.hpp"
#include "runner/open_device.hpp"
#include "runner/runner_settings.hpp"

namespace patchbay::runner {

struct LayersKv { // of one model
    std::vector<pb_kv_spec> specs;
    KvForm form;
    std::vector<kv::LayerKv> kept;
};

class KvMemory {
  public:
    // These must outlive it; the attention, until another one or none is bound.
    KvMemory(const OpenDevice& device, const host::Component& attention, Clock& clock)
        : device_(device), layers_(device.plugin, attention), own_pages_(device.plugin),
          host_pages_(device.plugin, device.info, clock), zero_page_(device.plugin) {}

    // ---- once, in this order. `padded`: tokens that a graph fills batches up to, at most
    Result<LayersKv> describe(const host::Component& model, const pb_model_facts&, const RunnerSettings&,
                              uint32_t padded);
    // The grouping may be that of several models, of whose layers this one's are those from first_layer on.
    Result<> bind(const LayersKv&, kv::Grouping, size_t first_layer);
    void share_pages(const KvMemory& other) { pages_ = &other.own_pages_; } // which outlives it
    Result<> allocate_pages(uint32_t count) { return own_pages_.allocate(count, page_bytes()); } // in place of what was
    void release_pages() { own_pages_.release(); }
    Result<> allocate_host_pages(const RunnerSettings&); // once there are pages; and a page of zeros, if that is wanted

    Result<> copy(const kv::PageCopy&); // inside a step, in order with its ops

    KvLayers& layers() { return layers_; }
    const KvLayers& layers() const { return layers_; }
    const kv::Grouping& grouping() const { return layers_.grouping(); }
    const BatchForm& batch_form() const { return form_; } // of the batches whose KV lies here
    const KvPages& pages() const { return *pages_; } // in the device's memory; those of a draft are its target's
    uint64_t page_bytes() const { return layers_.grouping().page_bytes; }
    pb_kv_view view(uint32_t layer, const float* sinks) const; // sinks: the layer's, null: none
    const HostPages& host_pages() const { return host_pages_; }
    uint32_t max_seq_len() const { return max_seq_len_; } // tokens of a sequence, at most

  private:
    Result<> clear(const kv::PageCopy&);

    const OpenDevice& device_;
    KvLayers layers_;
    KvPages own_pages_;
    const KvPages* pages_ = &own_pages_;
    HostPages host_pages_;
    DeviceMemory zero_page_; // none: zeros are not wanted
    BatchForm form_;
    uint32_t max_seq_len_ = 0;
};

}  // namespace patchbay::runner
