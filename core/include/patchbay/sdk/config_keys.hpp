// patchbay/sdk/config_keys.hpp - what a model does with each key of its config.json, as a table: it reads the key,
// knows that the key has no effect on logits, or refuses what differs from the value that it computes. Keys that are in
// no row are warned about. For model plugins; docs/config-keys.md shows the tables.
#pragma once
#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "patchbay/sdk/model.hpp"

namespace patchbay {

namespace config_keys { // what tables are written with

struct ConfigKey {
    enum class Use { kReads, kReadsList, kReadsMap, kReadsAny, kIgnores, kRequires, kRequiresEach };
    std::string_view name; // of a whole object or list too: what is in it has no rows of its own
    Use use;
    std::string_view only; // of what is required: the values besides null, by ' '; empty: it must not be there
    std::string_view note; // why, for the error or, of kIgnores, for the warning where its value is not `only`
};

using Keys = std::span<const ConfigKey>; // one table

constexpr ConfigKey reads(std::string_view name) { return {name, ConfigKey::Use::kReads, {}, {}}; }
constexpr ConfigKey reads_list(std::string_view name) { return {name, ConfigKey::Use::kReadsList, {}, {}}; }
constexpr ConfigKey reads_map(std::string_view name) { return {name, ConfigKey::Use::kReadsMap, {}, {}}; }
// One value or a list.
constexpr ConfigKey reads_any(std::string_view name) { return {name, ConfigKey::Use::kReadsAny, {}, {}}; }
constexpr ConfigKey ignores(std::string_view name) { return {name, ConfigKey::Use::kIgnores, {}, {}}; }
// That transformers ignores too, though its name promises an effect: said where it has another value.
constexpr ConfigKey ignores_unless(std::string_view name, std::string_view usual, std::string_view note) {
    return {name, ConfigKey::Use::kIgnores, usual, note};
}
constexpr ConfigKey only(std::string_view name, std::string_view values, std::string_view note = {}) {
    return {name, ConfigKey::Use::kRequires, values, note};
}
// Of each item of a list.
constexpr ConfigKey only_each(std::string_view name, std::string_view values, std::string_view note = {}) {
    return {name, ConfigKey::Use::kRequiresEach, values, note};
}

inline pb_config_key to_wire(const ConfigKey& key) {
    const auto text = [](std::string_view s) { return pb_str{s.data(), s.size()}; };
    const bool limited = key.use == ConfigKey::Use::kRequires || key.use == ConfigKey::Use::kRequiresEach;
    const bool ignored = key.use == ConfigKey::Use::kIgnores;
    return {sizeof(pb_config_key), limited ? PB_KEY_LIMITED : ignored ? PB_KEY_IGNORED : PB_KEY_READ, text(key.name),
            text(key.only), text(key.note)};
}

// Of every configuration of transformers: names, tokens, defaults of generation (a request has its own), training.
inline constexpr ConfigKey kCommonKeys[] = {
    reads_list("architectures"), reads("tie_word_embeddings"), reads("vocab_size"), reads_any("eos_token_id"),
    reads("dtype"), reads("torch_dtype"), reads_map("quantization_config"),
    only("is_causal", "true", "attention that sees later tokens is not computed"),
    only("is_encoder_decoder", "false"), only("is_decoder", "true false"), only("add_cross_attention", "false"),
    only("pruned_heads", "", "heads are not removed"), only("per_layer_config", "", "layers of several configurations"),
    only("attention_chunk_size", ""),
    ignores("_name_or_path"), ignores("_commit_hash"), ignores("transformers_version"), ignores("auto_map"),
    ignores("_attn_implementation"), ignores("_attn_implementation_internal"), ignores("attn_implementation"),
    ignores("_attn_implementation_autoset"), ignores("unsloth_fixed"), ignores("unsloth_version"),
    ignores("bos_token_id"), ignores("pad_token_id"), ignores("sep_token_id"), ignores("decoder_start_token_id"),
    ignores("tokenizer_class"), ignores("prefix"), ignores("finetuning_task"), ignores("task_specific_params"),
    ignores("problem_type"), ignores("id2label"), ignores("label2id"), ignores("num_labels"),
    ignores("use_cache"), ignores("cache_implementation"), ignores("return_dict"), ignores("output_hidden_states"),
    ignores("output_attentions"), ignores("torchscript"), ignores("use_bfloat16"), ignores("tf_legacy_loss"),
    ignores("chunk_size_feed_forward"), ignores("cross_attention_hidden_size"), ignores("tie_encoder_decoder"),
    ignores("initializer_range"), ignores("attention_dropout"),
    ignores("max_length"), ignores("min_length"), ignores("do_sample"), ignores("early_stopping"),
    ignores("num_beams"), ignores("num_beam_groups"), ignores("diversity_penalty"), ignores("temperature"),
    ignores("top_k"), ignores("top_p"), ignores("typical_p"), ignores("repetition_penalty"), ignores("length_penalty"),
    ignores("no_repeat_ngram_size"), ignores("encoder_no_repeat_ngram_size"), ignores("bad_words_ids"),
    ignores("num_return_sequences"), ignores("output_scores"), ignores("return_dict_in_generate"),
    ignores("forced_bos_token_id"), ignores("forced_eos_token_id"), ignores("remove_invalid_values"),
    ignores("exponential_decay_length_penalty"), ignores("suppress_tokens"), ignores("begin_suppress_tokens"),
};

// Of decoders whose shape decoder_shape() reads.
inline constexpr ConfigKey kDecoderKeys[] = {
    reads("hidden_size"), reads("intermediate_size"), reads("num_hidden_layers"), reads("num_attention_heads"),
    reads("num_key_value_heads"), reads("max_position_embeddings"), reads("rms_norm_eps"), reads("head_dim"),
};

// Of decoders whose positions rope_settings() reads.
inline constexpr ConfigKey kRopeKeys[] = {
    reads("rope_theta"), reads_map("rope_scaling"), reads_map("rope_parameters"),
    reads("partial_rotary_factor"), reads("original_max_position_embeddings"),
};

// Of models that know no windows. transformers slides the cache of such a model, yet not what a prompt sees.
inline constexpr ConfigKey kNoWindowKeys[] = {
    only("sliding_window", "", "the architecture has no windows"),
    only_each("layer_types", "full_attention", "the architecture's layers are alike"),
};

}  // namespace config_keys

struct ModelKeys { // what a model does with the keys of one architecture; the first row of a name counts
    const char* architecture;
    std::span<const config_keys::Keys> tables;
};

namespace detail {

using config_keys::ConfigKey;

inline bool same_value(std::string_view a, std::string_view b) {
    if (a == b) return true;
    const auto number = [](std::string_view text, double& out) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
        return error == std::errc{} && end == text.data() + text.size();
    };
    double x = 0, y = 0;
    return number(a, x) && number(b, y) && x == y;
}

inline bool is_one_of(std::string_view value, std::string_view all) {
    for (size_t at = 0; at < all.size();) {
        const size_t end = std::min(all.find(' ', at), all.size());
        if (same_value(value, all.substr(at, end - at))) return true;
        at = end + 1;
    }
    return false;
}

inline std::string cut(std::string_view text) { return std::string(text.substr(0, 60)); }

// What the value of `key` is: "a list", "an empty map", "'x'". name: of it, or of what is in it.
inline std::string shape_of(std::string_view key, std::string_view name, std::string_view value) {
    if (name.size() > key.size()) {
        const std::string_view inside = name.substr(key.size() + 1);
        return std::string("a ") + container_of(inside.substr(0, inside.find('.')));
    }
    return value == "[]" ? "an empty list" : value == "{}" ? "an empty map" : shown(value);
}

// Throws for what the row does not allow; true: the row's note is to be said.
inline bool check_key(const ConfigKey& row, std::string_view name, std::string_view value) {
    if (value == "null") return false;
    const std::string is = shape_of(row.name, name, value);
    const auto refuse = [&](const std::string& expected) {
        throw Error(PB_INVALID, std::string(row.name) + " is " + is + ", expected " + expected);
    };
    const auto expect = [&](const std::string& container) { // "list", "map"
        if (is != "a " + container && is != "an empty " + container) refuse("a " + container);
    };
    const bool empty = value == "[]" || value == "{}";
    switch (row.use) {
        case ConfigKey::Use::kIgnores: return !row.note.empty() && !is_one_of(value, row.only);
        case ConfigKey::Use::kReadsAny: return false;
        case ConfigKey::Use::kReadsList: expect("list"); return false;
        case ConfigKey::Use::kReadsMap: expect("map"); return false;
        case ConfigKey::Use::kReads:
            if (name != row.name || empty) refuse("one value");
            return false;
        case ConfigKey::Use::kRequires:
            if (!row.only.empty() && (name != row.name || empty)) refuse("one value");
            break;
        case ConfigKey::Use::kRequiresEach: expect("list"); break;
    }
    if (empty || is_one_of(value, row.only)) return false;
    std::string text = cut(name) + " '" + cut(value) + "' is not supported (supported: ";
    text += row.only.empty() ? "none" : std::string(row.only);
    throw Error(PB_UNSUPPORTED, text + ")" + (row.note.empty() ? "" : ": " + std::string(row.note)));
}

}  // namespace detail

