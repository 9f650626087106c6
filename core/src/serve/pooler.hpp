// How the served model's embeddings are made, and how short they may be cut: by configuration, else as files in the
// model's folder say, as Sentence Transformers writes them. Part of ServedModel.
#pragma once
#include <cstdint>
#include <filesystem>
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
};

// Reads 1_Pooling/config.json, modules.json and config.json where they are there. Fails where the first wants a pooling
// that is neither of the last token nor a mean, and no pooling_type is configured.
Result<Pooler> read_pooler(const config::PoolerSettings&, const std::filesystem::path& model);

}  // namespace patchbay::serve
