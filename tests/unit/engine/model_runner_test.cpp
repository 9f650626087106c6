// What a model and a device say of one another, before a step runs and while it does.
#include "runner/model_runner.hpp"

#include <deque>
#include <map>

#include "engine_fixture.hpp"

namespace patchbay::engine::testing::model_runner_test {
namespace {

struct Parts {
    host::Device device;
    host::Model model;
    host::Attention attention;
};

Parts parts(const std::string& model) {
    const host::Services services;
    return {*registry().device("cpu", {}, services), *registry().model(model, {}, services),
            *registry().attention("paged", {}, services)};
}

// The same model with another table, of the same code.
host::Model with_table(const host::Model& original, const pb_model& table) {
    static std::deque<pb_component> types; // which outlive their components
    pb_component& type = types.emplace_back(original.component->type());
    type.vtable = &table;
    return {*host::Component::create(nullptr, type, {}, {}), &table};
}

runner::RunnerSettings settings(const std::string& architecture) {
    runner::RunnerSettings s;
    s.model_config = {{"architectures.0", architecture},
                      {"vocab_size", "64"},
                      {"n_embd", "32"},
                      {"n_layer", "2"},
                      {"n_head", "4"},
                      {"n_positions", "64"},
                      {"hidden_size", "32"},
                      {"intermediate_size", "48"},
                      {"num_hidden_layers", "2"},
                      {"num_attention_heads", "4"}};
    s.num_blocks = 8;
    s.device = "cpu";
    s.max_num_seqs = s.max_num_batched_tokens = 0; // of a batch: not known
    return s;
}

TEST(ModelRunner, RefusesAModelWhoseOpsTheDeviceLacks) {
    static pb_ops ops;
    Parts p = parts("gpt2");
    ops = *p.device.table->ops(p.device.self());
    ops.layer_norm = nullptr;
    pb_device lacking = *p.device.table;
    lacking.ops = [](void*) -> const pb_ops* { return &ops; };
    p.device.table = &lacking;
    VirtualClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), settings("GPT2LMHeadModel"), clock);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error(), "model 'gpt2' needs the op 'layer_norm', which the device 'cpu' does not have");
}

TEST(ModelRunner, SaysWhatToDoWhereTheDeviceTakesNoQuantisedWeights) {
    static const pb_device* real;
    Parts p = parts("llama");
    real = p.device.table;
    pb_device lacking = *real;
    lacking.prepare = [](void* self, const pb_weight_source* source, pb_weight** out) {
        return source->quant ? PB_UNSUPPORTED : real->prepare(self, source, out);
    };
    p.device.table = &lacking;
    runner::RunnerSettings s = settings("LlamaForCausalLM");
    s.weights.quantization = weights::Quantization::kInt4;
    VirtualClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), s, clock);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error(),
              "device 'cpu': prepare: not supported (of model 'llama', weight 'lm_head.weight' as int8 g32; with "
              "quantization: none it is given real numbers)");
}

TEST(ModelRunner, RoundsExpertsAndTheHeadAndNeitherRoutersNorEmbeddings) {
    static const pb_device* real;
    static std::map<std::pair<int64_t, pb_weight_role>, pb_dtype> dtypes; // by rows
    dtypes.clear();
    Parts p = parts("mixtral");
    real = p.device.table;
    pb_device noting = *real;
    noting.prepare = [](void* self, const pb_weight_source* source, pb_weight** out) {
        dtypes[{source->rows, source->role}] = source->dtype;
        return real->prepare(self, source, out);
    };
    p.device.table = &noting;
    runner::RunnerSettings s = settings("MixtralForCausalLM");
    s.model_config["num_local_experts"] = "5";
    s.model_config["num_experts_per_tok"] = "2";
    s.weights = {PB_BF16, weights::Quantization::kInt4, 32};
    VirtualClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), s, clock);
    ASSERT_TRUE(made) << made.error();
    EXPECT_EQ(dtypes.at({5, PB_WEIGHT_LINEAR}), PB_BF16);      // router
    EXPECT_EQ(dtypes.at({2 * 48, PB_WEIGHT_LINEAR}), PB_I4);   // gate and up of an expert
    EXPECT_EQ(dtypes.at({64, PB_WEIGHT_LINEAR}), PB_I8);       // head
    EXPECT_EQ(dtypes.at({64, PB_WEIGHT_EMBEDDING}), PB_BF16);
    EXPECT_EQ((*made)->weights().form, "int4 g32");
}

