// What a token of a forward pass multiplies by and reads: for simulated devices and reports.
#pragma once
#include <cstdint>
#include <vector>

namespace patchbay::runner {

struct ExpertWork { // of the weights that this share of all tokens chooses
    double share = 1;
    uint64_t params = 0, bytes = 0;
};

struct AttentionWork { // of the layers that have this window
    uint32_t window = 0;  // tokens that a token sees, including itself; 0: all
    uint64_t flop = 0;    // for each key that a token sees
    bool operator==(const AttentionWork&) const = default;
};

struct ModelWork { // of one token of a forward pass
    uint64_t linear_params = 0,
             head_params = 0;  // multiply-adds; head: of the matrix that makes logits, for rows that ask
    uint64_t linear_bytes = 0;                   // of these in the device's memory
    std::vector<ExpertWork> experts;             // of linears that not every token multiplies by; one entry a share
    std::vector<AttentionWork> attention;        // one entry a window

    double params_of_token() const; // the head's not
    // That a pass over so many tokens is expected to read, if they choose their experts independently.
    double bytes_of_pass(double tokens) const;
};

}  // namespace patchbay::runner
