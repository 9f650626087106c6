#include "serve/load_client.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/clock.hpp"

namespace patchbay::serve::testing {
namespace {

[[noreturn]] void throw_error(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

class Client {
  public:
    Client(uint16_t port, const LoadRequest& request, LoadAnswer& answer)
        : fd_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)), request_(request), answer_(answer) {
        if (fd_ < 0) throw_error("socket");
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && errno != EINPROGRESS)
            throw_error("connect");
        unsent_ = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  "Connection: close\r\nContent-Length: " +
                  std::to_string(request.body.size()) + "\r\n\r\n" + request.body;
    }
    ~Client() { close(fd_); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    int fd() const { return fd_; }
    bool wants_to_send() const { return !unsent_.empty(); }
    // Goes on as far as the socket lets it; false: it is done.
    bool go_on() {
        while (!unsent_.empty()) {
            const ssize_t n = send(fd_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
            if (n < 0) return errno == EAGAIN || errno == ENOTCONN || lost();
            unsent_.erase(0, static_cast<size_t>(n));
        }
        if (request_.leave_after == 0) return leave();
        std::array<char, 16384> part;
        for (;;) {
            const ssize_t n = recv(fd_, part.data(), part.size(), 0);
            if (n == 0) return lost();
            if (n < 0) return errno == EAGAIN || lost();
            received_ += static_cast<size_t>(n);
            raw_.append(part.data(), static_cast<size_t>(n));
            take_chunks();
            if (received_ >= request_.leave_after) return leave();
            if (ended_) return false;
        }
    }

  private:
    void take_chunks() {
        if (in_head_) {
            const size_t end = raw_.find("\r\n\r\n");
            if (end == raw_.npos) return;
            if (!raw_.starts_with("HTTP/1.1 200")) throw std::runtime_error(raw_);
            raw_.erase(0, end + 4);
            in_head_ = false;
        }
        while (!ended_) {
            const size_t line = raw_.find("\r\n");
            if (line == raw_.npos) return;
            const size_t size = std::stoul(raw_.substr(0, line), nullptr, 16);
            if (raw_.size() < line + 2 + size + 2) return;
            ended_ = size == 0;
            answer_.stream.append(raw_, line + 2, size);
            if (size > 0) answer_.event_ns.push_back(clock_.now_ns());
            raw_.erase(0, line + 2 + size + 2);
        }
    }
    bool leave() {
        const linger at_once{1, 0};
        setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        answer_.left = true;
        return false;
    }
    bool lost() {
        answer_.closed_early = !ended_;
        return false;
    }

    RealClock clock_;
    const int fd_;
    const LoadRequest& request_;
    LoadAnswer& answer_;
    std::string unsent_, raw_;
    size_t received_ = 0;
    bool in_head_ = true, ended_ = false;
};

}  // namespace

std::vector<LoadAnswer> run_load(uint16_t port, const std::vector<LoadRequest>& requests, size_t at_once) {
    std::vector<LoadAnswer> answers(requests.size());
    std::vector<std::unique_ptr<Client>> clients(requests.size());
    const int poll = epoll_create1(EPOLL_CLOEXEC);
    if (poll < 0) throw_error("epoll");
    size_t next = 0, open = 0;
    const auto watch = [&](size_t i, int how) {
        epoll_event e{};
        e.events = EPOLLIN | (clients[i]->wants_to_send() ? uint32_t{EPOLLOUT} : 0);
        e.data.u64 = i;
        if (epoll_ctl(poll, how, clients[i]->fd(), &e) != 0) throw_error("epoll_ctl");
    };
    std::array<epoll_event, 512> events;
    while (open > 0 || next < requests.size()) {
        for (; open < at_once && next < requests.size(); ++next, ++open) {
            clients[next] = std::make_unique<Client>(port, requests[next], answers[next]);
            watch(next, EPOLL_CTL_ADD);
        }
        const int n = epoll_wait(poll, events.data(), events.size(), 60'000);
        if (n == 0) throw std::runtime_error("nothing came for a minute, of " + std::to_string(open) + " streams");
        for (int e = 0; e < n; ++e) {
            const size_t i = events[static_cast<size_t>(e)].data.u64;
            const bool sending = clients[i]->wants_to_send();
            if (clients[i]->go_on()) {
                if (sending && !clients[i]->wants_to_send()) watch(i, EPOLL_CTL_MOD);
                continue;
            }
            // Closing alone would not do while a process that is being started has the descriptor, too.
            epoll_ctl(poll, EPOLL_CTL_DEL, clients[i]->fd(), nullptr);
            clients[i].reset();
            open -= 1;
        }
    }
    close(poll);
    return answers;
}

std::vector<int32_t> streamed_tokens(const std::string& stream) {
    std::vector<int32_t> out;
    std::string rest = stream;
    bool done = false;
    while (!rest.empty()) {
        const size_t end = rest.find("\n\n");
        if (end == rest.npos || !rest.starts_with("data: ") || done) throw std::runtime_error("torn: " + rest);
        const std::string event = rest.substr(6, end - 6);
        rest.erase(0, end + 2);
        if (event == "[DONE]") {
            done = true;
            continue;
        }
        const auto json = nlohmann::json::parse(event);
        for (const auto& choice : json.at("choices"))
            if (choice.contains("token_ids") && !choice["token_ids"].is_null())
                for (const auto& id : choice["token_ids"]) out.push_back(id.get<int32_t>());
    }
    if (!done) throw std::runtime_error("no [DONE] at the end of " + stream);
    return out;
}

size_t allow_open_files(size_t count) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) throw_error("getrlimit");
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, count));
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) throw_error("setrlimit");
    return limit.rlim_cur;
}

size_t open_files() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all))) - 1;
}

}  // namespace patchbay::serve::testing
