// The attention of what computes, exchanged between two steps of which none is in flight.
#pragma once
#include <memory>
#include <string>

#include "base/result.hpp"
#include "host/component.hpp"

namespace patchbay::execution {

class AttentionExchange {
  public:
    virtual ~AttentionExchange() = default;
    virtual std::unique_ptr<host::Component> give() = 0; // the one it was made with, which must outlive end()
    // That it can serve here, and on the other ranks, which then have one of their own as long as this one lives. [any
    // thread, beside steps]
    virtual Result<> check(host::Component&) = 0;
    // The one before it stays bound until forget(), so that a failure changes nothing and it can come back. True: it
    // can read the pages that the one before it has written.
    virtual Result<bool> use(const host::Component&) = 0;
    virtual std::string layout() const = 0; // of pages, as the current one names it
    virtual void forget() = 0; // the one before the current one
    virtual void end() = 0;    // nothing is computed any more
};

}  // namespace patchbay::execution
