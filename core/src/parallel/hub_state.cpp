#include "parallel/hub_state.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

namespace patchbay::parallel {
namespace {

constexpr size_t kMaxText = 64 << 10; // of why a session ends

}  // namespace

HubState::HubState(uint32_t size, std::vector<Member> members, const Deadlines& d)
    : deadlines(d), wakes(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), peers(size, std::move(members)), store(peers) {}

void HubState::wake() const {
    const uint64_t one = 1;
    (void)!write(wakes.get(), &one, sizeof one);
}

Result<> HubState::post_to_ranks(MessageType type, std::string_view bytes) {
    if (failure.exists()) return failure.why();
    const auto posted = peers.post_to_ranks(type, bytes);
    if (peers.have_backlog()) wake();
    return posted;
}

void HubState::declare(const Failure& why, RankFailure::Lasts lasts) {
    if (!failure.changes(lasts)) return;
    const bool is_first = !failure.exists();
    if (is_first) (void)post_to_ranks(MessageType::kEnd, std::string_view(why.text).substr(0, kMaxText));
    failure.set(why, lasts, in_session);
    changed.notify_all();
    if (is_first && on_failure) on_failure();
}

}  // namespace patchbay::parallel
