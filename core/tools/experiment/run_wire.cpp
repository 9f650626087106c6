#include "experiment/run_wire.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace patchbay::experiment {
namespace {

constexpr size_t kHead = sizeof(uint64_t) + 1;
constexpr uint64_t kLongest = uint64_t{1} << 36;

}  // namespace

std::string framed(Word word, std::string_view body) {
    const uint64_t size = body.size();
    std::string out(reinterpret_cast<const char*>(&size), sizeof size);
    out += static_cast<char>(word);
    return out.append(body);
}

void Frames::add(std::string_view bytes) {
    bytes_.erase(0, std::exchange(at_, 0));
    bytes_.append(bytes);
}

std::optional<Frame> Frames::next() {
    const std::string_view rest = std::string_view(bytes_).substr(at_);
    uint64_t size = 0;
    if (rest.size() < kHead || broken_) return std::nullopt;
    std::memcpy(&size, rest.data(), sizeof size);
    const auto word = static_cast<uint8_t>(rest[sizeof size]);
    broken_ = size > kLongest || word > static_cast<uint8_t>(Word::kFailed);
    if (broken_ || rest.size() - kHead < size) return std::nullopt;
    at_ += kHead + size;
    return Frame{static_cast<Word>(word), rest.substr(kHead, size)};
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
}

void FrameWriter::flush() {
    const std::lock_guard lock(mutex_);
    if (!write_all(fd_, bytes_)) _exit(EXIT_FAILURE);
    bytes_.clear();
}

}  // namespace patchbay::experiment
