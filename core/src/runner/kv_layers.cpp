#include "runner/kv_layers.hpp"

#include <algorithm>

namespace patchbay::runner {
namespace {

constexpr uint64_t kAlign = 64; // of what a layer has in a page

uint64_t aligned(uint64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

pb_attention_spec spec_of(const pb_kv_spec& kv, const KvForm& form, size_t layer) {
    return {sizeof(pb_attention_spec), kv.heads, kv.kv_heads, kv.head_dim, form.block_size,
            kv.kind == PB_KV_SLIDING ? kv.sliding_window : 0, form.activation_dtype, form.kv_dtypes[layer], kv.scale,
            kv.soft_cap, form.device.c_str(), form.max_seqs, form.max_tokens, form.max_seq_len, form.simulated};
}

// Which layer's KV it attends over, if that is not its own.
Result<std::optional<uint32_t>> owner_of(std::span<const pb_kv_spec> layers, size_t layer) {
    const pb_kv_spec& kv = layers[layer];
    if (kv.kv_source_layer == 0) return std::optional<uint32_t>();
    const uint32_t owner = kv.kv_source_layer - 1;
    const auto refuse = [&](const std::string& why) {
        return fail("shares the KV of layer " + std::to_string(owner) + ", which " + why);
    };
    if (owner >= layer) return refuse("is no earlier one");
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

}  // namespace

KvLayers::~KvLayers() {
    for (const BoundAttention& b : bound_) {
        if (b.self) attention_.call<&pb_attention::unbind>(b.self);
        if (b.plan_buffer) device_.call<&pb_device::free>(b.plan_buffer);
    }
    release();
}

Result<kv::LayerKv> KvLayers::describe(const pb_kv_spec& kv, const pb_attention_spec& spec) const {
    if (kv.kind == PB_KV_RECURRENT) {
        if (kv.state_bytes == 0) return fail("is recurrent and keeps no state");
        return kv::LayerKv{{kv::GroupKind::kRecurrent, 0}, 0, 0, aligned(kv.state_bytes), "state"};
    }
    if (kv.kind != PB_KV_FULL && kv.kind != PB_KV_SLIDING) return fail("keeps KV of kind " + std::to_string(kv.kind));
    if (kv.kind == PB_KV_SLIDING && kv.sliding_window == 0) return fail("has a sliding window of no token");
    pb_attention_layout layout = sized<pb_attention_layout>();
    PB_CHECK(attention_.checked<&pb_attention::describe>(&spec, &layout));
    if (layout.page_bytes == 0)
        return fail("attention '" + std::string(attention_.component->type().name) + "' describes empty pages");
    const std::string tag(layout.layout_tag, std::find(layout.layout_tag, std::end(layout.layout_tag), '\0'));
    const auto kind = kv.kind == PB_KV_SLIDING ? kv::GroupKind::kSliding : kv::GroupKind::kFull;
    return kv::LayerKv{{kind, spec.sliding_window}, kv.kv_heads, kv.head_dim, aligned(layout.page_bytes), tag};
}

namespace {

// Of all layers in order: "A", or "A x4+B x20".
std::string tag_of(std::span<const kv::LayerKv> layers) {
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

Result<std::vector<kv::LayerKv>> KvLayers::describe(std::span<const pb_kv_spec> layers, const KvForm& form) {
    std::vector<kv::LayerKv> kept;
    for (size_t i = 0; i < layers.size(); ++i) {
        auto described = describe(layers[i], spec_of(layers[i], form, i));
        if (!described) return fail("layer " + std::to_string(i) + ": " + described.error());
        const auto owner = owner_of(layers, i);
        if (!owner) return fail("layer " + std::to_string(i) + " " + owner.error());
        const kv::LayerKv* const its = *owner ? &kept[**owner] : nullptr;
        if (its && (its->bytes != described->bytes || its->layout_tag != described->layout_tag))
            return fail("layer " + std::to_string(i) + " shares the KV of layer " + std::to_string(**owner) +
                        ", which attention '" + std::string(attention_.component->type().name) + "' lays out as " +
                        its->layout_tag + " and not as " + described->layout_tag);
        kept.push_back(*std::move(described));
        kept.back().owner = *owner;
    }
    layout_tag_ = tag_of(kept);
    return kept;
}

Result<> KvLayers::bind(std::span<const pb_kv_spec> layers, const KvForm& form, kv::Grouping grouping) {
    grouping_ = std::move(grouping);
    std::vector<pb_attention_spec> specs; // of bound_
    for (uint32_t i = 0; i < layers.size(); ++i) {
        shares_.push_back(layers[i].kv_source_layer != 0);
        if (layers[i].kind == PB_KV_RECURRENT) {
            bound_of_.push_back(-1);
            continue;
        }
        const pb_attention_spec spec = spec_of(layers[i], form, i);
        size_t at = 0;
        while (at < specs.size() && !(bound_[at].group == group_of(i) && specs[at].heads == spec.heads &&
                                      specs[at].kv_dtype == spec.kv_dtype && specs[at].scale == spec.scale &&
                                      specs[at].soft_cap == spec.soft_cap))
            at += 1;
        bound_of_.push_back(static_cast<int32_t>(at));
        if (at < specs.size()) continue;
        PB_CHECK(bind(spec, group_of(i)));
        specs.push_back(spec);
    }
    return {};
}

Result<> KvLayers::bind(const pb_attention_spec& spec, uint32_t group) {
    pb_attention_layout layout = sized<pb_attention_layout>();
    PB_CHECK(attention_.checked<&pb_attention::describe>(&spec, &layout));
    graphs_ = std::min(graphs_, layout.graphs);
    BoundAttention& bound = bound_.emplace_back(BoundAttention{nullptr, nullptr, group});
    PB_CHECK(attention_.checked<&pb_attention::bind>(&spec, &bound.self));
    if (layout.plan_bytes > 0)
        PB_CHECK(device_.checked<&pb_device::alloc>(layout.plan_bytes, &bound.plan_buffer));
    return {};
}

void KvLayers::release() {
    if (memory_) device_.call<&pb_device::free>(memory_);
    memory_ = nullptr;
    page_count_ = 0;
}

Result<> KvLayers::allocate(uint32_t pages) {
    release();
    if (pages > UINT64_MAX / std::max<uint64_t>(grouping_.page_bytes, 1))
        return fail(std::to_string(pages) + " KV pages of " + std::to_string(grouping_.page_bytes) +
                    " bytes are more than can be counted");
    page_count_ = pages;
    return device_.checked<&pb_device::alloc>(uint64_t{pages} * grouping_.page_bytes, &memory_);
}

pb_kv_view KvLayers::view(uint32_t layer) const {
    uint8_t* const memory = static_cast<uint8_t*>(pool_->memory_);
    return {sizeof(pb_kv_view), 0, memory ? memory + grouping_.layers[layer].offset : nullptr, grouping_.page_bytes,
            page_count(), layer};
}

void* KvLayers::page(kv::BlockId id) const {
    uint8_t* const memory = static_cast<uint8_t*>(pool_->memory_);
    return memory ? memory + static_cast<uint64_t>(id) * grouping_.page_bytes : nullptr;
}

}  // namespace patchbay::runner
