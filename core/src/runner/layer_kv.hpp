// What an attention makes of one layer's KV: the spec that it is asked with, and the page that it describes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "host/component.hpp"
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

pb_attention_spec attention_spec(const pb_kv_spec&, const KvForm&, size_t layer); // names the device by the form's text
// Of each layer; a failure names the layer.
Result<std::vector<kv::LayerKv>> describe_layers(const host::Component& attention, std::span<const pb_kv_spec>,
                                                 const KvForm&);
// Which earlier layer's KV it attends over; none: it keeps its own. A failure says what about that layer is wrong.
Result<std::optional<uint32_t>> kv_owner(std::span<const pb_kv_spec> layers, size_t layer);
std::string layout_tag_of(std::span<const kv::LayerKv>); // of all layers in order: "A", or "A x4+B x20"

}  // namespace patchbay::runner
