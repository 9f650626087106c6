// The part of an engine that a loop needs: requests in, and steps until none is left. Engine has it, and so has what
// stands around an engine or, in tests, in its place. Used by service/ and by runs of experiments.
#pragma once
#include "base/clock.hpp"
#include "base/result.hpp"
#include "engine/request/request.hpp"
#include "engine/step_report.hpp"

namespace patchbay::engine {

class SteppingEngine { // what each function does is said in engine.hpp
  public:
    virtual ~SteppingEngine() = default;
    virtual Result<RequestId> add_request(Request) = 0;
    virtual void abort(RequestId) = 0;
    virtual bool has_unfinished() const = 0;
    virtual Result<> check() const = 0;
    virtual Result<StepReport> step() = 0;
    virtual Clock& clock() = 0; // on which requests arrive and steps take their time
};

}  // namespace patchbay::engine
