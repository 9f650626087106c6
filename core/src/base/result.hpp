// Result<T>: a value or a text that says what was got, what was expected and where. For everything that can fail.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace patchbay {

struct Failure { // lower case, no full stop
    std::string text;
};

inline Failure fail(std::string text) { return {std::move(text)}; }

template <class T = void>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}

    explicit operator bool() const { return state_.index() == 0; }
    T& operator*() & { return std::get<0>(state_); }
    const T& operator*() const& { return std::get<0>(state_); }
    T&& operator*() && { return std::get<0>(std::move(state_)); }
    T* operator->() { return &std::get<0>(state_); }
    const T* operator->() const { return &std::get<0>(state_); }
    const std::string& error() const { return std::get<1>(state_).text; }

  private:
    std::variant<T, Failure> state_;
};

template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Failure failure) : failure_(std::move(failure)) {}
    explicit operator bool() const { return !failure_; }
    const std::string& error() const { return failure_->text; }

  private:
    std::optional<Failure> failure_;
};

}  // namespace patchbay

#define PB_TRY_JOIN2_(a, b) a##b
#define PB_TRY_JOIN_(a, b) PB_TRY_JOIN2_(a, b)
#define PB_TRY_ASSIGN_(name, target, expression) \
    auto name = (expression);                    \
    if (!name) return ::patchbay::fail(name.error()); \
    target = *std::move(name)

// PB_TRY(auto x, f()): x = *f(), or returns f's failure from this function.
#define PB_TRY(target, ...) PB_TRY_ASSIGN_(PB_TRY_JOIN_(pb_try_, __LINE__), target, (__VA_ARGS__))
// PB_CHECK(f()): returns f's failure from this function.
#define PB_CHECK(...)                                                            \
    do {                                                                         \
        if (auto pb_check_ = (__VA_ARGS__); !pb_check_) return ::patchbay::fail(pb_check_.error()); \
    } while (0)
