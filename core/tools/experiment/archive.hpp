// Values as bytes and back, between processes of one build on one machine. A struct takes part by a function
// fields(archive, struct&) that hands its members to the archive in their order.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace patchbay::experiment {

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Packer {
  public:
    template <class... T>
    void operator()(const T&... values) {
        (put(values), ...);
    }
    std::string take() { return std::move(bytes_); }

  private:
    template <Plain T>
    void put(const T& v) {
        bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
    }
    void put(const std::string& v) { put(std::string_view(v)); }
    void put(const std::string_view& v) {
        put(uint64_t{v.size()});
        bytes_.append(v);
    }
    template <class T>
    void put(const std::vector<T>& v) {
        put(uint64_t{v.size()});
        if constexpr (Plain<T>) bytes_.append(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T));
        else
            for (const T& item : v) put(item);
    }
    template <class T, size_t N>
    void put(const std::array<T, N>& v) {
        for (const T& item : v) put(item);
    }
    template <class T>
    void put(const std::optional<T>& v) {
        put(v.has_value());
        if (v) put(*v);
    }
    template <class T>
        requires(std::is_class_v<T>)
    void put(const T& v) {
        fields(*this, const_cast<T&>(v)); // which only reads it here
    }

    std::string bytes_;
};

// Bytes may be anything: what does not fit makes it not ok(), and values are then those of nothing.
class Unpacker {
  public:
    explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}
    template <class... T>
    void operator()(T&... values) {
        (get(values), ...);
    }
    bool ok() const { return ok_; }
    bool done() const { return ok_ && bytes_.empty(); }

  private:
    std::string_view some(uint64_t n) {
        ok_ = ok_ && n <= bytes_.size();
        if (!ok_) return {};
        const std::string_view out = bytes_.substr(0, n);
        bytes_.remove_prefix(n);
        return out;
    }
    template <Plain T>
    void get(T& v) {
        if (const auto from = some(sizeof v); ok_) std::memcpy(&v, from.data(), sizeof v);
    }
    void get(bool& v) {
        uint8_t byte = 0;
        get(byte);
        v = byte != 0;
    }
    void get(std::string& v) {
        uint64_t n = 0;
        get(n);
        v = some(n);
    }
    void get(std::string_view& v) { // of a static text, whose views outlive everything
        static std::mutex mutex;
        static std::set<std::string> texts;
        std::string text;
        get(text);
        const std::lock_guard lock(mutex);
        v = *texts.insert(std::move(text)).first;
    }
    template <class T>
    void get(std::vector<T>& v) {
        uint64_t n = 0;
        get(n);
        ok_ = ok_ && n <= bytes_.size(); // an item takes a byte at least
        v.clear();
        if (!ok_) return;
        if constexpr (Plain<T>) {
            if (n > bytes_.size() / sizeof(T)) ok_ = false;
            if (const auto from = some(n * sizeof(T)); ok_ && n > 0) {
                v.resize(n);
                std::memcpy(v.data(), from.data(), from.size());
            }
        } else {
            for (uint64_t i = 0; i < n && ok_; ++i) get(v.emplace_back());
        }
    }
    template <class T, size_t N>
    void get(std::array<T, N>& v) {
        for (T& item : v) get(item);
    }
    template <class T>
    void get(std::optional<T>& v) {
        bool has = false;
        get(has);
        v.reset();
        if (has && ok_) get(v.emplace());
    }
    template <class T>
        requires(std::is_class_v<T>)
    void get(T& v) {
        fields(*this, v);
    }

    std::string_view bytes_;
    bool ok_ = true;
};

}  // namespace patchbay::experiment
