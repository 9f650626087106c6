#include "parallel/address.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/clock.hpp"
#include "base/numbers.hpp"
#include "base/refusals.hpp"
#include "parallel/connection.hpp"

namespace patchbay::parallel {
namespace {

struct FreeAddresses {
    void operator()(addrinfo* all) const { freeaddrinfo(all); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> look_up(const Endpoint& at, int flags) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    const int error = getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found);
    if (error != 0) return not_found("cannot find the host '" + at.host + "': " + gai_strerror(error));
    return Addresses(found);
}

Socket socket_for(const addrinfo& a) {
    return Socket(socket(a.ai_family, a.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a.ai_protocol));
}

// Why it does not connect within the time; empty: it connected.
std::string connect_within(const Socket& socket, const addrinfo& to, uint64_t timeout_ns) {
    if (connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0) return "";
    if (errno != EINPROGRESS) return std::strerror(errno);
    const RealClock clock;
    const uint64_t end = clock.now_ns() + timeout_ns;
    pollfd wait{socket.get(), POLLOUT, 0};
    for (int ready = -1; ready < 0;) { // a signal may interrupt poll()
        const uint64_t now = clock.now_ns();
        ready = poll(&wait, 1, now < end ? static_cast<int>((end - now) / kMillisecond) : 0);
        if (ready == 0) return "no answer";
        if (ready < 0 && errno != EINTR) return std::strerror(errno);
    }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error ? std::strerror(error) : "";
}

}  // namespace

Result<Endpoint> parse_endpoint(const std::string& text) {
    const size_t colon = text.rfind(':');
    Endpoint out;
    if (colon != text.npos) {
        out.host = text.substr(0, colon);
        out.port = parse_number<uint16_t>(std::string_view(text).substr(colon + 1)).value_or(0);
        if (out.host.starts_with('[') && out.host.ends_with(']')) out.host = out.host.substr(1, out.host.size() - 2);
    }
    if (out.host.empty() || out.port == 0) return invalid("'" + text + "' is not HOST:PORT such as node1:29511");
    return out;
}

std::string text_of(const Endpoint& at) {
    const bool v6 = at.host.find(':') != at.host.npos;
    return (v6 ? "[" + at.host + "]" : at.host) + ":" + std::to_string(at.port);
}

Result<Socket> listen_at(const Endpoint& at) {
    PB_TRY(const Addresses all, look_up(at, AI_PASSIVE));
    int why = 0;
    for (const addrinfo* a = all.get(); a; a = a->ai_next) {
        Socket socket = socket_for(*a);
        const int on = 1;
        setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0 && listen(socket.get(), SOMAXCONN) == 0) return socket;
        why = errno;
    }
    return fail(code_of_listen(why), "cannot listen at " + text_of(at) + ": " + std::strerror(why));
}

void send_at_once(int socket) {
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Result<Socket> connect_to(const Endpoint& to, uint64_t timeout_ns) {
    constexpr uint64_t kPause = 50 * kMillisecond;
    RealClock clock;
    const uint64_t deadline = clock.now_ns() + timeout_ns;
    for (std::string why = "no time was given";;) {
        const auto all = look_up(to, 0);
        if (!all) why = all.error();
        for (const addrinfo* a = all ? all->get() : nullptr; a; a = a->ai_next) {
            const uint64_t now = clock.now_ns();
            if (now >= deadline) break;
            Socket socket = socket_for(*a);
            why = connect_within(socket, *a, deadline - now);
            if (!why.empty()) continue;
            send_at_once(socket.get());
            return socket;
        }
        if (clock.now_ns() + kPause >= deadline)
            return unavailable("no answer at " + text_of(to) + " within " + seconds(timeout_ns) + ": " + why);
        clock.wait_until_ns(clock.now_ns() + kPause);
    }
}

std::string local_address(const Socket& socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    char text[NI_MAXHOST];
    const bool known = getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                       (address.ss_family == AF_INET || address.ss_family == AF_INET6) &&
                       getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0,
                                   NI_NUMERICHOST) == 0;
    return known ? text : "127.0.0.1";
}

std::string seconds(uint64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) * 1e-9);
    return text;
}

std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "unknown host";
}

}  // namespace patchbay::parallel
