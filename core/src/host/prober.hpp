// Tries a component in a probe with the settings that it is to run with, once for each bytes and settings: what goes
// before a swap. Kept by the part that makes swaps (patchbay run, tests).
#pragma once
#include <mutex>
#include <set>
#include <string>

#include "base/result.hpp"
#include "host/probe.hpp"

namespace patchbay::host {

class Prober {
  public:
    explicit Prober(ProbeOptions options = {}) : options_(std::move(options)) {}
    // The failure is the check that refuses it and why. [any]
    Result<> try_out(const Manifest& plugin, const ProbedComponent&);

  private:
    const ProbeOptions options_;
    std::mutex mutex_;
    std::set<std::string> passed_; // only what passed: a refusal may be the machine's fault
};

}  // namespace patchbay::host
