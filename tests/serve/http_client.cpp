#include "serve/http_client.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <utility>

namespace patchbay::serve::testing {
namespace {

constexpr int kMaxWaitSeconds = 120; // so that a test that waits for what never comes ends

}  // namespace

HttpClient::HttpClient(uint16_t port, int receive_buffer_bytes) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer_bytes > 0)
        setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
    const timeval limit{kMaxWaitSeconds, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) throw std::runtime_error("cannot connect");
}

HttpClient::~HttpClient() { close(fd_); }

void HttpClient::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return;
        bytes.remove_prefix(static_cast<size_t>(n));
    }
}

void HttpClient::post(const std::string& path, const std::string& body, const std::string& headers) {
    send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body);
}

void HttpClient::get(const std::string& path, const std::string& headers) {
    send("GET " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n");
}

bool HttpClient::fill() {
    char part[1 << 14];
    const ssize_t n = recv(fd_, part, sizeof part, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        throw std::runtime_error("nothing came for " + std::to_string(kMaxWaitSeconds) + " s");
    if (n <= 0) return false;
    buffer_.append(part, static_cast<size_t>(n));
    return true;
}

std::optional<std::string> HttpClient::line() {
    size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos)
        if (!fill()) return std::nullopt;
    std::string out = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return out;
}

Answer HttpClient::read_head() {
    Answer out;
    const auto status = line();
    if (!status || !status->starts_with("HTTP/1.1 ")) return out;
    out.status = std::stoi(status->substr(9));
    while (const auto header = line()) {
        if (header->empty()) break;
        const size_t colon = header->find(": ");
        std::string name = header->substr(0, colon);
        std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
        out.headers[name] = header->substr(colon + 2);
    }
    chunked_ = out.headers.contains("transfer-encoding");
    stream_ended_ = false;
    events_.clear();
    return out;
}

std::optional<std::string> HttpClient::chunk() {
    const auto size = line();
    if (!size) return std::nullopt;
    const size_t bytes = std::stoul(*size, nullptr, 16);
    while (buffer_.size() < bytes + 2)
        if (!fill()) return std::nullopt;
    std::string out = buffer_.substr(0, bytes);
    buffer_.erase(0, bytes + 2);
    return out;
}

Answer HttpClient::read_answer() {
    Answer out = read_head();
    if (out.status == 100) out = read_head();
    if (out.status == 0) return out;
    if (chunked_) {
        while (const auto part = chunk()) {
            if (part->empty()) break;
            out.body += *part;
        }
        return out;
    }
    const size_t bytes = out.headers.contains("content-length") ? std::stoul(out.headers["content-length"]) : 0;
    while (buffer_.size() < bytes)
        if (!fill()) break;
    out.body = buffer_.substr(0, bytes);
    buffer_.erase(0, bytes);
    return out;
}

std::optional<std::string> HttpClient::read_event() {
    size_t end = 0;
    while ((end = events_.find("\n\n")) == std::string::npos) {
        if (stream_ended_) return std::nullopt;
        const auto part = chunk();
        if (!part || part->empty()) stream_ended_ = true;
        else events_ += *part;
    }
    std::string event = events_.substr(0, end);
    events_.erase(0, end + 2);
    if (!event.starts_with("data: ")) throw std::runtime_error("not an event: " + event);
    return event.substr(6);
}

std::string HttpClient::read_rest() {
    while (fill()) {}
    return std::exchange(buffer_, {});
}

void HttpClient::half_close() { shutdown(fd_, SHUT_WR); }

void HttpClient::reset() {
    const linger now{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd_);
    fd_ = -1;
}

Answer post(uint16_t port, const std::string& path, const std::string& body, const std::string& headers) {
    HttpClient client(port);
    client.post(path, body, headers);
    return client.read_answer();
}

Answer get(uint16_t port, const std::string& path, const std::string& headers) {
    HttpClient client(port);
    client.get(path, headers);
    return client.read_answer();
}

}  // namespace patchbay::serve::testing
