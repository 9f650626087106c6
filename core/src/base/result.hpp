// Result<T>: a value, or a failure. A failure has a text (the value, what was expected, and where) and a code that says
// which kind of refusal it is, so that a server can answer 400, 404, 429 or 503. For everything that can fail.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace patchbay {

enum class StatusCode {
    kInvalid,     // the request is wrong, and repeating it will not help
    kNotFound,    // no file, plugin, model or request of that name
    kUnsupported, // valid, but this build, plugin, model or device does not support it
    kExhausted,   // no room now: a queue, memory, pages; retrying later may help
    kCancelled,   // by the caller
    kUnavailable, // not taking work: starting, draining or stopped
    kFailed,      // it was attempted and failed
    kInternal,    // an invariant of this program is broken
};

constexpr std::string_view name_of(StatusCode code) {
    constexpr std::string_view kNames[] = {"invalid",   "not_found",   "unsupported", "exhausted",
                                           "cancelled", "unavailable", "failed",      "internal"};
    return kNames[static_cast<size_t>(code)];
}

// Of a name that another process gave: the general one, kFailed, where there is none of that name.
constexpr StatusCode status_code_of(std::string_view name) {
    for (size_t i = 0; i <= static_cast<size_t>(StatusCode::kInternal); ++i)
        if (name_of(static_cast<StatusCode>(i)) == name) return static_cast<StatusCode>(i);
    return StatusCode::kFailed;
}

struct Failure {
    std::string text; // lower case, no full stop
    StatusCode code = StatusCode::kFailed;
};

inline Failure fail(std::string text) { return {std::move(text)}; }
inline Failure fail(StatusCode code, std::string text) { return {std::move(text), code}; }
// "<where>: <text>", with the same code.
inline Failure prefixed(std::string_view where, Failure failure) {
    failure.text.insert(0, std::string(where) + ": ");
    return failure;
}

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
    const Failure& failure() const { return std::get<1>(state_); }
    const std::string& error() const { return failure().text; }
    StatusCode code() const { return failure().code; }

  private:
    std::variant<T, Failure> state_;
};

template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Failure failure) : failure_(std::move(failure)) {}
    explicit operator bool() const { return !failure_; }
    const Failure& failure() const { return *failure_; }
    const std::string& error() const { return failure_->text; }
    StatusCode code() const { return failure_->code; }

  private:
    std::optional<Failure> failure_;
};

// Gives failures with the general code kFailed this code.
template <class T>
Result<T> refused_as(StatusCode code, Result<T> result) {
    if (result || result.code() != StatusCode::kFailed) return result;
    return fail(code, result.error());
}

}  // namespace patchbay

#define PB_TRY_JOIN2_(a, b) a##b
#define PB_TRY_JOIN_(a, b) PB_TRY_JOIN2_(a, b)
#define PB_TRY_ASSIGN_(name, target, expression) \
    auto name = (expression);                    \
    if (!name) return name.failure(); \
    target = *std::move(name)

// PB_TRY(auto x, f()): x = *f(), or returns f's failure from this function.
#define PB_TRY(target, ...) PB_TRY_ASSIGN_(PB_TRY_JOIN_(pb_try_, __LINE__), target, (__VA_ARGS__))
// PB_CHECK(f()): returns f's failure from this function.
#define PB_CHECK(...)                                                            \
    do {                                                                         \
        if (auto pb_check_ = (__VA_ARGS__); !pb_check_) return pb_check_.failure(); \
    } while (0)
