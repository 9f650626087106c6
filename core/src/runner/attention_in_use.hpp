// The attention of a model and of its draft. Another one can take its place between two steps, of which none is in
// flight.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "host/component.hpp"
#include "runner/kv_layers.hpp"
#include "runner/open_device.hpp"

namespace patchbay::runner {

class AttentionInUse {
  public:
    AttentionInUse(const OpenDevice& device, host::Attention attention)
        : device_(device), own_(std::move(attention.component)), current_(own_.get()) {}

    const host::Component& component() const { return *current_; }
    // A model that attends, whose layers stay until end(). renew_graphs: what was captured is of another attention.
    void add(KvLayers& layers, std::function<void()> renew_graphs) {
        models_.push_back({&layers, std::move(renew_graphs)});
    }

    std::unique_ptr<host::Component> give() { return std::move(own_); } // to outlive its last pass
    Result<> check(const host::Component&) const; // that it can serve here. [any thread]
    // The one before it stays bound until forget(), so that a failure changes nothing and it can come back. Graphs are
    // captured again. True: it can read the pages that the one before it has written.
    Result<bool> use(const host::Component&);
    bool keeps(const host::Component&) const; // bound, as the one before the current one: use() of it cannot fail
    void forget();                            // the one before the current one
    void end();                               // no pass comes any more

  private:
    struct Attending {
        KvLayers* layers;
        std::function<void()> renew_graphs;
    };

    const OpenDevice& device_;
    std::unique_ptr<host::Component> own_; // null: it was given away
    const host::Component* current_;
    std::vector<Attending> models_;
};

}  // namespace patchbay::runner
