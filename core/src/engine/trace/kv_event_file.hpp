// What enters and leaves the prefix cache, as lines of JSON with the names of vLLM's KV events. Used by `--kv-events`.
#pragma once
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "engine/trace/trace_of.hpp"
#include "kv/kv_cache.hpp"

namespace patchbay::engine {

class KvEventFile {
  public:
    static Result<std::unique_ptr<KvEventFile>> create(const std::string& path, TraceOf = {});
    // They are in the file when it returns. `block_size`: of the cache that they are of.
    void write(std::span<const kv::CacheEvent>, uint64_t now_ns, uint32_t block_size);
    Result<> close(); // whether all of it is on the disk

  private:
    KvEventFile(std::string path, std::ofstream out, TraceOf of)
        : path_(std::move(path)), out_(std::move(out)), of_(std::move(of)) {}
    const std::string path_;
    std::ofstream out_;
    const TraceOf of_;
};

}  // namespace patchbay::engine
