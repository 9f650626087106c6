// Failures whose code is not the general one: fail(text) alone says that it was attempted and failed.
#pragma once
#include <cerrno>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace patchbay {

inline Failure invalid(std::string text) { return fail(StatusCode::kInvalid, std::move(text)); }
inline Failure unsupported(std::string text) { return fail(StatusCode::kUnsupported, std::move(text)); }
inline Failure not_found(std::string text) { return fail(StatusCode::kNotFound, std::move(text)); }
inline Failure exhausted(std::string text) { return fail(StatusCode::kExhausted, std::move(text)); }
inline Failure unavailable(std::string text) { return fail(StatusCode::kUnavailable, std::move(text)); }
inline Failure broken(std::string text) { return fail(StatusCode::kInternal, std::move(text)); } // an invariant

// Of a file that cannot be opened or looked at, by its errno.
inline StatusCode code_of_open(int error) {
    return error == ENOENT || error == ENOTDIR ? StatusCode::kNotFound : StatusCode::kFailed;
}
// Of an address or a socket's path that cannot be listened on, by its errno.
inline StatusCode code_of_listen(int error) {
    switch (error) {
        case EADDRINUSE: return StatusCode::kUnavailable;
        case EADDRNOTAVAIL:
        case EACCES:
        case ENOENT:
        case ENOTDIR: return StatusCode::kInvalid;
        default: return StatusCode::kFailed;
    }
}

}  // namespace patchbay
