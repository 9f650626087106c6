// What other threads leave for the loop until its next turn. Used by EngineThread and its loop, under their mutex.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "engine/request/request.hpp"
#include "service/stream.hpp"

namespace patchbay::service {

class Inbox { // one thread at a time
  public:
    struct Arrival {
        engine::Request request;
        std::shared_ptr<Stream> stream;
    };
    using Task = std::function<void()>; // between two steps
    struct Contents {
        std::vector<Arrival> arrivals;
        std::vector<Task> tasks;
        bool wants_boundary = false; // the turn steps, though there may be nothing to compute
    };

    explicit Inbox(size_t max_arrivals) : max_arrivals_(max_arrivals) {}

    Result<> add(Arrival); // exhausted: there are max_arrivals
    void add_task(Task task) { contents_.tasks.push_back(std::move(task)); }
    void want_boundary() { contents_.wants_boundary = true; }
    void stop() { stopping_ = true; } // for good

    bool remove(const Stream&); // the arrival that has this stream; false: there is none
    Contents take();            // all
    void hold_arrivals() { before_hold_ = arrivals(); } // those that come from now on, until take()
    Contents take_but_held();
    bool has_unheld() const { return before_hold_ > 0; } // arrivals, after hold_arrivals()

    size_t arrivals() const { return contents_.arrivals.size(); }
    bool stopping() const { return stopping_; }
    bool empty() const; // there is nothing to do

  private:
    const size_t max_arrivals_;
    Contents contents_;
    size_t before_hold_ = 0; // arrivals that were there when the others were held
    bool stopping_ = false;
};

}  // namespace patchbay::service
