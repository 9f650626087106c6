// The routes of a server's clients.
#pragma once
#include <memory>
#include <vector>

#include "serve/admission.hpp"
#include "serve/model_gate.hpp"
#include "serve/routes.hpp"
#include "serve/serve_metrics.hpp"
#include "service/engine_thread.hpp"

namespace patchbay::serve {

struct AdmissionContext { // all of it outlives the requests
    Admission& admission;
    const Routes& routes; // that the answers go by
    ServeMetrics& metrics;
};

// The permit of one more request, held as long as it is under way. Null: it is refused, and answered so.
std::shared_ptr<void> admit(const AdmissionContext&, const std::shared_ptr<Exchange>&);

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

// The routes that answer from the served model alone: its names, and text as tokens and back, for which requests are
// admitted. The gate outlives them.
std::vector<Route> model_routes(const ModelGate&, const AdmissionContext&);

}  // namespace patchbay::serve
