#include "runner/kv_layers.hpp"

#include <algorithm>
#include <utility>

namespace patchbay::runner {

void KvLayers::unbind() {
    other_.reset();
    bound_.reset();
}

Result<std::vector<kv::LayerKv>> KvLayers::describe(std::span<const pb_kv_spec> layers, const KvForm& form) {
    PB_TRY(auto kept, describe_layers(attention_, layers, form));
    for (size_t i = 0; i < layers.size(); ++i) {
        const auto owner = kv_owner(layers, i);
        if (!owner) return fail(owner.code(), "layer " + std::to_string(i) + " " + owner.error());
        kept[i].owner = *owner;
        if (!*owner) continue;
        const kv::LayerKv& its = kept[**owner];
        if (its.bytes != kept[i].bytes || its.layout_tag != kept[i].layout_tag)
            return fail("layer " + std::to_string(i) + " shares the KV of layer " + std::to_string(**owner) +
                        ", which " + attention_.label() + " lays out as " + its.layout_tag + " and not as " +
                        kept[i].layout_tag);
    }
    for (const kv::LayerKv& layer : kept) layer_bytes_.push_back(layer.bytes);
    return kept;
}

Result<> KvLayers::bind(std::span<const pb_kv_spec> layers, const KvForm& form, kv::Grouping grouping) {
    grouping_ = std::move(grouping);
    form_ = form;
    layers_.assign(layers.begin(), layers.end());
    for (uint32_t i = 0; i < layers.size(); ++i) {
        if (layers[i].kind == PB_KV_RECURRENT) {
            bound_of_.push_back(-1);
            continue;
        }
        const pb_attention_spec spec = attention_spec(layers_[i], form_, i);
        const auto found = std::find_if(specs_.begin(), specs_.end(), [&](const GroupAttention& other) {
            return other.group == group_of(i) && other.spec.heads == spec.heads &&
                   other.spec.kv_dtype == spec.kv_dtype && other.spec.scale == spec.scale &&
                   other.spec.soft_cap == spec.soft_cap && other.spec.slopes == spec.slopes &&
                   other.spec.sinks == spec.sinks;
        });
        bound_of_.push_back(static_cast<int32_t>(found - specs_.begin()));
        if (found == specs_.end()) specs_.push_back({spec, group_of(i)});
    }
    PB_TRY(bound_, bind(attention_));
    return {};
}

Result<std::unique_ptr<AttentionBinding>> KvLayers::bind(const host::Component& attention) const {
    PB_TRY(const auto kept, describe_layers(attention, layers_, form_));
    auto out = std::make_unique<AttentionBinding>(device_, attention, layout_tag_of(kept));
    PB_CHECK(out->bind(specs_));
    return out;
}

Result<> KvLayers::check_pages(const host::Component& attention) const {
    PB_TRY(const auto layers, describe_layers(attention, layers_, form_));
    for (size_t i = 0; i < layers.size(); ++i)
        if (layers[i].bytes > layer_bytes_[i])
            return fail("a page of layer " + std::to_string(i) + " takes " + std::to_string(layers[i].bytes) +
                        " bytes as it lays it out, expected at most the " + std::to_string(layer_bytes_[i]) +
                        " that the engine was started with (start it with this attention)");
    return {};
}

Result<bool> KvLayers::rebind(const host::Component& attention) {
    if (!other_ || &other_->attention() != &attention) {
        PB_TRY(other_, bind(attention));
    }
    std::swap(bound_, other_);
    return bound_->layout_tag() == other_->layout_tag();
}

}  // namespace patchbay::runner
