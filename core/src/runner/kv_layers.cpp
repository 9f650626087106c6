#include "runner/kv_layers.hpp"

#include <algorithm>

namespace patchbay::runner {
namespace {

constexpr uint64_t kLayerAlign = 64; // of what a layer has in a page

uint64_t aligned(uint64_t bytes) { return (bytes + kLayerAlign - 1) / kLayerAlign * kLayerAlign; }

pb_attention_spec spec_of(const pb_kv_spec& kv, const KvForm& form, size_t layer) {
    return {sizeof(pb_attention_spec), kv.heads, kv.kv_heads, kv.head_dim, form.block_size,
            kv.kind == PB_KV_SLIDING ? kv.sliding_window : 0, form.activation_dtype, form.kv_dtypes[layer], kv.scale,
            kv.soft_cap, form.device.c_str(), form.max_seqs, form.max_tokens, form.max_seq_len, form.simulated,
            kv.slopes, kv.sinks != 0, 0};
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
    unbind();
    release();
}

void KvLayers::unbind() {
    unbind_other();
    unbind(bound_);
}

void KvLayers::unbind_other() { unbind(other_); }

void KvLayers::unbind(Bound& bound) const {
    for (const BoundAttention& b : bound.attentions) {
        if (b.self) host::call<&pb_attention::unbind>(*bound.attention, b.self);
        if (b.plan_buffer) device_.call<&pb_device::free>(b.plan_buffer);
    }
    bound = {};
}

Result<kv::LayerKv> KvLayers::describe(const host::Component& attention, const pb_kv_spec& kv,
                                       const pb_attention_spec& spec) {
    if (kv.kind == PB_KV_RECURRENT) {
        if (kv.state_bytes == 0) return fail("is recurrent and keeps no state");
        return kv::LayerKv{{kv::GroupKind::kRecurrent, 0}, 0, 0, aligned(kv.state_bytes), "state"};
    }
    if (kv.kind != PB_KV_FULL && kv.kind != PB_KV_SLIDING) return fail("keeps KV of kind " + std::to_string(kv.kind));
    if (kv.kind == PB_KV_SLIDING && kv.sliding_window == 0) return fail("has a sliding window of no token");
    if (spec.slopes && !(attention.table<pb_attention>()->capabilities & PB_ATTENTION_SLOPES))
        return fail(StatusCode::kUnsupported, "adds to scores by distance (ALiBi), which " +
                                                  std::string(attention.label()) +
                                                  " does not do (choose paged or reference, on the device cpu)");
    if (spec.sinks && !(attention.table<pb_attention>()->capabilities & PB_ATTENTION_SINKS))
        return fail(StatusCode::kUnsupported, "has attention sinks, which " + std::string(attention.label()) +
                                                  " does not do (paged, paged_cuda and reference do)");
    pb_attention_layout layout = sized<pb_attention_layout>();
    PB_CHECK(host::checked<&pb_attention::describe>(attention, &spec, &layout));
    if (layout.page_bytes == 0)
        return fail(attention.label() + std::string(" describes empty pages"));
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
    const host::Component& attention = *bound_.attention;
    std::vector<kv::LayerKv> kept;
    for (size_t i = 0; i < layers.size(); ++i) {
        auto described = describe(attention, layers[i], spec_of(layers[i], form, i));
        if (!described) return fail("layer " + std::to_string(i) + ": " + described.error());
        const auto owner = owner_of(layers, i);
        if (!owner) return fail("layer " + std::to_string(i) + " " + owner.error());
        const kv::LayerKv* const its = *owner ? &kept[**owner] : nullptr;
        if (its && (its->bytes != described->bytes || its->layout_tag != described->layout_tag))
            return fail("layer " + std::to_string(i) + " shares the KV of layer " + std::to_string(**owner) +
                        ", which " + attention.label() + " lays out as " +
                        its->layout_tag + " and not as " + described->layout_tag);
        kept.push_back(*std::move(described));
        kept.back().owner = *owner;
    }
    bound_.layout_tag = tag_of(kept);
    for (const kv::LayerKv& layer : kept) layer_bytes_.push_back(layer.bytes);
    return kept;
}

Result<> KvLayers::bind(std::span<const pb_kv_spec> layers, const KvForm& form, kv::Grouping grouping) {
    grouping_ = std::move(grouping);
    form_ = form;
    layers_.assign(layers.begin(), layers.end());
    for (uint32_t i = 0; i < layers.size(); ++i) {
        shares_.push_back(layers[i].kv_source_layer != 0);
        if (layers[i].kind == PB_KV_RECURRENT) {
            bound_of_.push_back(-1);
            continue;
        }
        const pb_attention_spec spec = spec_of(layers_[i], form_, i); // which names the device by form_'s text
        const auto found = std::find_if(specs_.begin(), specs_.end(), [&](const auto& other) {
            return other.second == group_of(i) && other.first.heads == spec.heads &&
                   other.first.kv_dtype == spec.kv_dtype && other.first.scale == spec.scale &&
                   other.first.soft_cap == spec.soft_cap && other.first.slopes == spec.slopes &&
                   other.first.sinks == spec.sinks;
        });
        bound_of_.push_back(static_cast<int32_t>(found - specs_.begin()));
        if (found == specs_.end()) specs_.emplace_back(spec, group_of(i));
    }
    return bind(bound_);
}

Result<> KvLayers::bind(Bound& bound) const {
    for (const auto& [spec, group] : specs_) {
        pb_attention_layout layout = sized<pb_attention_layout>();
        PB_CHECK(host::checked<&pb_attention::describe>(*bound.attention, &spec, &layout));
        bound.graphs = std::min(bound.graphs, layout.graphs);
        BoundAttention& one = bound.attentions.emplace_back(BoundAttention{nullptr, nullptr, group});
        PB_CHECK(host::checked<&pb_attention::bind>(*bound.attention, &spec, &one.self));
        if (layout.plan_bytes > 0)
            PB_CHECK(device_.checked<&pb_device::alloc>(layout.plan_bytes, &one.plan_buffer));
    }
    return {};
}

Result<std::vector<kv::LayerKv>> KvLayers::describe_all(const host::Component& attention) const {
    std::vector<kv::LayerKv> out;
    for (size_t i = 0; i < layers_.size(); ++i) {
        auto layer = describe(attention, layers_[i], spec_of(layers_[i], form_, i));
        if (!layer) return fail("layer " + std::to_string(i) + ": " + layer.error());
        out.push_back(*std::move(layer));
    }
    return out;
}

Result<> KvLayers::check_pages(const host::Component& attention) const {
    PB_TRY(const auto layers, describe_all(attention));
    for (size_t i = 0; i < layers.size(); ++i)
        if (layers[i].bytes > layer_bytes_[i])
            return fail("a page of layer " + std::to_string(i) + " takes " + std::to_string(layers[i].bytes) +
                        " bytes as it lays it out, expected at most the " + std::to_string(layer_bytes_[i]) +
                        " that the engine was started with (start it with this attention)");
    return {};
}

Result<bool> KvLayers::rebind(const host::Component& attention) {
    if (other_.attention != &attention) {
        PB_TRY(const auto layers, describe_all(attention));
        Bound bound{&attention, {}, PB_GRAPHS_ANY, tag_of(layers)};
        if (const Result<> done = bind(bound); !done) {
            unbind(bound);
            return done.failure();
        }
        unbind_other();
        other_ = std::move(bound);
    }
    std::swap(bound_, other_);
    return bound_.layout_tag == other_.layout_tag;
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

pb_kv_view KvLayers::view(uint32_t layer, const float* sinks) const {
    uint8_t* const memory = static_cast<uint8_t*>(pool_->memory_);
    return {sizeof(pb_kv_view), 0, memory ? memory + grouping_.layers[layer].offset : nullptr, grouping_.page_bytes,
            page_count(), layer, sinks};
}

void* KvLayers::page(kv::BlockId id) const {
    uint8_t* const memory = static_cast<uint8_t*>(pool_->memory_);
    return memory ? memory + static_cast<uint64_t>(id) * grouping_.page_bytes : nullptr;
}

}  // namespace patchbay::runner