// Holds config.json to the tables: throws for a value that the model does not compute, warns of keys that are in none.
inline void check_keys(const ModelConfig& config, std::span<const config_keys::Keys> tables) {
    std::vector<std::string> unknown;
    std::set<std::string_view> unknown_roots, noted_roots;
    for (uint32_t i = 0; i < config.raw.count; ++i) {
        const std::string_view name = view(config.raw.items[i].key), value = view(config.raw.items[i].value);
        const std::string_view root = name.substr(0, name.find('.'));
        if (root == "target") continue; // of the model that a head drafts for
        const config_keys::ConfigKey* row = nullptr;
        for (const auto& table : tables)
            for (const config_keys::ConfigKey& key : table)
                if (key.name == root && !row) row = &key; // the first one
        if (row && !detail::check_key(*row, name, value)) continue;
        if (!(row ? noted_roots : unknown_roots).insert(root).second) continue;
        if (!row) unknown.emplace_back(root);
        else config.warn(detail::cut(name) + " is not read (" + std::string(row->note) + ")");
    }
    if (unknown.empty()) return;
    std::string all;
    for (const std::string& key : unknown) all += (all.empty() ? "'" : ", '") + detail::cut(key) + "'";
    config.warn("not known to this model, and not read: " + all + " (a key that changes the result would be missed)");
}

}  // namespace patchbay
