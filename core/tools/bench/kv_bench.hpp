// What the KV cache's bookkeeping costs a token: blocks for prompts and for single tokens, identities, looking prefixes
// up, giving blocks back. No KV is computed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace patchbay::bench {

struct KvCase {
    uint32_t block_size = 16;
    uint32_t prompt = 2048;    // tokens
    uint32_t sequences = 256;  // at once
    uint32_t groups = 1;       // of layers that keep all tokens
    uint32_t repeats = 9;      // medians count
};

struct KvCosts { // seconds a token
    double prompt = 0;         // blocks for a whole prompt
    double name = 0;           // hashing them, so that others find them
    double hit = 0, miss = 0;  // looking up a prompt that is cached whole; whose first block is not
    double adopt = 0;          // a hit that is taken, and given back
    double decode = 0;         // one more token of each sequence: its block, and its identity where it fills one
    double release = 0;        // giving back
    double evict = 0;          // blocks for a prompt out of cached ones
};

struct KvResult {
    KvCase asked;
    KvCosts median;
};

Result<KvResult> bench_kv(const KvCase&, const Clock&);

std::string table_of(const std::vector<KvResult>&);
std::string json_of(const std::vector<KvResult>&);

}  // namespace patchbay::bench
