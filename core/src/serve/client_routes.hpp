// The routes of a server's clients.
#pragma once
#include <vector>

#include "serve/admission.hpp"
#include "serve/model_gate.hpp"
#include "serve/routes.hpp"
#include "serve/serve_metrics.hpp"
#include "service/engine_thread.hpp"

namespace patchbay::serve {

struct TextContext { // all of it outlives the requests
    service::EngineThread& engine;
    ModelGate& gate;
    Admission& admission;
    const Routes& routes; // that the answers go by
    ServeMetrics& metrics;
    bool prefix_cache_per_key; // requests of two keys share no cached KV
};

// The routes that generate: completions, chat, embeddings. Each request is admitted, waits for the model where that is
// about to change, is read off the threads that serve connections where that may take long, and becomes a Generation.
std::vector<Route> text_routes(const TextContext&);

// The routes that answer from the served model alone: its names, and text as tokens and back. Both outlive requests.
std::vector<Route> model_routes(const ModelGate&, const Routes&);

}  // namespace patchbay::serve
