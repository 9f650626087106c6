#include <nlohmann/json.hpp>
#include <set>

#include "base/flat_string.hpp"
#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "patchbay/sdk/config_shape.hpp"
#include "weights/checkpoint.hpp"
#include "weights/gguf_model.hpp"

namespace patchbay::weights {
namespace {

constexpr JsonLimits kConfigLimits{.bytes = 16 << 20, .depth = 32};

// Numbers stay as they are written: as doubles, 99999999999999999999 would be 1e+20 in every error about it.
class Flattener final : public nlohmann::json_sax<nlohmann::json> {
  public:
    FlatConfig take() { return std::move(out_); }
    bool is_full() const { return out_.size() == kMaxConfigKeys; }
    // A key that an object has twice: which of the values holds is not for this reader to guess. Empty: none.
    const std::string& repeated() const { return repeated_; }

    bool null() override { return put("null"); }
    bool boolean(bool value) override { return put(value ? "true" : "false"); }
    bool number_integer(number_integer_t value) override { return put(std::to_string(value)); }
    bool number_unsigned(number_unsigned_t value) override { return put(std::to_string(value)); }
    bool number_float(number_float_t, const string_t& text) override { return put(text); }
    bool string(string_t& value) override { return put(flat_string(std::move(value))); }
    bool binary(binary_t&) override { return false; } // not in JSON
    bool key(string_t& name) override {
        Level& in = open_.back();
        if (!in.keys.insert(name).second) repeated_ = in.prefix.empty() ? name : in.prefix + "." + name;
        in.key = name;
        return repeated_.empty();
    }
    bool start_object(size_t) override { return open({next_key(), false}); }
    bool end_object() override { return close("{}"); }
    bool start_array(size_t) override { return open({next_key(), true}); }
    bool end_array() override { return close("[]"); }
    bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

  private:
    struct Level {
        std::string prefix;
        bool is_list;
        size_t items = 0; // values so far
        std::string key{};
        std::set<std::string> keys{}; // of an object, so far
    };

    bool open(Level level) {
        open_.push_back(std::move(level));
        return true;
    }
    bool close(const char* if_empty) {
        const Level done = std::move(open_.back());
        open_.pop_back();
        return done.items > 0 || open_.empty() || set(done.prefix, if_empty);
    }
    std::string next_key() { // of the value that comes now
        if (open_.empty()) return "";
        Level& in = open_.back();
        const std::string name = in.is_list ? std::to_string(in.items) : in.key;
        in.items += 1;
        return in.prefix.empty() ? name : in.prefix + "." + name;
    }
    bool put(std::string text) { return set(next_key(), std::move(text)); }
    bool set(const std::string& key, std::string text) {
        if (is_full() && !out_.contains(key)) return false; // and nothing more is read
        out_[key] = std::move(text);
        return true;
    }

    FlatConfig out_;
    std::string repeated_;
    std::vector<Level> open_; // objects and lists around the value that comes
};

}  // namespace

Result<std::optional<std::string>> single_value(const FlatConfig& config, const std::string& key) {
    for (const auto& [other, value] : config)
        if (const std::string fault = shape_fault(key, other, value, "a single value"); !fault.empty())
            return invalid(fault);
    const auto at = config.find(key);
    if (at == config.end() || at->second == "null") return std::optional<std::string>();
    return std::optional(at->second);
}

Result<FlatConfig> flatten_json(std::string_view text, const std::string& where) {
    PB_TRY(nlohmann::json value, parse_json(text, where, kConfigLimits));
    const EmptiesJson empties(value);
    if (!value.is_object()) return invalid(where + " is not a JSON object");
    Flattener flattener;
    if (!nlohmann::json::sax_parse(text, &flattener)) { // of JSON that is known to be good
        if (const std::string& key = flattener.repeated(); !key.empty())
            return invalid(where + ": '" + printable(key) + "' is given twice");
        return invalid(where + " has more than " + std::to_string(kMaxConfigKeys) + " values");
    }
    return flattener.take();
}

Result<FlatConfig> read_json_flat(const std::filesystem::path& file) {
    PB_TRY(const std::string text, read_whole_file(file, kConfigLimits.bytes));
    return flatten_json(text, file.string());
}

Result<FlatConfig> read_model_config(const std::filesystem::path& folder) {
    std::error_code error;
    if (is_gguf(folder)) {
        PB_TRY(const GgufFile file, open_gguf(folder));
        return gguf_config(file.gguf);
    }
    if (!std::filesystem::exists(folder, error))
        return not_found("no model folder " + folder.string());
    if (!std::filesystem::is_directory(folder, error))
        return invalid(folder.string() + " is not a folder (a model is a Hugging Face folder, or a .gguf file)");
    if (!std::filesystem::exists(folder / "config.json", error))
        return not_found("no config.json in " + folder.string() + " (is it a Hugging Face model folder?)");
    return read_json_flat(folder / "config.json");
}

}  // namespace patchbay::weights
