// The calls of functions that are compiled with -finstrument-functions, in order.
#pragma once
#include <string>
#include <vector>

namespace patchbay::testing {

struct Call {
    std::string name;   // without arguments: "patchbay::engine::Intake::add"
    std::string caller; // the traced function that it was called from; empty: none
    bool is_const;      // a member function that changes nothing
};

void begin_trace();
// Of all threads since begin_trace(): each function once for each caller, where it was called first.
std::vector<Call> end_trace();

}  // namespace patchbay::testing
