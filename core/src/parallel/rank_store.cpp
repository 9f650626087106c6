#include "parallel/rank_store.hpp"

#include "base/refusals.hpp"
#include "parallel/bytes.hpp"
#include "parallel/store_limits.hpp"

namespace patchbay::parallel {
namespace {

constexpr size_t kMaxPrefix = 64; // "connection 12/" of a device's key
constexpr size_t kMaxKey = kMaxPrefix + kMaxDeviceKey, kMaxQuestions = 1024;

// Devices store an address for each pair of ranks.
size_t max_values(size_t ranks) { return 4096 + 4 * ranks * ranks; }

void answer(Peer& p, uint64_t number, const std::string* value) {
    ByteWriter out;
    out.put(number);
    out.put(static_cast<uint8_t>(value != nullptr));
    out.put(value ? std::string_view(*value) : std::string_view());
    (void)p.connection.post(MessageType::kStoreValue, out.bytes());
}

}  // namespace

void RankStore::clear() {
    values_.clear();
    for (const auto& p : peers_.all()) p->questions.clear();
}

void RankStore::set(const std::string& key, std::string value) {
    const auto stored = values_.emplace(key, std::move(value)); // clang 14: lambdas cannot capture structured bindings
    if (!stored.second) return;
    for (const auto& p : peers_.all())
        std::erase_if(p->questions, [&](const Peer::Question& q) {
            if (q.key == key) answer(*p, q.number, &stored.first->second);
            return q.key == key;
        });
}

void RankStore::forget(std::string_view prefix) {
    std::erase_if(values_, [&](const auto& value) { return value.first.starts_with(prefix); });
}

Result<> RankStore::on_set(std::string_view message, bool open) {
    ByteReader in(message);
    const std::string key = in.text(), value = in.text();
    PB_CHECK(in.done("what it stores"));
    if (key.size() > kMaxKey || value.size() > kMaxStoreValue || values_.size() >= max_values(peers_.size()))
        return invalid("stores too much");
    if (open) set(key, value);
    return {};
}

Result<> RankStore::on_get(Peer& p, std::string_view message, bool open) {
    ByteReader in(message);
    const auto number = in.get<uint64_t>();
    const std::string key = in.text();
    PB_CHECK(in.done("what it asks of the store"));
    if (key.size() > kMaxKey || p.questions.size() >= kMaxQuestions) return invalid("asks too much of the store");
    const auto at = values_.find(key);
    if (!open) answer(p, number, nullptr);
    else if (at != values_.end()) answer(p, number, &at->second);
    else p.questions.push_back({number, key});
    return {};
}

}  // namespace patchbay::parallel
