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

Result<std::unique_ptr<KvEventFile>> KvEventFile::create(const std::string& path, TraceOf of) {
    PB_TRY(std::ofstream out, open_output(path));
    return std::unique_ptr<KvEventFile>(new KvEventFile(path, std::move(out), std::move(of)));
}

void KvEventFile::write(std::span<const kv::CacheEvent> events, uint64_t now_ns, uint32_t block_size) {
    using Kind = kv::CacheEvent::Kind;
    for (const kv::CacheEvent& e : events) {
        Json line;
        if (!of_.name.empty()) line["variant"] = of_.name;
        line["type"] = e.kind == Kind::kStored ? "BlockStored" : e.kind == Kind::kRemoved ? "BlockRemoved"
                                                                                           : "AllBlocksCleared";
        line["ts"] = static_cast<double>(now_ns > of_.origin_ns ? now_ns - of_.origin_ns : 0) * 1e-9;
        if (e.kind != Kind::kCleared) line["block_hashes"] = Json::array({text_of(e.key)});
        if (e.kind == Kind::kStored) {
            line["parent_block_hash"] = e.first ? Json() : Json(text_of(e.parent));
            line["token_ids"] = e.tokens;
            line["block_size"] = block_size;
            line["group_idx"] = e.group;
        }
        out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    }
    out_.flush();
}

Result<> KvEventFile::close() {
    return close_output(out_, path_);
}

}  // namespace patchbay::engine
