#include "text/word_table.hpp"

#include <cstring>
#include <functional>

namespace patchbay::text {
namespace {

uint32_t hash_of(std::string_view word) {
    if (word.size() > 16) return static_cast<uint32_t>(std::hash<std::string_view>{}(word));
    uint64_t low = 0, high = 0; // short words: their bytes are two numbers
    std::memcpy(&low, word.data(), std::min<size_t>(word.size(), 8));
    if (word.size() > 8) std::memcpy(&high, word.data() + 8, word.size() - 8);
    const uint64_t mixed =
        (low ^ word.size() << 56 ^ (high << 29 | high >> 35) * 0xC2B2AE3D27D4EB4Fu) * 0x9E3779B97F4A7C15u;
    return static_cast<uint32_t>(mixed >> 32);
}

}  // namespace

void WordTable::add(std::string_view word, TokenId id) {
    if (word.empty() || pool_.size() + word.size() > UINT32_MAX) return;
    if ((used_ + 1) * 2 > slots_.size()) grow();
    const uint32_t hash = hash_of(word);
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at].length != 0; at = (at + 1) & (slots_.size() - 1))
        if (slots_[at].hash == hash && std::string_view(pool_).substr(slots_[at].offset, slots_[at].length) == word)
            return;
    slots_[at] = {hash, static_cast<uint32_t>(word.size()), static_cast<uint32_t>(pool_.size()), id};
    pool_ += word;
    ++used_;
}

void WordTable::grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
        if (slot.length == 0) continue;
        size_t at = slot.hash & (slots_.size() - 1);
        while (slots_[at].length != 0) at = (at + 1) & (slots_.size() - 1);
        slots_[at] = slot;
    }
}

std::optional<TokenId> WordTable::find(std::string_view word) const {
    if (word.empty()) return std::nullopt;
    const uint32_t hash = hash_of(word);
    for (size_t at = hash & (slots_.size() - 1); slots_[at].length != 0; at = (at + 1) & (slots_.size() - 1)) {
        const Slot& slot = slots_[at];
        if (slot.hash == hash && slot.length == word.size() &&
            std::memcmp(pool_.data() + slot.offset, word.data(), word.size()) == 0)
            return slot.id;
    }
    return std::nullopt;
}

}  // namespace patchbay::text
