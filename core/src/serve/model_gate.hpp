// The model that is served, and the requests that wait while another one takes its place: they are read for the one
// that then serves them. Used by Server and ModelReplacement.
#pragma once
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/engine.hpp"
#include "serve/served_model.hpp"

namespace patchbay::serve {

struct Serving { // what is constant while one model is served
    ServedModel model;
    engine::EngineFacts facts; // at its start
};

class ModelGate { // [any thread]
  public:
    struct Entered {
        std::shared_ptr<const Serving> serving;
        std::shared_ptr<void> inside; // no other model takes over until it is released
    };

    explicit ModelGate(Serving first) : serving_(std::make_shared<const Serving>(std::move(first))) {}

    std::shared_ptr<const Serving> serving() const;
    // Calls f once: at once on this thread, or, if the gate is closed, by open().
    void enter(std::function<void(Entered)> f);
    void close(); // and waits until none is inside
    // null: the same model. Those that wait go in.
    void open(std::shared_ptr<const Serving> next = nullptr);
    void wait_until_calm() const; // open, with none inside; or ended
    void end();                   // none goes in or out any more

  private:
    Entered entered(); // the mutex is held

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::shared_ptr<const Serving> serving_;
    std::vector<std::function<void(Entered)>> waiting_;
    bool closed_ = false, ended_ = false;
    size_t inside_ = 0;
};

// A gate that is closed for as long as this lives.
class ClosedGate {
  public:
    explicit ClosedGate(ModelGate& gate) : gate_(gate) { gate_.close(); }
    ~ClosedGate() { gate_.open(std::move(next_)); }
    ClosedGate(const ClosedGate&) = delete;
    ClosedGate& operator=(const ClosedGate&) = delete;

    void open_for(std::shared_ptr<const Serving> next) { next_ = std::move(next); } // else the same model

  private:
    ModelGate& gate_;
    std::shared_ptr<const Serving> next_;
};

}  // namespace patchbay::serve
