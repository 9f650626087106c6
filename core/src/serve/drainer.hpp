// The gentle end of a server: it takes no more requests, and once all that it has are answered its parts end. Used by
// Server.
#pragma once
#include <mutex>
#include <thread>

#include "serve/admission.hpp"
#include "serve/http_server.hpp"
#include "serve/model_gate.hpp"
#include "service/engine_thread.hpp"

namespace patchbay::serve {

class Drainer { // [any thread]
  public:
    Drainer(Admission& admission, const ModelGate& gate, service::EngineThread& engine)
        : admission_(admission), gate_(gate), engine_(engine) {}
    ~Drainer() { join(); }

    void begin(HttpServer&); // returns at once: the rest is done on a thread of its own. Where it has begun, nothing
    void join();             // waits for that thread, if there is one

  private:
    Admission& admission_;
    const ModelGate& gate_;
    service::EngineThread& engine_;
    std::mutex mutex_;
    std::thread thread_; // under the mutex
};

}  // namespace patchbay::serve
