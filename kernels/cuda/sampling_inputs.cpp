#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/cuda_sampling.hpp"

namespace patchbay::kernels::cuda {

void SamplingInputs::clear(int64_t vocab) {
    vocab_ = vocab;
    places_.resize(static_cast<size_t>(vocab));
    rows_.clear();
    entries_.clear();
    masks_.clear();
}

void SamplingInputs::add(const SamplingRequest& r) {
    SamplingRow row{};
    row.seed = r.seed;
    row.position = r.position;
    row.temperature = r.temperature;
    row.top_p = r.top_p;
    row.least = r.min_p > 0 ? std::log(r.min_p) : -INFINITY;
    row.repetition = r.repetition;
    row.presence = r.presence;
    row.frequency = r.frequency;
    row.top_k = r.top_k >= vocab_ ? 0 : r.top_k;
    row.logprobs = r.logprobs;

    const size_t first = entries_.size();
    const auto with_entry = [&](int32_t token, auto&& change) { // in order of appearance; ids without a logit: none
        if (token < 0 || token >= vocab_) return;
        uint32_t& place = places_[static_cast<size_t>(token)];
        if (place == 0) {
            entries_.push_back({token, 0, -1});
            place = static_cast<uint32_t>(entries_.size() - first);
        }
        change(entries_[first + place - 1]);
    };
    for (const SamplingBias& b : r.bias) with_entry(b.token, [&](SamplingEntry& e) { e.bias += b.bias; });
    if (r.repetition != 1 || r.presence != 0 || r.frequency != 0) {
        for (const int32_t token : r.prompt) with_entry(token, [](SamplingEntry& e) { e.count = 0; });
        for (const int32_t token : r.output)
            with_entry(token, [](SamplingEntry& e) { e.count = std::max(e.count, 0) + 1; });
    }
    row.entry = static_cast<uint32_t>(first);
    row.entry_count = static_cast<uint32_t>(entries_.size() - first);
    for (size_t i = first; i < entries_.size(); ++i) places_[static_cast<size_t>(entries_[i].token)] = 0;

    row.mask = -1;
    if (r.allowed) {
        row.mask = static_cast<int64_t>(masks_.size());
        masks_.insert(masks_.end(), r.allowed, r.allowed + (vocab_ + 31) / 32);
    }
    rows_.push_back(row);
}

std::span<const std::byte> SamplingInputs::pack() {
    const auto bytes_of = [](const auto& values) { return values.size() * sizeof values[0]; };
    SamplingHeader header{};
    header.rows_at = sizeof header;
    header.entries_at = header.rows_at + bytes_of(rows_);
    header.masks_at = header.entries_at + bytes_of(entries_);
    header.vocab = static_cast<int32_t>(vocab_);
    header.weight_bits = 62 - static_cast<int32_t>(std::bit_width(static_cast<uint64_t>(vocab_)));
    packed_.resize(header.masks_at + bytes_of(masks_));
    std::memcpy(packed_.data(), &header, sizeof header);
    const auto put = [&](uint64_t at, const auto& values) {
        if (!values.empty()) std::memcpy(packed_.data() + at, values.data(), bytes_of(values));
    };
    put(header.rows_at, rows_);
    put(header.entries_at, entries_);
    put(header.masks_at, masks_);
    return packed_;
}

}  // namespace patchbay::kernels::cuda
