// `engine.kv_cache_dtype` and `engine.kv_cache_dtype_layers`: their words, and how layers are named. Part of load.cpp.
#pragma once
#include "config/engine_config.hpp"
#include "config/table.hpp"

namespace patchbay::config {

std::vector<Word<KvDType>> kv_dtype_words();

// The key of a map from layers ("7", "0-3", "last 2") to a word.
void add_kv_dtype_layers(Table<EngineSettings>&);

}  // namespace patchbay::config
