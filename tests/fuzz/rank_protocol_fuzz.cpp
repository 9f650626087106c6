// What ranks say to one another, as a stranger or a broken rank might say it. By the first byte: any bytes on a
// connection; a message's content ('h' hello, 'b' beginning of a session, 'f' facts, 's' step); or messages whose
// frames are right, to rank 0 ('0') or from it ('1'), each as a type, two bytes of length, and content.
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "parallel/hub.hpp"
#include "parallel/session.hpp"
#include "parallel/spoke.hpp"

namespace {

using namespace patchbay;
using namespace patchbay::parallel;

std::pair<Socket, Socket> connected() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) abort();
    return {Socket(ends[0]), Socket(ends[1])};
}

void send_all(int fd, std::string_view bytes) {
    if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) abort();
}

template <class T>
bool is_read(const Result<T>& got) { // or refused with a reason
    if (!got && got.error().empty()) abort();
    return bool(got);
}

void any_bytes(std::string_view bytes) {
    auto [here, there] = connected();
    Connection connection(std::move(here));
    send_all(there.get(), bytes);
    there.reset();
    std::vector<Message> arrived;
    if (is_read(connection.receive(arrived))) abort(); // the other side has closed
    size_t size = 0;
    for (const Message& m : arrived) size += 16 + m.bytes.size();
    if (size > bytes.size()) abort();
}

void step(std::string_view bytes) {
    StepLimits limits{.vocab_size = 1000, .max_position = 512, .num_blocks = 64, .form = {}, .swap_slots = 8};
    limits.form.block_size = 16;
    limits.form.token_groups = 1;
    limits.form.state_groups = !bytes.empty() && bytes.back() % 2 ? 1 : 0;
    StepRows rows;
    if (!is_read(read_step(bytes, rows))) return;
    if (!is_read(check_step(rows.rows(), rows.copies(), limits))) return;
    StepRows again; // what is good is the same after another way
    const std::string sent = bytes_of(rows.rows(), rows.copies());
    if (!read_step(sent, again) || bytes_of(again.rows(), again.copies()) != sent) abort();
}

// Calls post(type, content) for each.
template <class F>
void each_message(std::string_view bytes, F&& post) {
    constexpr int kMaxMessages = 64;
    for (int i = 0; i < kMaxMessages && bytes.size() >= 3; ++i) {
        const auto at = [&](size_t n) { return static_cast<size_t>(static_cast<uint8_t>(bytes[n])); };
        const auto type = static_cast<uint16_t>(1 + at(0) % static_cast<size_t>(kLastType));
        const std::string_view content = bytes.substr(3, at(1) | at(2) << 8);
        post(static_cast<MessageType>(type), content);
        bytes.remove_prefix(3 + content.size());
    }
}

void to_rank_0(std::string_view bytes) {
    auto [here, there] = connected();
    std::vector<Member> members;
    members.push_back({std::move(here), 1, 0});
    Hub hub("fuzz", 2, std::move(members), Socket(), Deadlines{});
    Connection rank(std::move(there));
    if (!rank.post(MessageType::kHello, bytes_of(Hello{"fuzz", 1, 2, 1, "here"}))) abort();
    if (!hub.wait_until_joined() || !hub.begin("begin") || !hub.step("step", Hub::IfItFails::kEnds)) abort();
    each_message(bytes, [&](MessageType type, std::string_view content) { (void)rank.post(type, content); });
    rank.close();
} // the hub reads all of it before it ends

void from_rank_0(std::string_view bytes) {
    auto [here, there] = connected();
    Spoke spoke(std::move(here), Hello{"fuzz", 1, 2, 1, "here"}, Deadlines{}, nullptr);
    Connection hub(std::move(there));
    each_message(bytes, [&](MessageType type, std::string_view content) { (void)hub.post(type, content); });
    hub.close();
    while (is_read(spoke.next())) {}
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0 || size > 1 << 14) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size), rest = bytes.substr(1);
    switch (data[0]) {
        case 'h': is_read(read_hello(rest)); break;
        case 'b': is_read(read_begin(rest)); break;
        case 'f':
            if (const auto facts = read_facts(rest); is_read(facts))
                if (bytes_of(*facts) != rest || !difference(*facts, *facts).empty()) abort();
            break;
        case 's': step(rest); break;
        case '0': to_rank_0(rest); break;
        case '1': from_rank_0(rest); break;
        default: any_bytes(bytes);
    }
    return 0;
}
