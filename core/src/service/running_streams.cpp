#include "service/running_streams.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace patchbay::service {

void RunningStreams::add(engine::SteppingEngine& engine, Inbox::Arrival arrival) {
    engine::Request& request = arrival.request;
    request.on_output = [this, stream = arrival.stream](const engine::RequestOutput& delta) {
        if (observers_.on_output) observers_.on_output(delta);
        if (stream->push(delta)) streams_.erase(delta.id);
    };
    std::optional<engine::Request> copy;
    if (observers_.on_request) copy = request;
    const auto id = engine.add_request(std::move(request));
    if (!id) return arrival.stream->fail(id.failure());
    streams_.emplace(*id, arrival.stream);
    if (copy) observers_.on_request(*id, *copy);
    arrival.stream->accept(*id);
}

void RunningStreams::abort(engine::SteppingEngine& engine, const std::shared_ptr<Stream>& stream) {
    const std::optional<engine::RequestId> id = stream->id();
    if (!id) return;
    const auto at = streams_.find(*id); // which another request may have, of an engine that was replaced
    if (at != streams_.end() && at->second == stream) engine.abort(*id);
}

void RunningStreams::abort_all(engine::SteppingEngine& engine) {
    std::vector<engine::RequestId> ids; // an abort takes its stream away
    for (const auto& [id, stream] : streams_) ids.push_back(id);
    for (const engine::RequestId id : ids) engine.abort(id);
}

void RunningStreams::fail_all(const Failure& why) {
    for (const auto& [id, stream] : std::exchange(streams_, {})) stream->fail(why);
}

}  // namespace patchbay::service
