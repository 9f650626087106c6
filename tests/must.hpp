// Values of results that a test cannot go on without.
#pragma once
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/result.hpp"

namespace patchbay {

template <class T>
T must(Result<T> r) {
    if (!r) throw std::runtime_error(r.error());
    if constexpr (!std::is_void_v<T>) return *std::move(r);
}

}  // namespace patchbay
