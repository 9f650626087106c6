#include "engine/placement/kv_policy_port.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "engine/loop/step_context.hpp"
#include "host/registry.hpp"

namespace patchbay::engine {
namespace {

constexpr size_t kMaxPending = 4096; // changes; a cache that evicts nothing gives them on in such portions

pb_kv_page record_of(const kv::CachedPage& p) {
    return {.page = static_cast<uint32_t>(p.page),
            .change = PB_KV_CACHED,
            .block = p.block,
            .used_us = p.released_ns / 1000,
            .parent = static_cast<uint32_t>(p.parent + 1),
            .position = p.position,
            .hits = p.hits,
            .group = p.group};
}

pb_kv_page change_of(kv::BlockId page, pb_kv_change change) {
    pb_kv_page out{};
    out.page = static_cast<uint32_t>(page);
    out.change = change;
    return out;
}

}  // namespace

KvPolicyPort::KvPolicyPort(host::KvPolicy policy, kv::KvCache& kv, const Clock& clock, StepContext& context,
                           SwapJournal& journal)
    : kv_(kv), clock_(clock), context_(context), journal_(journal),
      slot_("kv_policy", host::UnreadState::kStartsEmpty, clock) {
    if (!policy) return;
    const host::Identity identity = host::Registry::identity(*policy.component);
    slot_.install(std::move(policy.component), identity);
    kv.eviction().evict_by(*this);
}

pb_kv_pages KvPolicyPort::wire(const std::vector<pb_kv_page>& pages) const {
    return {.struct_size = sizeof(pb_kv_pages),
            .page_stride = sizeof(pb_kv_page),
            .page_count = static_cast<uint32_t>(pages.size()),
            .total_pages = kv_.pool().total(),
            .block_size = kv_.shape().block_size(),
            .reserved = 0,
            .pages = pages.data()};
}

void KvPolicyPort::update_previous() {
    const host::Component* const before = slot_.previous();
    if (!before || pending_.empty()) return;
    const pb_kv_pages changes = wire(pending_);
    if (const auto done = host::checked<&pb_kv_policy::update>(*before, &changes); !done)
        count_fault(Fault::kError, done.error());
}

Result<> KvPolicyPort::adopt() {
    if (!slot_.filled()) return {};
    update_previous();
    pending_.clear();
    const WarmUp done = std::exchange(warm_up_, {});
    if (done.knows_all && done.next == &slot_.current()) { // but for what has changed since: a step was in flight
        const pb_kv_pages changes = wire(done.changes);
        return done.changes.empty() ? Result<>() : host::checked<&pb_kv_policy::update>(slot_.current(), &changes);
    }
    std::vector<pb_kv_page> cached;
    for (const kv::CachedPage& page : kv_.pool().eviction().pages().all()) cached.push_back(record_of(page));
    const pb_kv_pages pages = wire(cached);
    return host::checked<&pb_kv_policy::adopt>(slot_.current(), &pages);
}

Result<bool> KvPolicyPort::warm_up(const host::Component& next, size_t max_pages) {
    const auto end_if_failed = [&](const Result<>& done) {
        if (!done) warm_up_ = {};
        return done;
    };
    if (warm_up_.next != &next || warm_up_.knows_all) { // else that one was refused after all
        const std::vector<bool> none_yet(kv_.pool().total());
        warm_up_ = {.next = &next, .knows = none_yet, .cached = none_yet, .changes = {}, .knows_all = false};
        kv_.eviction().pages().begin_walk();
        const pb_kv_pages none = wire({});
        PB_CHECK(end_if_failed(host::checked<&pb_kv_policy::adopt>(next, &none)));
    }
    std::vector<pb_kv_page>& changes = warm_up_.changes;
    std::vector<kv::CachedPage> portion;
    warm_up_.knows_all = !kv_.eviction().pages().walk(max_pages, portion);
    for (const kv::CachedPage& page : portion) {
        changes.push_back(record_of(page));
        warm_up_.knows[static_cast<size_t>(page.page)] = warm_up_.cached[static_cast<size_t>(page.page)] = true;
    }
    if (!changes.empty()) {
        const pb_kv_pages pages = wire(changes);
        PB_CHECK(end_if_failed(host::checked<&pb_kv_policy::update>(next, &pages)));
        changes.clear();
    }
    return warm_up_.knows_all;
}

bool KvPolicyPort::roll_back(const std::string& phase, const Failure& why) {
    if (!slot_.previous()) return false;
    journal_.note(slot_.roll_back(context_.step, phase, why));
    return true;
}

// For the next policy; what is cached is still to come where it does not know all yet.
void KvPolicyPort::note_for_next(const pb_kv_page& change) {
    WarmUp& w = warm_up_;
    const bool cached = change.change == PB_KV_CACHED, removed = change.change == PB_KV_REMOVED;
    if (!(cached ? w.knows_all : removed ? w.knows[change.page] : w.cached[change.page])) return;
    w.cached[change.page] = cached;
    if (cached || removed) w.knows[change.page] = cached;
    w.changes.push_back(change);
    if (w.changes.size() > kMaxPending + kv_.pool().total()) w = {}; // it never enters, or adopts all
}

void KvPolicyPort::note(const pb_kv_page& change) {
    if (warm_up_.next) note_for_next(change);
    pending_.push_back(change);
    if (pending_.size() >= kMaxPending) update();
}
void KvPolicyPort::cached(const kv::CachedPage& page) { note(record_of(page)); }
void KvPolicyPort::used(kv::BlockId page) { note(change_of(page, PB_KV_USED)); }
void KvPolicyPort::removed(kv::BlockId page) { note(change_of(page, PB_KV_REMOVED)); }

void KvPolicyPort::update() {
    if (pending_.empty()) return;
    const pb_kv_pages pages = wire(pending_);
    const uint64_t start = clock_.now_ns();
    const Result<> done = host::checked<&pb_kv_policy::update>(slot_.current(), &pages);
    if (const host::Component* const before = slot_.previous())
        if (const auto kept = host::checked<&pb_kv_policy::update>(*before, &pages); !kept)
            count_fault(Fault::kError, kept.error());
    context_.report.calls.kv_update_ns += clock_.now_ns() - start;
    pending_.clear();
    if (!done && !roll_back("update", done.failure())) count_fault(Fault::kError, done.error());
}

// False: it has failed, or has named too few.
bool KvPolicyPort::ask(std::span<kv::BlockId> out, size_t& named, Fault& fault, std::string& why) {
    static_assert(sizeof(kv::BlockId) == sizeof(uint32_t));
    const uint64_t start = clock_.now_ns();
    pb_kv_choice choice{.struct_size = sizeof(pb_kv_choice),
                        .max_pages = static_cast<uint32_t>(out.size()),
                        .pages = reinterpret_cast<uint32_t*>(out.data()),
                        .page_count = 0,
                        .reserved = 0,
                        .now_us = start / 1000};
    const host::Component& policy = slot_.current();
    const Result<> done = host::checked<&pb_kv_policy::choose>(policy, &choice);
    context_.report.calls.kv_choose_ns += clock_.now_ns() - start;
    named = done && choice.page_count <= out.size() ? choice.page_count : 0;
    if (done && choice.page_count == out.size()) return true;
    fault = done ? Fault::kContract : Fault::kError;
    why = done ? policy.label() + (": choose: names " + std::to_string(choice.page_count)) + " pages, expected " +
                       std::to_string(out.size())
                 : done.error();
    return false;
}

size_t KvPolicyPort::choose(std::span<kv::BlockId> out) {
    update();
    size_t named = 0;
    Fault fault = Fault::kError;
    std::string why;
    bool chosen = ask(out, named, fault, why);
    if (!chosen && roll_back("choose", fail(why))) chosen = ask(out, named, fault, why);
    if (!chosen) count_fault(fault, why);
    chose_ = &slot_.current();
    return named;
}

void KvPolicyPort::refused(kv::BlockId page) {
    if (chose_ != &slot_.current()) return; // its choice, of which the first wrong page has brought this one back
    const std::string fault = slot_.current().label() +
                              (": choose: names page " + std::to_string(static_cast<uint32_t>(page))) +
                              ", which is not cached";
    if (!roll_back("choose", fail(fault))) count_fault(Fault::kContract, fault);
}

void KvPolicyPort::count_fault(Fault fault, const std::string& why) {
    if (faults_++ == 0) spdlog::warn("{}: the page unused the longest is evicted instead", why);
    context_.report.calls.kv_policy_faults += 1;
    context_.report.calls.kv_policy_breaches += fault == Fault::kContract ? 1 : 0;
}

}  // namespace patchbay::engine
