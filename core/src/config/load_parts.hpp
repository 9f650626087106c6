// Parts of load.cpp that are files of their own.
#pragma once
#include "config/engine_config.hpp"
#include "config/table.hpp"

namespace patchbay::config {

// The key `allowed_plugins`: digests by the names of libraries.
void add_allowed_plugins(Table<EngineConfig>&);

// The words of `engine.kv_cache_dtype`, and the key `engine.kv_cache_dtype_layers`: a map from layers ("7", "0-3",
// "last 2") to such a word.
std::vector<Word<KvDType>> kv_dtype_words();
void add_kv_dtype_layers(Table<EngineSettings>&);

// Keys that are right alone and not together. `effective`: every key with its origin. Faults: what cannot be; warnings:
// what works and can hardly be meant.
void check_together(const EngineConfig&, const Node& effective, Faults& faults, Faults& warnings);

}  // namespace patchbay::config
