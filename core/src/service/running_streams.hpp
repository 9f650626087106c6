// The streams of the requests that an engine has, by request id. Used by the loop of an EngineThread.
#pragma once
#include <cstddef>
#include <memory>
#include <unordered_map>

#include "base/result.hpp"
#include "engine/stepping.hpp"
#include "service/engine_thread_options.hpp"
#include "service/inbox.hpp"
#include "service/stream.hpp"

namespace patchbay::service {

class RunningStreams { // the loop's thread only
  public:
    explicit RunningStreams(const EngineThreadOptions& observers) : observers_(observers) {} // which outlive it
    RunningStreams(const RunningStreams&) = delete; // requests in the engine point to it
    RunningStreams& operator=(const RunningStreams&) = delete;

    void add(engine::SteppingEngine&, Inbox::Arrival); // the stream is accepted, or fails with the engine's reason
    // Nothing where the stream has ended.
    void abort(engine::SteppingEngine&, const std::shared_ptr<Stream>&);
    void abort_all(engine::SteppingEngine&); // each stream's last delta says so
    void fail_all(const Failure&);
    size_t size() const { return streams_.size(); }

  private:
    const EngineThreadOptions& observers_;
    std::unordered_map<engine::RequestId, std::shared_ptr<Stream>> streams_;
};

}  // namespace patchbay::service
