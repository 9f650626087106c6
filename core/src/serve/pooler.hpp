// How the served model's embeddings are made, and how short they may be cut: by configuration, else as files in the
// model's folder say, as Sentence Transformers writes them. Part of ServedModel.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "config/engine_config.hpp"
#include "engine/request/request.hpp"

namespace patchbay::serve {

struct Pooler {
    engine::PoolingType pooling = engine::PoolingType::kLast;
    bool normalize = true;
    bool is_matryoshka = false;       // embeddings may be cut short
    std::vector<uint32_t> dimensions; // to these alone; empty: to any
    std::optional<Failure> refusal;   // why the model's embeddings cannot be made, such as a module that is not known
};

// Reads 1_Pooling/config.json, modules.json and config.json of a folder where they are there, pooling_type of a GGUF
// file.
Pooler read_pooler(const config::PoolerSettings&, const std::filesystem::path& model);

}  // namespace patchbay::serve