TEST(ModelRunner, RunsAModelWhoseOpsAreThere) {
    Parts p = parts("gpt2");
    VirtualClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), settings("GPT2LMHeadModel"), clock);
    ASSERT_TRUE(made) << made.error();
    EXPECT_EQ((*made)->model().facts().max_position, 64u);
}

TEST(ModelRunner, BindsAttentionOnceForEachGroupOfLayers) {
    static int bound;
    bound = 0;
    static const pb_attention* real;
    Parts p = parts("qwen");
    const host::Attention original = std::move(p.attention); // whose code it is
    real = original.table;
    pb_attention counting = *real;
    counting.bind = [](void* self, const pb_attention_spec* spec, void** out) {
        bound += 1;
        return real->bind(self, spec, out);
    };
    pb_component type = original.component->type();
    type.vtable = &counting;
    p.attention = {*host::Component::create(nullptr, type, {}, {}), &counting};
    runner::RunnerSettings s = settings("Qwen2ForCausalLM");
    s.model_config["num_hidden_layers"] = "5";
    s.model_config["use_sliding_window"] = "true";
    s.model_config["sliding_window"] = "8";
    s.model_config["max_window_layers"] = "2";
    VirtualClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), s, clock);
    ASSERT_TRUE(made) << made.error();
    EXPECT_EQ(bound, 3); // two full layers in a page, and three with a window in two
}

TEST(ModelRunner, LayersThatKeepKvOfDifferentShapesAreGroupsOfTheirOwn) {
    Parts p = parts("llama");
    static const pb_model* real;
    real = p.model.table;
    pb_model uneven = *real;
    uneven.kv_spec = [](void* self, uint32_t layer, pb_kv_spec* out) {
        const pb_status status = real->kv_spec(self, layer, out);
        if (layer == 1) out->kv_heads = 2;
        return status;
    };
    const host::Model original = std::move(p.model); // whose code it is
    p.model = with_table(original, uneven);
    VirtualClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), settings("LlamaForCausalLM"), clock);
    ASSERT_TRUE(made) << made.error();
    EXPECT_EQ((*made)->kv().grouping().groups.size(), 2u);
    EXPECT_EQ((*made)->kv().page_bytes(), 2u * 4 * 8 * 16 * 4); // keys and values of 4 heads of 8, 16 tokens, f32
    EXPECT_NEAR((*made)->kv().grouping().padding, 0.25, 1e-9);  // half of every second page
}

