#include "host/state_transfer.hpp"

#include <string_view>

#include "base/refusals.hpp"
#include "host/component_call.hpp"

namespace patchbay::host {
namespace {

// "fcfs" of "fcfs/1": saved bytes are offered to components whose state has the same first word.
std::string_view family_of(const char* state) {
    const std::string_view text = state ? state : "";
    return text.substr(0, text.find('/'));
}

// Component::save() into a string that has its room, and no further than the limit.
Result<> save_bounded(const Component& c, std::string& bytes) {
    struct Bounded {
        std::string& bytes;
        bool full = false;
    } to{bytes};
    const pb_sink sink{sizeof(pb_sink), 0, &to, [](void* ctx, const void* data, size_t size) {
                           auto& b = *static_cast<Bounded*>(ctx);
                           b.full |= size > kMaxState - b.bytes.size();
                           if (!b.full) b.bytes.append(static_cast<const char*>(data), size);
                       }};
    const ComponentCall noted(c.label(), c.calls(), "save");
    PB_CHECK(c.check(c.type().save(c.self(), &sink), "save"));
    if (to.full) return exhausted("more than " + std::to_string(kMaxState) + " bytes of state");
    return {};
}

}  // namespace

Result<> transfer_state(const Component& from, Component& to, UnreadState unread, std::string& bytes,
                        std::string& phase) {
    const char* const schema = from.type().state;
    if (!schema) return {};
    phase = "load";
    if (family_of(schema) != family_of(to.type().state)) {
        if (unread == UnreadState::kStartsEmpty) return {};
        return unsupported("cannot read state '" + std::string(schema) + "'");
    }
    phase = "save";
    PB_CHECK(save_bounded(from, bytes));
    phase = "load";
    return to.load(schema, bytes);
}

}  // namespace patchbay::host
