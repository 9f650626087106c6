// Encodes numbers, texts and arrays as bytes of a message, and decodes them with checks of every length, since they
// come over a network. Little-endian, as on every machine that this runs on.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/refusals.hpp"
#include "base/result.hpp"

namespace patchbay::parallel {

static_assert(std::endian::native == std::endian::little);

class ByteWriter {
  public:
    template <class T>
        requires std::is_arithmetic_v<T>
    void put(T value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void put(std::string_view text) {
        put(static_cast<uint64_t>(text.size()));
        bytes_.append(text);
    }
    template <class T>
    void put(std::span<const T> values) {
        put(std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
    }
    void put(const Failure& failure) {
        put(static_cast<uint8_t>(failure.code));
        put(std::string_view(failure.text));
    }
    void clear() { bytes_.clear(); }
    std::string_view bytes() const { return bytes_; }

  private:
    std::string bytes_;
};

// After a fault, reads give zeros and empty texts; check done() before using any of them.
class ByteReader {
  public:
    explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

    template <class T>
        requires std::is_arithmetic_v<T>
    T get() {
        T value{};
        if (take(sizeof value)) std::memcpy(&value, taken_, sizeof value);
        return value;
    }
    std::string text() {
        const auto size = get<uint64_t>();
        return take(size) ? std::string(taken_, size) : std::string();
    }
    template <class T>
    void values(std::vector<T>& out) {
        const auto size = get<uint64_t>();
        out.clear();
        if (size % sizeof(T) != 0) torn_ = true;
        if (!take(size)) return;
        out.resize(size / sizeof(T));
        if (size) std::memcpy(out.data(), taken_, size);
    }
    Failure failure() { // an unknown code is the general one
        const auto code = static_cast<StatusCode>(get<uint8_t>());
        return fail(code <= StatusCode::kInternal ? code : StatusCode::kFailed, text());
    }
    bool torn() const { return torn_; } // a read went past the end
    // Fails unless everything was present and nothing is left. what: "a step"
    Result<> done(const char* what) const {
        if (torn_) return invalid(std::string(what) + " ends too early");
        if (!rest_.empty())
            return invalid(std::string(what) + " has " + std::to_string(rest_.size()) + " bytes too many");
        return {};
    }

  private:
    bool take(uint64_t size) {
        torn_ = torn_ || size > rest_.size();
        if (torn_) return false;
        taken_ = rest_.data();
        rest_.remove_prefix(size);
        return true;
    }

    std::string_view rest_;
    const char* taken_ = nullptr;
    bool torn_ = false;
};

}  // namespace patchbay::parallel
