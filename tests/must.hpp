// Values of results that a test cannot go on without.
#pragma once
#include <stdexcept>
#include <utility>

#include "base/result.hpp"

namespace patchbay {

template <class T>
T must(Result<T> r) {
    if (!r) throw std::runtime_error(r.error());
    return *std::move(r);
}

}  // namespace patchbay
