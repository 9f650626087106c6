#include "engine/trace/kv_event_file.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/output_file.hpp"

namespace patchbay::engine {
namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const kv::BlockKey& key) {
    char out[33];
    std::snprintf(out, sizeof out, "%016llx%016llx", static_cast<unsigned long long>(key.high),
                  static_cast<unsigned long long>(key.low));
    return out;
}

}  // namespace

Result<std::unique_ptr<KvEventFile>> KvEventFile::create(const std::string& path, uint32_t block_size) {
    PB_TRY(std::ofstream out, open_output(path));
    return std::unique_ptr<KvEventFile>(new KvEventFile(path, std::move(out), block_size));
}

void KvEventFile::write(std::span<const kv::CacheEvent> events, uint64_t now_ns) {
    using Kind = kv::CacheEvent::Kind;
    for (const kv::CacheEvent& e : events) {
        Json line;
        line["type"] = e.kind == Kind::kStored ? "BlockStored" : e.kind == Kind::kRemoved ? "BlockRemoved"
                                                                                           : "AllBlocksCleared";
        line["ts"] = static_cast<double>(now_ns) * 1e-9;
        if (e.kind != Kind::kCleared) line["block_hashes"] = Json::array({text_of(e.key)});
        if (e.kind == Kind::kStored) {
            line["parent_block_hash"] = e.first ? Json() : Json(text_of(e.parent));
            line["token_ids"] = e.tokens;
            line["block_size"] = block_size_;
            line["group_idx"] = e.group;
        }
        out_ << line.dump() << '\n';
    }
    out_.flush();
}

Result<> KvEventFile::close() {
    return close_output(out_, path_);
}

}  // namespace patchbay::engine
