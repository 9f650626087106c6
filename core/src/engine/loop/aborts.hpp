// Requests that were aborted within the step under way, by a callback: they end with it, and get nothing more of it.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/request/ids.hpp"

namespace patchbay::engine {

class Aborts {
  public:
    void add(RequestId request) { requests_.push_back(request); }
    bool has(RequestId request) const { return std::ranges::find(requests_, request) != requests_.end(); }
    std::vector<RequestId> take() { return std::exchange(requests_, {}); }

  private:
    std::vector<RequestId> requests_;
};

}  // namespace patchbay::engine
