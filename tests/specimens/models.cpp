// A healthy model of two kinds of weight, and models each wrong in one way, as components of one library.
#include <cstdio>
#include <limits>

#include "patchbay/sdk/model.hpp"

namespace {

using patchbay::Error;
using patchbay::ModelConfig;

class Bigram {  // embedding and output matrix a layer, and one weight that it computes itself
  public:
    static constexpr const char* kArchitectures[] = {"SpecimenForCausalLM", nullptr};

    pb_model_facts load_config(const ModelConfig& config) {
        hidden_ = positive(config, "hidden_size");
        layers_ = positive(config, "num_hidden_layers");
        vocab_ = positive(config, "vocab_size");
        return {sizeof(pb_model_facts), vocab_, hidden_, layers_, 256, 0};
    }
    uint32_t weight_count() const { return layers_ + 1; }
    pb_weight_spec weight(uint32_t index) const {
        if (index > layers_) throw Error(PB_INVALID, "no such weight");
        pb_weight_spec s = patchbay::sized<pb_weight_spec>();
        s.role = index == layers_ ? PB_WEIGHT_VECTOR : PB_WEIGHT_LINEAR;
        s.uses = uint64_t{1} << s.role;
        s.cols = hidden_;
        if (index == layers_) return s;
        s.part_count = 1;
        std::snprintf(s.parts[0].name, sizeof s.parts[0].name, "layers.%u.weight", index);
        s.parts[0].rows = hidden_;
        return s;
    }
    void fill(uint32_t, float* out) const { std::fill_n(out, hidden_, 1.0f); }
    pb_kv_spec kv_spec(uint32_t) const { return {sizeof(pb_kv_spec), PB_KV_FULL, 4, 2, 16, 0, 0.25f, 0, 0}; }
    void forward(const patchbay::Forward&) const {}

  protected:
    static uint32_t positive(const ModelConfig& config, const char* key) {
        const auto x = config.require<int64_t>(key);
        if (x < 1 || x > 1 << 20) throw Error(PB_INVALID, std::string(key) + " is " + std::to_string(x));
        return static_cast<uint32_t>(x);
    }
    uint32_t hidden_ = 0, layers_ = 0, vocab_ = 0;
};

struct ServesNothing : Bigram {
    static constexpr const char* kArchitectures[] = {"", nullptr};
};

struct BelievesAnyVocabulary : Bigram {
    pb_model_facts load_config(const ModelConfig& config) {
        hidden_ = positive(config, "hidden_size");
        layers_ = positive(config, "num_hidden_layers");
        vocab_ = static_cast<uint32_t>(config.require<int64_t>("vocab_size"));
        return {sizeof(pb_model_facts), vocab_, hidden_, layers_, 256, 0};
    }
};

struct ReportsAnotherWidth : Bigram {
    pb_model_facts load_config(const ModelConfig& config) {
        auto facts = Bigram::load_config(config);
        facts.hidden_size += 1;
        return facts;
    }
};

struct TakesATensorTwice : Bigram {
    pb_weight_spec weight(uint32_t index) const { return Bigram::weight(index == 1 ? 0 : index); }
};

struct HasWeightsWithoutEnd : Bigram {
    pb_weight_spec weight(uint32_t index) const { return Bigram::weight(std::min(index, layers_)); }
};

struct TakesATargetsWeight : Bigram {  // and is no head
    pb_weight_spec weight(uint32_t index) const {
        pb_weight_spec s = Bigram::weight(index);
        if (index == 0) s.of_target = PB_TARGET_LM_HEAD;
        return s;
    }
};

struct FillsPastTheEnd : Bigram {
    void fill(uint32_t, float* out) const { std::fill_n(out, hidden_ + 1, 1.0f); }
};

struct HasNoScale : Bigram {
    pb_kv_spec kv_spec(uint32_t) const {
        return {sizeof(pb_kv_spec), PB_KV_FULL, 4, 2, 16, 0, std::numeric_limits<float>::quiet_NaN(), 0, 0};
    }
};

template <class T>
constexpr pb_component component(const char* name) {
    return patchbay::model<T>({.name = name, .version = "1.0.0", .summary = "for the tests of the probe"});
}

}  // namespace

PATCHBAY_PLUGIN(component<Bigram>("healthy"), component<ServesNothing>("serves_nothing"),
                component<BelievesAnyVocabulary>("believes_any_vocabulary"),
                component<ReportsAnotherWidth>("reports_another_width"),
                component<TakesATensorTwice>("takes_a_tensor_twice"),
                component<HasWeightsWithoutEnd>("has_weights_without_end"),
                component<FillsPastTheEnd>("fills_past_the_end"), component<HasNoScale>("has_no_scale"),
                component<TakesATargetsWeight>("takes_a_targets_weight"))
