#include "parallel/connection.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/refusals.hpp"

namespace patchbay::parallel {
namespace {

constexpr uint32_t kMagic = 0x50425031; // "1PBP"

struct Header {
    uint32_t magic;
    uint16_t protocol, type;
    uint32_t length, checksum;
};
static_assert(sizeof(Header) == 16);

uint32_t checksum(std::string_view bytes) { return XXH32(bytes.data(), bytes.size(), 0); }

}  // namespace

Connection::Connection(Socket socket) : socket_(std::move(socket)) {
    fcntl(socket_.get(), F_SETFL, fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
}

Result<> Connection::post(MessageType type, std::string_view bytes) {
    if (bytes.size() > kMaxMessage)
        return invalid("a message of " + std::to_string(bytes.size()) + " bytes, at most " +
                       std::to_string(kMaxMessage) + " are sent");
    if (out_.size() - sent_ + bytes.size() > kMaxBacklog) return unavailable("takes no messages any more");
    const Header header{kMagic, kProtocol, static_cast<uint16_t>(type), static_cast<uint32_t>(bytes.size()),
                        checksum(bytes)};
    constexpr size_t kKept = 1 << 20; // of what is sent; also no more is moved than is dropped
    if (sent_ > std::max(kKept, out_.size() / 2)) out_.erase(0, std::exchange(sent_, 0));
    out_.append(reinterpret_cast<const char*>(&header), sizeof header);
    out_.append(bytes);
    return flush();
}

Result<> Connection::flush() {
    while (sent_ < out_.size()) {
        const ssize_t n = send(socket_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
        if (n > 0) sent_ += static_cast<size_t>(n);
        else if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
        else if (errno == EPIPE || errno == ECONNRESET) break; // receive() says so, after what came before
        else if (errno != EINTR) return unavailable(std::string("cannot be written to: ") + std::strerror(errno));
    }
    out_.clear();
    sent_ = 0;
    return {};
}

Result<> Connection::receive(std::vector<Message>& arrived) {
    constexpr size_t kPart = 1 << 16;
    const size_t max_parts = max_message_ < kPart ? 1 : 1024; // a sender that never stops must not delay the others
    for (size_t part = 0; part < max_parts; ++part) {
        const size_t before = in_.size();
        in_.resize(before + kPart);
        const ssize_t n = recv(socket_.get(), in_.data() + before, kPart, 0);
        in_.resize(before + static_cast<size_t>(n > 0 ? n : 0));
        if (n == 0) return unavailable("closed its connection");
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
        if (n < 0 && errno == ECONNRESET) return unavailable("closed its connection"); // with unread bytes
        if (n < 0 && errno != EINTR) return unavailable(std::string("lost its connection: ") + std::strerror(errno));
        PB_CHECK(take_messages(arrived));
    }
    return {};
}

Result<> Connection::take_messages(std::vector<Message>& arrived) {
    size_t at = 0;
    while (in_.size() - at >= sizeof(Header)) {
        Header header;
        std::memcpy(&header, in_.data() + at, sizeof header);
        if (header.magic != kMagic) return invalid("sent something that is not a message");
        if (header.protocol != kProtocol)
            return invalid("speaks protocol " + std::to_string(header.protocol) + ", expected " +
                           std::to_string(kProtocol) + " (is it of another version?)");
        if (header.type < 1 || header.type > static_cast<uint16_t>(kLastType))
            return invalid("sent a message of the unknown type " + std::to_string(header.type));
        if (header.length > max_message_)
            return invalid("announced a message of " + std::to_string(header.length) + " bytes, at most " +
                        std::to_string(max_message_) + " are taken");
        if (in_.size() - at < sizeof header + header.length) break;
        const std::string_view bytes(in_.data() + at + sizeof header, header.length);
        if (checksum(bytes) != header.checksum) return invalid("sent a message whose checksum is wrong");
        arrived.push_back({static_cast<MessageType>(header.type), std::string(bytes)});
        at += sizeof header + header.length;
    }
    in_.erase(0, at);
    return {};
}

}  // namespace patchbay::parallel
