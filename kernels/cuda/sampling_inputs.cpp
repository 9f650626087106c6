#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "kernels/cuda_sampling.hpp"

namespace patchbay::kernels::cuda {

void SamplingInputs::clear(int64_t vocab) {
    vocab_ = vocab;
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

    std::map<int32_t, SamplingEntry> entries; // by token, so that equal rows are packed alike
    const auto entry = [&](int32_t token) -> SamplingEntry& {
        return entries.try_emplace(token, SamplingEntry{token, 0, -1}).first->second;
    };
    for (const SamplingBias& b : r.bias)
        if (b.token >= 0 && b.token < vocab_) entry(b.token).bias += b.bias;
    if (r.repetition != 1 || r.presence != 0 || r.frequency != 0) {
        for (const int32_t token : r.prompt) entry(token).count = 0;
        for (const int32_t token : r.output) {
            SamplingEntry& e = entry(token);
            e.count = e.count < 0 ? 1 : e.count + 1;
        }
    }
    row.entry = static_cast<uint32_t>(entries_.size());
    row.entry_count = static_cast<uint32_t>(entries.size());
    for (const auto& [token, e] : entries) entries_.push_back(e);

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
