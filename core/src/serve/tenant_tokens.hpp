// Tokens by tenant, which is the API key that a request came with. Used by Server, on the loop's thread.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/request/request.hpp"
#include "metrics/catalogue.hpp"

namespace patchbay::serve {

class TenantTokens {
  public:
    static constexpr uint32_t kMaxTenants = 64; // with a series of their own; the others share one

    explicit TenantTokens(metrics::Metrics& all) : all_(all) {}
    void on_request(engine::RequestId, const engine::Request&); // accepted
    void on_output(const engine::RequestOutput&);

  private:
    struct Series {
        prometheus::Counter *prompt = nullptr, *generation = nullptr;
    };
    struct Open { // a request that has not ended
        Series series;
        uint32_t prompt_tokens, outputs; // outputs: that have not ended
        bool prefilled = false;
    };
    Series& series_of(uint32_t tenant);

    metrics::Metrics& all_;
    std::vector<Series> series_; // by tenant, the one that is shared last
    std::unordered_map<engine::RequestId, Open> open_;
};

}  // namespace patchbay::serve
