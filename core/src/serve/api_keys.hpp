// The keys of which a request must bring one. Used by Routes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serve/http_message.hpp"

namespace patchbay::serve {

class ApiKeys {
  public:
    explicit ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {} // none: no key is needed

    // The number of the key in "Authorization: Bearer KEY", 0 where none is needed; nothing: it brings no valid one.
    std::optional<uint32_t> find(const HttpRequest&) const;

  private:
    const std::vector<std::string> keys_;
};

}  // namespace patchbay::serve
