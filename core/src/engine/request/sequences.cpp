#include "engine/request/sequences.hpp"

#include <algorithm>

#include "engine/request/request.hpp"
#include "engine/request/sequence.hpp"
#include "kv/cached_prefix.hpp"

namespace patchbay::engine {

Sequences::Sequences() = default;
Sequences::~Sequences() = default;

Sequence& Sequences::add(std::unique_ptr<Sequence> owned) {
    Sequence& s = *owned;
    if (s.place == Place::kPending) pending_.emplace(s.request->arrival_ns, s.id);
    all_.emplace(s.id, std::move(owned));
    return s;
}

std::unique_ptr<Sequence> Sequences::remove(RequestId id) {
    auto node = all_.extract(id);
    return node ? std::move(node.mapped()) : nullptr;
}

Sequence* Sequences::find(RequestId id) const {
    const auto at = all_.find(id);
    return at == all_.end() ? nullptr : at->second.get();
}

const kv::BlockTable* Sequences::table_of(RequestId id) const {
    const Sequence* const s = find(id);
    return s ? &s->kv.table : nullptr;
}

size_t Sequences::arrived_by(uint64_t now_ns, size_t max) const {
    size_t count = 0;
    for (auto at = pending_.begin(); at != pending_.end() && at->first <= now_ns && count < max; ++at) count += 1;
    return count;
}

Sequence* Sequences::next_arrived(uint64_t now_ns) {
    if (pending_.empty() || pending_.begin()->first > now_ns) return nullptr;
    Sequence& s = *find(pending_.begin()->second);
    leave(s);
    return &s;
}

void Sequences::wait_last(Sequence& s, const pb_sequence& record) {
    s.place = Place::kWaiting;
    s.ticket = waiting_.push_back(record);
    waiting_tokens_ += s.confirmed();
}

void Sequences::wait_first(Sequence& s, const pb_sequence& record) {
    s.place = Place::kWaiting;
    s.ticket = waiting_.push_front(record);
    waiting_tokens_ += s.confirmed();
}

void Sequences::show(const Sequence& s, const pb_sequence& record) { waiting_.replace(s.ticket, record); }

void Sequences::run(Sequence& s) {
    leave(s);
    s.place = Place::kRunning;
    running_.push_back(&s);
}

void Sequences::leave(Sequence& s) {
    if (s.place == Place::kPending) pending_.erase({s.request->arrival_ns, s.id});
    if (s.place == Place::kRunning) running_.erase(std::ranges::find(running_, &s));
    if (s.place == Place::kWaiting) {
        waiting_.erase(s.ticket);
        waiting_tokens_ -= s.confirmed();
    }
    s.place = Place::kHeld;
}

std::vector<pb_sequence> Sequences::waiting_records(uint64_t now_ns, uint32_t block_size) const {
    const auto queue = waiting_.records();
    std::vector<pb_sequence> out(queue.begin(), queue.end());
    for (const auto& [arrival_ns, id] : pending_)
        if (arrival_ns <= now_ns) out.push_back(record_of(*find(id), {}, block_size));
    return out;
}

std::vector<pb_sequence> Sequences::running_records(uint32_t block_size) const {
    std::vector<pb_sequence> out;
    for (const Sequence* s : running_) out.push_back(record_of(*s, {}, block_size));
    return out;
}

}  // namespace patchbay::engine
