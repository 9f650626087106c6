// What enters and leaves the prefix cache, as lines of JSON with the names of vLLM's KV events. Used by `--kv-events`.
#pragma once
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

class KvEventFile {
  public:
    static Result<std::unique_ptr<KvEventFile>> create(const std::string& path, uint32_t block_size);
    void write(std::span<const kv::CacheEvent>, uint64_t now_ns);
    Result<> close(); // whether all of it is on the disk

  private:
    KvEventFile(std::string path, std::ofstream out, uint32_t block_size)
        : path_(std::move(path)), out_(std::move(out)), block_size_(block_size) {}
    std::string path_;
    std::ofstream out_;
    uint32_t block_size_;
};

}  // namespace patchbay::engine
