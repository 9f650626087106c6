// Variants from factors, the order of the runs, and whether variants differ in more than they declare.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "experiment/spec.hpp"

namespace patchbay::experiment {

struct Factor {
    std::string path;                // "engine.max_num_seqs"
    std::vector<config::Node> values;
};

// The Cartesian product, the last factor fastest; names such as "scheduler=fcfs max_num_seqs=8".
Result<std::vector<VariantSpec>> expand(const std::vector<Factor>&);
using Leaf = std::pair<std::string, std::string>; // dotted path, value
std::vector<Leaf> leaves_of(const config::Node&);
// Dotted paths of the leaves of a patch.
std::vector<std::string> leaf_paths(const config::Node&);

struct RunSlot {
    size_t variant = 0;
    uint32_t repeat = 0;
    std::optional<double> rate{}; // of arrivals, instead of the workload's
    uint32_t attempt = 0;
};
// ABBA: each pair of repeats draws one order of the variants, runs it forwards, then backwards.
std::vector<RunSlot> run_order(size_t variants, uint32_t repeats, uint64_t seed);

using FlatTree = std::map<std::string, std::string>; // dotted path → value

struct ConfigDifference {
    std::string path, baseline, value; // empty: absent
    bool declared;
};
// Paths at or below one of `declared` are declared.
std::vector<ConfigDifference> differences(const FlatTree& baseline, const FlatTree& variant,
                                          const std::vector<std::string>& declared);

}  // namespace patchbay::experiment
