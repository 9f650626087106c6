#include "parallel/group.hpp"

#include <algorithm>

#include "base/refusals.hpp"
#include "parallel/bytes.hpp"
#include "parallel/store_limits.hpp"

namespace patchbay::parallel {

std::string device_key(uint64_t connection, const char* key) {
    return "connection " + std::to_string(connection) + "/" + key;
}

pb_status Group::set(void* self, const char* key, const void* value, uint64_t bytes) {
    const Group& group = *static_cast<Group*>(self);
    if (!may_be_stored(key, bytes)) return PB_INVALID;
    const auto done = group.hub_->set(device_key(group.connection_, key),
                                      std::string(static_cast<const char*>(value), bytes));
    return done ? PB_OK : PB_FAILED;
}

pb_status Group::get(void* self, const char* key, void* out, uint64_t* bytes) {
    const Group& group = *static_cast<Group*>(self);
    if (!is_device_key(key)) return PB_INVALID;
    const auto value = group.hub_->get(device_key(group.connection_, key));
    if (!value) return PB_FAILED;
    if (value->size() > *bytes) return PB_INVALID;
    value->copy(static_cast<char*>(out), value->size());
    *bytes = value->size();
    return PB_OK;
}

std::string swap_key(uint64_t number, uint32_t rank) {
    return "swap " + std::to_string(number) + " of rank " + std::to_string(rank);
}

Result<std::unique_ptr<Group>> Group::begin(std::shared_ptr<Hub> hub, const Begin& what) {
    std::unique_ptr<Group> out(new Group(std::move(hub)));
    out->address_ = out->hub_->address();
    out->wire_ = {sizeof(pb_group), 0, out->hub_->size(), static_cast<uint32_t>(what.connect_ms),
                  out->address_.c_str(), out.get(), set, get};
    PB_CHECK(out->hub_->begin(bytes_of(what)));
    out->began_ = true;
    return out;
}

Group::~Group() {
    if (began_) hub_->end("");
}

Failure Group::known_cause(const Failure& fault) const {
    Failure why = hub_->explain(fault);
    return why.text.ends_with(fault.text) ? fault : why; // all ranks may have the same fault
}

Failure Group::cause(const Failure& fault) {
    Failure why = hub_->explain(fault);
    if (why.text != fault.text) return why;
    out_of_step_ = fault.text;
    return fault;
}

Result<> Group::check_equal(const std::vector<Fact>& ours) {
    PB_TRY(const auto replies, hub_->gather());
    const auto ranks = hub_->ranks();
    for (const RankInfo& rank : ranks) {
        const auto theirs = read_facts(replies[rank.rank - 1]);
        const std::string wrong = theirs ? difference(ours, *theirs) : theirs.error();
        if (!wrong.empty()) return invalid(text_of(rank) + " would not compute the same: " + wrong);
    }
    return hub_->broadcast(MessageType::kGo, "");
}

Result<uint32_t> Group::agree_blocks(uint32_t ours) {
    PB_TRY(const auto replies, hub_->gather());
    for (const std::string& reply : replies) {
        ByteReader in(reply);
        ours = std::min(ours, in.get<uint32_t>());
        PB_CHECK(in.done("a rank's number of KV blocks"));
    }
    ByteWriter out;
    out.put(ours);
    PB_CHECK(hub_->broadcast(MessageType::kGo, out.bytes()));
    return ours;
}

Result<> Group::loaded() {
    PB_TRY(const auto ignored, hub_->gather());
    return {};
}

Result<> Group::broadcast(const std::vector<runner::BatchRow>& rows, std::span<const kv::PageCopy> copies,
                          Hub::IfItFails then, const Clock& clock) {
    if (!out_of_step_.empty()) return unavailable("the ranks are out of step since a step failed: " + out_of_step_);
    const uint64_t start = clock.now_ns();
    PB_TRY(latest_.bytes, hub_->step(bytes_of(rows, copies), then));
    latest_.ns = clock.now_ns() - start;
    return {};
}

Result<> Group::reconnect(Failure& fault, const std::function<Result<>()>& device) {
    hub_->forget(device_key(connection_, ""));
    ByteWriter out;
    out.put(++connection_);
    PB_TRY(const auto theirs, hub_->reconnect(out.bytes()));
    Result<> done = device();
    if (done)
        if (const auto replies = hub_->gather(Hub::Doing::kConnects); !replies) done = replies.failure();
    if (done) {
        if (theirs) fault = *theirs;
        return {};
    }
    Failure why = prefixed("after a step that failed (" + fault.text + ") the ranks' devices cannot connect again",
                           done.failure());
    hub_->fail_session(why);
    return why;
}

Result<uint64_t> Group::order(RankSwap swap) {
    swap.number = ++orders_;
    PB_CHECK(hub_->broadcast(MessageType::kSwap, bytes_of(swap)));
    return swap.number;
}

Result<> Group::done(uint64_t order, RankSwap::Verb verb) {
    Result<> all;
    for (const RankInfo& rank : hub_->ranks()) {
        const std::string key = swap_key(order, rank.rank);
        PB_TRY(const std::string answer,
               verb == RankSwap::Verb::kUse ? hub_->take_from(rank, key) : hub_->take(key));
        if (const auto one = read_swap_answer(answer); !one && all) all = prefixed(text_of(rank), one.failure());
    }
    return all;
}

}  // namespace patchbay::parallel
