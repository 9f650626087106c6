// patchbay/sizes.hpp - structs that cross between two sides of different age, rule 2 of abi.h. What one side does not
// know reads as 0 on the other, which means none.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

namespace patchbay {

// All 0 but its struct_size, to be filled by the other side.
template <class T>
T sized() {
    T out{};
    out.struct_size = sizeof(T);
    return out;
}

// Whether the other side has set the struct's size. What follows throws std::invalid_argument where it has not.
bool has_size(const auto& given) { return given.struct_size >= sizeof given.struct_size; }
void check_size(const auto& given) {
    if (!has_size(given)) throw std::invalid_argument("a struct without its struct_size");
}

// Fills as much of *out as its owner knows. The owner has set its struct_size, which stays.
template <class T>
void copy_out(T* out, T value) {
    check_size(*out);
    value.struct_size = out->struct_size;
    std::memcpy(static_cast<void*>(out), &value, std::min<size_t>(out->struct_size, sizeof(T)));
}

// The first `size` bytes of a T, the rest 0.
template <class T>
T widened(const void* given, size_t size) {
    T out{};
    std::memcpy(static_cast<void*>(&out), given, std::min(size, sizeof(T)));
    return out;
}

// *given as this side knows the struct; a copy only where the other side's is shorter.
template <class T>
class Whole {
  public:
    explicit Whole(const T* given) : Whole(given, given->struct_size) { check_size(*given); }
    Whole(const T* given, size_t size) : given_(given) {
        if (size < sizeof(T)) copy_ = widened<T>(given, size);
    }
    const T& operator*() const { return copy_ ? *copy_ : *given_; }
    const T* operator->() const { return &**this; }

  private:
    const T* given_;
    std::optional<T> copy_;
};

// The same of a struct that is written to; what was written to a copy goes back at the end.
template <class T>
class WholeInOut {
  public:
    explicit WholeInOut(T* given) : given_(given) {
        check_size(*given);
        if (given->struct_size < sizeof(T)) copy_ = widened<T>(given, given->struct_size);
    }
    ~WholeInOut() {
        if (copy_) copy_out(given_, *copy_);
    }
    WholeInOut(const WholeInOut&) = delete;
    WholeInOut& operator=(const WholeInOut&) = delete;
    T& operator*() { return copy_ ? *copy_ : *given_; }

  private:
    T* given_;
    std::optional<T> copy_;
};

// An array whose elements are `stride` bytes apart; copies only where they are shorter than this side's.
template <class T>
class Rows {
  public:
    Rows(const T* first, size_t count, size_t stride)
        : given_(reinterpret_cast<const char*>(first)), count_(count), stride_(stride) {
        if (stride >= sizeof(T)) return;
        for (size_t i = 0; i < count; ++i) copies_.push_back(widened<T>(given_ + i * stride, stride));
    }
    uint32_t size() const { return static_cast<uint32_t>(count_); }
    bool empty() const { return count_ == 0; }
    const T& operator[](size_t i) const {
        return copies_.empty() ? *reinterpret_cast<const T*>(given_ + i * stride_) : copies_[i];
    }
    struct Iterator {
        const Rows* all;
        size_t i;
        const T& operator*() const { return (*all)[i]; }
        Iterator& operator++() { return ++i, *this; }
        bool operator!=(const Iterator& o) const { return i != o.i; }
    };
    Iterator begin() const { return {this, 0}; }
    Iterator end() const { return {this, count_}; }

  private:
    const char* given_;
    size_t count_, stride_;
    std::vector<T> copies_;
};

// Element i of an array of the other side's, to be written to as far as both know it.
template <class T>
void write_row(T* first, size_t i, size_t stride, const T& value) {
    std::memcpy(reinterpret_cast<char*>(first) + i * stride, &value, std::min(stride, sizeof(T)));
}

}  // namespace patchbay