// What a swap of a plugin under its graphs is to do.
TEST(ModelRunner, CapturesAnewOnceItsGraphsAreDropped) {
    const host::Services services;
    Parts p = parts("gpt2");
    p.device = *registry().device("sim",
                                  {{"matmul_bf16", "1e9"},
                                   {"matmul_f32", "1e9"},
                                   {"memory_read", "1e9"},
                                   {"memory_bytes", "100000000"}},
                                  services);
    runner::RunnerSettings s = settings("GPT2LMHeadModel");
    s.device = "sim";
    s.cudagraph_mode = config::GraphMode::kFullDecodeOnly;
    s.cudagraph_capture_sizes = {1, 2};
    s.max_num_seqs = 2;
    s.max_num_batched_tokens = s.max_model_len = 8;
    VirtualClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), s, clock);
    ASSERT_TRUE(made) << made.error();
    runner::ModelRunner& runner = **made;
    kv::KvCache cache(8, 16, kv::PrefixCaching::kOff, "", runner.kv().grouping().groups);
    kv::BlockTable table;
    ASSERT_TRUE(cache.tables().grow(table, 8));
    const auto replayed = [&](uint32_t position) {
        const int32_t token = 5;
        runner::Batch batch;
        batch.clear(runner.kv().batch_form());
        batch.add({std::span(&token, 1), position, 1, table});
        batch.finish();
        EXPECT_TRUE(runner.passes().forward(batch));
        return runner.passes().latest().graph.miss == runner::GraphMiss::kNone;
    };
    EXPECT_EQ(runner.passes().graphs().cache().count(), 2u);
    EXPECT_TRUE(replayed(0));
    EXPECT_TRUE(runner.attention().use(runner.attention().component())); // its own, bound anew
    EXPECT_EQ(runner.passes().graphs().cache().count(), 0u);
    EXPECT_EQ(runner.passes().graphs().cache().bytes(), 0u);
    EXPECT_FALSE(replayed(1));
    EXPECT_EQ(runner.passes().latest().graph.miss, runner::GraphMiss::kNotCaptured);
    EXPECT_EQ(runner.passes().graphs().cache().count(), 1u) << "of the size that the step had";
    EXPECT_TRUE(replayed(2));
}

TEST(ModelRunner, SaysWhichLayerAttentionRefuses) {
    Parts p = parts("llama");
    static const pb_model* real;
    real = p.model.table;
    pb_model odd = *real;
    odd.kv_spec = [](void* self, uint32_t layer, pb_kv_spec* out) {
        const pb_status status = real->kv_spec(self, layer, out);
        if (layer == 1) out->kv_heads = 3;
        return status;
    };
    const host::Model original = std::move(p.model); // whose code it is
    p.model = with_table(original, odd);
    VirtualClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), settings("LlamaForCausalLM"), clock);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().find("layer 1: attention 'paged': describe: "), 0u) << made.error();
}

// What a Llama with attention sinks in weight `sinks` − 1 is refused for; empty: it is not.
std::string fault_of_sinks(uint32_t sinks, uint32_t capabilities) {
    static const pb_model* real;
    static uint32_t at;
    at = sinks;
    Parts p = parts("llama");
    real = p.model.table;
    pb_model with_sinks = *real;
    with_sinks.kv_spec = [](void* self, uint32_t layer, pb_kv_spec* out) {
        const pb_status status = real->kv_spec(self, layer, out);
        if (layer == 1) out->sinks = at;
        return status;
    };
    const host::Model original = std::move(p.model); // whose code it is
    p.model = with_table(original, with_sinks);
    const host::Attention attention = std::move(p.attention); // likewise
    pb_attention table = *attention.table;
    table.capabilities = capabilities;
    pb_component type = attention.component->type();
    type.vtable = &table;
    p.attention = {*host::Component::create(nullptr, type, {}, {}), &table};
    VirtualClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), settings("LlamaForCausalLM"), clock);
    return made ? "" : made.error();
}

TEST(ModelRunner, RefusesSinksThatAttentionDoesNotTakeOrThatAreNoneOfItsHeads) {
    constexpr uint32_t kTheNorm = 2; // 1 + its index: a vector, as long as the hidden state
    EXPECT_EQ(fault_of_sinks(kTheNorm, PB_ATTENTION_SLOPES),
              "layer 1: has attention sinks, which attention 'paged' does not do (choose another: patchbay plugin list "
              "--kind attention)");
    EXPECT_EQ(fault_of_sinks(kTheNorm, PB_ATTENTION_SINKS),
              "layer 1 has its attention sinks in weight 1, a vector of 32, expected one number for each of its 4 "
              "heads");
    EXPECT_EQ(fault_of_sinks(1, PB_ATTENTION_SINKS),
              "layer 1 has its attention sinks in weight 0, which is not a vector of its own");
    EXPECT_TRUE(fault_of_sinks(1000, PB_ATTENTION_SINKS)
                    .starts_with("layer 1 has its attention sinks in weight 999, and there are "));
    EXPECT_EQ(fault_of_sinks(0, PB_ATTENTION_SLOPES), "");
}

