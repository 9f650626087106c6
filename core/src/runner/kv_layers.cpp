#include "runner/kv_layers.hpp"

#include <algorithm>
#include <utility>

#include "base/refusals.hpp"

namespace patchbay::runner {
namespace {

constexpr uint64_t kLayerAlign = 64; // of what a layer has in a page

uint64_t aligned(uint64_t bytes) { return (bytes + kLayerAlign - 1) / kLayerAlign * kLayerAlign; }

Result<kv::LayerKv> describe(const host::Component& attention, const pb_kv_spec& kv, const pb_attention_spec& spec) {
    if (kv.kind == PB_KV_RECURRENT) {
        if (kv.state_bytes == 0) return fail("is recurrent and keeps no state");
        return kv::LayerKv{{kv::GroupKind::kRecurrent, 0}, 0, 0, aligned(kv.state_bytes), "state"};
    }
    if (kv.kind != PB_KV_FULL && kv.kind != PB_KV_SLIDING) return fail("keeps KV of kind " + std::to_string(kv.kind));
    if (kv.kind == PB_KV_SLIDING && kv.sliding_window == 0) return fail("has a sliding window of no token");
    const auto refuse = [&](const std::string& what) {
        return fail(StatusCode::kUnsupported,
                    what + ", which " + attention.label() +
                        " does not do (choose another: patchbay plugin list --kind attention)");
    };
    if (spec.slopes && !(attention.table<pb_attention>()->capabilities & PB_ATTENTION_SLOPES))
        return refuse("adds to scores by distance (ALiBi)");
    if (spec.sinks && !(attention.table<pb_attention>()->capabilities & PB_ATTENTION_SINKS))
        return refuse("has attention sinks");
    pb_attention_layout layout = sized<pb_attention_layout>();
    PB_CHECK(host::checked<&pb_attention::describe>(attention, &spec, &layout));
    if (layout.page_bytes == 0)
        return fail(attention.label() + std::string(" describes empty pages"));
    const std::string tag(layout.layout_tag, std::find(layout.layout_tag, std::end(layout.layout_tag), '\0'));
    const auto kind = kv.kind == PB_KV_SLIDING ? kv::GroupKind::kSliding : kv::GroupKind::kFull;
    return kv::LayerKv{{kind, spec.sliding_window}, kv.kv_heads, kv.head_dim, aligned(layout.page_bytes), tag};
}

// What an attention is asked with; it names the device by the form's text.
pb_attention_spec attention_spec(const pb_kv_spec& kv, const KvForm& form, size_t layer) {
    return {sizeof(pb_attention_spec), kv.heads, kv.kv_heads, kv.head_dim, form.block_size,
            kv.kind == PB_KV_SLIDING ? kv.sliding_window : 0, form.activation_dtype, form.kv_dtypes[layer], kv.scale,
            kv.soft_cap, form.device.c_str(), form.max_seqs, form.max_tokens, form.max_seq_len, form.simulated,
            kv.slopes, kv.sinks != 0, 0};
}

// Which earlier layer's KV it attends over; none: it keeps its own. A failure says what about that layer is wrong.
Result<std::optional<uint32_t>> kv_owner(std::span<const pb_kv_spec> layers, size_t layer) {
    const pb_kv_spec& kv = layers[layer];
    if (kv.kv_source_layer == 0) return std::optional<uint32_t>();
    const uint32_t owner = kv.kv_source_layer - 1;
    const auto refuse = [&](const std::string& why) {
        return fail("shares the KV of layer " + std::to_string(owner) + ", which " + why);
    };
    if (owner >= layer) return refuse("is not an earlier one");
    const pb_kv_spec& its = layers[owner];
    if (its.kv_source_layer != 0) return refuse("keeps none");
    if (kv.kind == PB_KV_RECURRENT || its.kind == PB_KV_RECURRENT) return refuse("is not for states");
    if (its.kind != kv.kind || its.sliding_window != kv.sliding_window)
        return refuse("sees another span of tokens (other kinds or windows)");
    if (its.kv_heads != kv.kv_heads || its.head_dim != kv.head_dim)
        return refuse("has " + std::to_string(its.kv_heads) + " heads of " + std::to_string(its.head_dim) +
                      ", expected " + std::to_string(kv.kv_heads) + " of " + std::to_string(kv.head_dim));
    return std::optional(owner);
}

// The page of each layer that it describes; a failure names the layer.
Result<std::vector<kv::LayerKv>> describe_layers(const host::Component& attention, std::span<const pb_kv_spec> layers,
                                                 const KvForm& form) {
    std::vector<kv::LayerKv> out;
    for (size_t i = 0; i < layers.size(); ++i) {
        auto layer = describe(attention, layers[i], attention_spec(layers[i], form, i));
        if (!layer) return prefixed("layer " + std::to_string(i), layer.failure());
        out.push_back(*std::move(layer));
    }
    return out;
}

// Of all layers in order: "A", or "A x4+B x20".
std::string layout_tag_of(std::span<const kv::LayerKv> layers) {
    std::string out;
    for (size_t i = 0; i < layers.size();) {
        size_t end = i;
        while (end < layers.size() && layers[end].layout_tag == layers[i].layout_tag) ++end;
        out += (i ? "+" : "") + layers[i].layout_tag;
        if (end - i < layers.size()) out += " x" + std::to_string(end - i);
        i = end;
    }
    return out;
}

}  // namespace

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
            return unsupported("layer " + std::to_string(i) + " shares the KV of layer " + std::to_string(**owner) +
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
            return unsupported("a page of layer " + std::to_string(i) + " takes " + std::to_string(layers[i].bytes) +
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
