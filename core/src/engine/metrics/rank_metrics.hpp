// Which ranks of an engine are there. Part of EngineMetrics.
#pragma once
#include <string>
#include <vector>

#include "metrics/catalogue.hpp"

namespace patchbay::engine {

class RankMetrics {
  public:
    RankMetrics(metrics::Metrics& m, const std::vector<std::string>& ranks) {
        for (size_t r = 0; ranks.size() > 1 && r < ranks.size(); ++r) {
            up_.push_back(&m.gauge("patchbay_rank_up", {{"rank", std::to_string(r)}}));
            up_.back()->Set(1);
        }
    }
    ~RankMetrics() { // with the engine its ranks end
        for (prometheus::Gauge* rank : up_) rank->Set(0);
    }

  private:
    std::vector<prometheus::Gauge*> up_; // by rank; none of an engine that is alone
};

}  // namespace patchbay::engine