TEST(ModelRunner, SaysThatAModelAttendsInALayerThatIsNotThere) {
    Parts p = parts("llama");
    static const pb_model* real;
    static void (*attend)(void*, uint32_t, const pb_tensor*, const pb_tensor*, const pb_tensor*, const pb_tensor*);
    real = p.model.table;
    pb_model beyond = *real;
    beyond.forward = [](void* self, const pb_forward* f) {
        pb_forward other = *f;
        attend = f->attend;
        other.attend = [](void* ctx, uint32_t layer, const pb_tensor* out, const pb_tensor* q, const pb_tensor* k,
                          const pb_tensor* v) { attend(ctx, layer + 1, out, q, k, v); };
        return real->forward(self, &other);
    };
    const host::Model original = std::move(p.model); // whose code it is
    p.model = with_table(original, beyond);
    VirtualClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), settings("LlamaForCausalLM"), clock);
    ASSERT_TRUE(made) << made.error();
    const std::vector<int32_t> tokens = {1, 2, 3};
    const kv::BlockTable table{.pages = {{0}}};
    runner::Batch batch;
    batch.clear((*made)->kv().batch_form());
    batch.add({tokens, 0, 1, table});
    batch.finish();
    const auto logits = (*made)->passes().forward(batch);
    ASSERT_FALSE(logits);
    EXPECT_EQ(logits.error(), "model 'llama' attends in layer 2 of 2");
}

// Looked at in the device's memory, which is the host's.
TEST(ModelRunner, OverwritesPagesAndSlotsWithZeros) {
    Parts p = parts("llama");
    runner::RunnerSettings its = settings("LlamaForCausalLM");
    its.zero_freed_blocks = true;
    its.preemption_mode = config::PreemptionMode::kSwap;
    its.num_swap_blocks = 2;
    RealClock clock;
    const auto made = runner::ModelRunner::create(std::move(p.device), std::move(p.model), std::move(p.attention),
                                                  weights::WeightSource::dummy(1), its, clock);
    ASSERT_TRUE(made) << made.error();
    runner::ModelRunner& r = **made;
    EXPECT_GT(r.kv().host_pages().ns_a_page(), 0);
    const auto bytes = [&](kv::BlockId id) {
        const auto* const first = r.kv().pages().page(id);
        return std::vector<uint8_t>(first, first + r.kv().page_bytes());
    };
    const std::vector<uint8_t> zeros(r.kv().page_bytes());
    kv::KvCache cache(8, 16, kv::PrefixCaching::kOff, "m", {kv::GroupSpec{}}, 2);
    kv::BlockTable t;
    ASSERT_TRUE(cache.tables().grow(t, 5));
    const kv::BlockId page = t.pages[0][0];
    const std::vector<int32_t> ids = {1, 2, 3, 4, 5};
    runner::Batch batch;
    batch.clear(r.kv().batch_form());
    batch.add({ids, 0, 1, t});
    batch.finish();
    ASSERT_TRUE(r.passes().forward(batch));
    const auto computed = bytes(page);
    EXPECT_NE(computed, zeros);
    const auto make = [&](std::vector<kv::PageCopy> copies) {
        batch.clear(r.kv().batch_form());
        for (const kv::PageCopy& c : copies) batch.copy(c);
        batch.finish();
        ASSERT_TRUE(r.passes().forward(batch));
    };
    using kv::Way;
    make({{1, page, Way::kToHost}, {page, page, Way::kZeroPage}});
    EXPECT_EQ(bytes(page), zeros);
    make({{7, 1, Way::kToDevice}, {1, 1, Way::kZeroSlot}, {6, 1, Way::kToDevice}});
    EXPECT_EQ(bytes(7), computed) << "in order: before the slot became zero";
    EXPECT_EQ(bytes(6), zeros);
}

}  // namespace
}  // namespace patchbay::engine::testing::model_runner_test
