// The sampling parameters of a request, a row each. By these rows they are read from JSON (serve), from flags (cli) and
// from experiments, shown to samplers, named in errors, and refused beside beam search. docs/sampling.md says how to
// add one.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/request/request.hpp"
#include "patchbay/abi/sampler.h"

namespace patchbay::engine {

// Where a parameter is stored. The type says how each reader reads it.
template <class T>
using ParameterField =
    std::variant<bool T::*, float T::*, int32_t T::*, uint32_t T::*, std::optional<int32_t> T::*,
                 std::optional<uint64_t> T::*, std::vector<std::string> T::*, std::vector<TokenId> T::*,
                 std::optional<std::vector<TokenId>> T::*, std::map<TokenId, float> T::*, EarlyStopping T::*,
                 RepetitionDetection T::*, std::optional<grammar::StructuredOutputs> T::*>;
// The same in what samplers are shown; nothing: it is no such number.
using SamplerField = std::variant<std::monostate, float pb_sampling_params::*, int32_t pb_sampling_params::*,
                                  uint32_t pb_sampling_params::*>;

struct ParameterFlag { // of `generate` and `chat`
    const char* name = nullptr; // null: it has none
    const char* help = "";
    bool shows_default = false; // in the help
    std::optional<double> low{}; // where it is not the parameter's
};

enum class InJson { // of a request over HTTP
    kNo,
    kByType,
    kOwnReader, // a function of serve's that knows its name
};

struct ParameterInfo {
    const char* name; // in JSON, experiments and errors
    // Inclusive; of a float: those of kSamplingRanges. The engine holds a float to them, and a uint32_t that has a
    // `high`; flags and keys of experiments hold all numbers to them.
    std::optional<double> low{}, high{};
    std::vector<uint32_t> only{}; // the values that it may have; empty: all between
    const char* unit = "";
    InJson json = InJson::kByType;
    ParameterFlag flag{};
    const char* key_help = nullptr; // of its key in experiments; null: it has none
    SamplerField sampler{};
    bool refused_with_beams = false; // it changes logits or removes tokens, which beams do not know
    bool recommended = false;        // a model's generation_config.json may say what it is for requests that do not
    bool of_the_model = false;       // it asks for what the model thinks, which tokens accepted by rates do not show
};

template <class T>
struct ParameterRow {
    ParameterField<T> field;
    ParameterInfo info;
};

// Of SamplingParams, and of a parameter that has parts.
template <class T>
inline constexpr bool kHasRows = false;
template <>
inline constexpr bool kHasRows<SamplingParams> = true;
template <>
inline constexpr bool kHasRows<RepetitionDetection> = true;

template <class T>
const std::vector<ParameterRow<T>>& rows_of();
template <>
const std::vector<ParameterRow<SamplingParams>>& rows_of();
template <>
const std::vector<ParameterRow<RepetitionDetection>>& rows_of();

inline constexpr uint32_t kMaxPattern = 1024; // tokens
inline constexpr std::pair<const char*, EarlyStopping> kEarlyStoppingWords[] = {
    {"false", EarlyStopping::kNo}, {"true", EarlyStopping::kYes}, {"never", EarlyStopping::kNever}};

// The name of the first parameter that the request uses, of those for which `property` is set; null: none.
const char* first_used(const SamplingParams&, bool ParameterInfo::*property);
// Sets every SamplerField.
void copy_numbers(const SamplingParams&, pb_sampling_params& out);

}  // namespace patchbay::engine
