// The keys of `sampling` in an experiment: a request's parameters by their names. Used by spec_load.
#pragma once
#include "config/table.hpp"
#include "engine/request/request.hpp"

namespace patchbay::experiment {

config::Table<engine::SamplingParams> sampling_table();

}  // namespace patchbay::experiment
