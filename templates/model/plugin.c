/* @name@ - a model in C11: decoder layers with rotary positions, grouped queries and a gated MLP, each after a norm. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patchbay/abi/model.h"
#include "patchbay/plugin_names.h"

/* `architectures` of config.json names the plugin. */
static const char *const architectures[] = {"@Name@ForCausalLM", NULL};

typedef struct @Class@ {
    const pb_host *host;
    uint32_t hidden, inner, layers, heads, kv_heads, head_dim, vocab, positions;
    double eps, theta;
    int tied;
} @Class@;

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    @Class@ *const made = calloc(1, sizeof *made);
    (void)config;
    if (!made) return PB_FAILED;
    made->host = host;
    *self = made;
    return PB_OK;
}
static void destroy(void *self) { free(self); }

/* ---- config.json, whose keys are flattened: "rope_scaling.factor" ---------------------------- */

static const char *find(const pb_model_config *config, const char *key, char *out, size_t size) { /* NULL: missing */
    for (uint32_t i = 0; i < config->count; ++i) {
        const pb_setting *const s = &config->items[i];
        if (s->key.size != strlen(key) || memcmp(s->key.data, key, s->key.size) != 0) continue;
        snprintf(out, size, "%.*s", (int)(s->value.size < size ? s->value.size : size - 1), s->value.data);
        return strcmp(out, "null") == 0 ? NULL : out;
    }
    return NULL;
}
static pb_status refuse(const @Class@ *me, pb_status status, const char *key, const char *got, const char *expected) {
    char why[256];
    const int n = snprintf(why, sizeof why, "%s is %s, expected %s", key, got ? got : "missing", expected);
    me->host->error(me->host->ctx, (pb_str){why, n < (int)sizeof why ? (size_t)n : sizeof why - 1});
    return status;
}
/* A number of [low, high]; missing: what a missing key means, 0: it must be there. */
static pb_status number(const @Class@ *me, const pb_model_config *config, const char *key, double low, double high,
                        double missing, double *out) {
    char text[64], expected[64], *end;
    const char *const value = find(config, key, text, sizeof text);
    snprintf(expected, sizeof expected, "%g to %g", low, high);
    if (!value && missing == 0) return refuse(me, PB_INVALID, key, NULL, expected);
    *out = value ? strtod(value, &end) : missing;
    if (value && (end == value || *end || !(*out >= low && *out <= high)))
        return refuse(me, PB_INVALID, key, value, expected);
    return PB_OK;
}
static pb_status whole(const @Class@ *me, const pb_model_config *config, const char *key, uint32_t high,
                       uint32_t missing, uint32_t *out) {
    double value = 0;
    const pb_status status = number(me, config, key, 1, high, missing, &value);
    *out = (uint32_t)value;
    return status == PB_OK && *out != value ? refuse(me, PB_INVALID, key, "a fraction", "a whole number") : status;
}

/* Reads the hyperparameters. What forward() does not do is refused. */
static pb_status load_config(void *self, const pb_model_config *config, pb_model_facts *out) {
    @Class@ *const me = self;
    char text[64];
    const char *value;
    pb_status s = PB_OK;
    if (config->tensor_parallel_size != 1) return refuse(me, PB_UNSUPPORTED, "tensor_parallel_size", "more", "1");
    if (!s) s = whole(me, config, "hidden_size", 1 << 16, 0, &me->hidden);
    if (!s) s = whole(me, config, "intermediate_size", 1 << 20, 0, &me->inner);
    if (!s) s = whole(me, config, "num_hidden_layers", 1024, 0, &me->layers);
    if (!s) s = whole(me, config, "num_attention_heads", 4096, 0, &me->heads);
    if (!s) s = whole(me, config, "num_key_value_heads", 4096, me->heads, &me->kv_heads);
    if (!s) s = whole(me, config, "head_dim", 1024, me->hidden / me->heads ? me->hidden / me->heads : 1, &me->head_dim);
    if (!s) s = whole(me, config, "vocab_size", 1 << 24, 0, &me->vocab);
    if (!s) s = whole(me, config, "max_position_embeddings", 1 << 26, 2048, &me->positions);
    if (!s) s = number(me, config, "rms_norm_eps", 0, 0.5, 1e-6, &me->eps);
    if (!s) s = number(me, config, "rope_theta", 1, 1e12, 10000, &me->theta); /* of transformers 5 in rope_parameters */
    if (!s) s = number(me, config, "rope_parameters.rope_theta", 1, 1e12, me->theta, &me->theta);
    if (s != PB_OK) return s;
    if (me->heads % me->kv_heads) return refuse(me, PB_INVALID, "num_key_value_heads", "no divisor", "one of heads");
    if (me->head_dim % 2) return refuse(me, PB_UNSUPPORTED, "head_dim", "odd", "an even one");
    value = find(config, "hidden_act", text, sizeof text);
    if (value && strcmp(value, "silu") != 0) return refuse(me, PB_UNSUPPORTED, "hidden_act", value, "silu");
    value = find(config, "rope_parameters.rope_type", text, sizeof text);
    if (value && strcmp(value, "default") != 0) return refuse(me, PB_UNSUPPORTED, "rope_type", value, "default");
    value = find(config, "attention_bias", text, sizeof text);
    if (value && strcmp(value, "false") != 0) return refuse(me, PB_UNSUPPORTED, "attention_bias", value, "false");
    value = find(config, "mlp_bias", text, sizeof text);
    if (value && strcmp(value, "false") != 0) return refuse(me, PB_UNSUPPORTED, "mlp_bias", value, "false");
    value = find(config, "sliding_window", text, sizeof text);
    if (value) return refuse(me, PB_UNSUPPORTED, "sliding_window", value, "null");
    for (uint32_t i = 0; i < config->count; ++i)
        if (config->items[i].key.size > 13 && memcmp(config->items[i].key.data, "rope_scaling.", 13) == 0)
            return refuse(me, PB_UNSUPPORTED, "rope_scaling", "there", "none");
    value = find(config, "tie_word_embeddings", text, sizeof text);
    me->tied = value && strcmp(value, "true") == 0;
    out->vocab_size = me->vocab;
    out->hidden_size = me->hidden;
    out->layer_count = me->layers;
    out->max_position = me->positions;
    return PB_OK;
}

/* ---- weights, by index: those of the whole model, then LAYER_WEIGHTS of each layer ------------ */

enum { EMBEDDING, NORM, HEAD, FREQUENCIES, FIRST_LAYER };
enum { L_NORM, L_QKV, L_OUT, L_MLP_NORM, L_GATE_UP, L_DOWN, LAYER_WEIGHTS };

static uint32_t weight_count(void *self) { return FIRST_LAYER + LAYER_WEIGHTS * ((const @Class@ *)self)->layers; }

/* A tensor of the checkpoint, below those that are in the weight already. */
static void add_part(pb_weight_spec *w, int64_t rows, const char *prefix, const char *name) {
    pb_weight_part *const part = &w->parts[w->part_count++];
    snprintf(part->name, sizeof part->name, "%s%s.weight", prefix, name);
    part->rows = rows;
}

static pb_status weight(void *self, uint32_t index, pb_weight_spec *w) {
    const @Class@ *const me = self;
    const int64_t q = (int64_t)me->heads * me->head_dim, kv = (int64_t)me->kv_heads * me->head_dim;
    const uint32_t in_layer = index < FIRST_LAYER ? 0 : (index - FIRST_LAYER) % LAYER_WEIGHTS;
    char layer[64] = "";
    if (index >= weight_count(self)) return PB_INVALID;
    if (index >= FIRST_LAYER) snprintf(layer, sizeof layer, "model.layers.%u.", (index - FIRST_LAYER) / LAYER_WEIGHTS);
    w->role = PB_WEIGHT_LINEAR;
    w->cols = me->hidden;
    if (index == EMBEDDING) {
        w->role = PB_WEIGHT_EMBEDDING;
        add_part(w, me->vocab, "", "model.embed_tokens");
    } else if (index == NORM) {
        w->role = PB_WEIGHT_VECTOR;
        add_part(w, 1, "", "model.norm");
    } else if (index == HEAD) {
        if (me->tied) w->tied_to = 1 + EMBEDDING;
        else add_part(w, me->vocab, "", "lm_head");
    } else if (index == FREQUENCIES) {
        w->role = PB_WEIGHT_VECTOR; /* computed: see fill() */
        w->cols = me->head_dim / 2;
    } else if (in_layer == L_NORM || in_layer == L_MLP_NORM) {
        w->role = PB_WEIGHT_VECTOR;
        add_part(w, 1, layer, in_layer == L_NORM ? "input_layernorm" : "post_attention_layernorm");
    } else if (in_layer == L_QKV) {
        add_part(w, q, layer, "self_attn.q_proj");
        add_part(w, kv, layer, "self_attn.k_proj");
        add_part(w, kv, layer, "self_attn.v_proj");
    } else if (in_layer == L_OUT) {
        w->cols = q;
        add_part(w, me->hidden, layer, "self_attn.o_proj");
    } else if (in_layer == L_GATE_UP) {
        add_part(w, me->inner, layer, "mlp.gate_proj");
        add_part(w, me->inner, layer, "mlp.up_proj");
    } else {
        w->cols = me->inner;
        add_part(w, me->hidden, layer, "mlp.down_proj");
    }
    w->uses = 1ull << w->role;
    if (index == EMBEDDING && me->tied) w->uses |= 1ull << PB_WEIGHT_LINEAR;
    return PB_OK;
}

static pb_status fill(void *self, uint32_t index, float *out) {
    const @Class@ *const me = self;
    if (index != FREQUENCIES) return PB_INVALID;
    for (uint32_t i = 0; i < me->head_dim / 2; ++i) out[i] = (float)pow(me->theta, -2.0 * i / me->head_dim);
    return PB_OK;
}

static pb_status kv_spec(void *self, uint32_t layer, pb_kv_spec *out) {
    const @Class@ *const me = self;
    (void)layer;
    out->kind = PB_KV_FULL;
    out->heads = me->heads;
    out->kv_heads = me->kv_heads;
    out->head_dim = me->head_dim;
    out->scale = 1 / sqrtf((float)me->head_dim);
    return PB_OK;
}

/* ---- the forward pass ------------------------------------------------------------------------ */

static pb_tensor temp(const pb_forward *f, int64_t rows, int64_t columns) {
    const int64_t shape[2] = {rows, columns};
    return f->temp(f->ctx, f->activation_dtype, 2, shape);
}
/* Columns [from, from + heads · dim) of a (T, n) tensor, as (T, heads, dim). */
static pb_tensor heads_of(const pb_tensor *x, int64_t from, int64_t heads, int64_t dim) {
    pb_tensor out = *x;
    if (x->data) out.data = (char *)x->data + from * (x->dtype == PB_F32 ? 4 : 2);
    out.rank = 3;
    out.shape[1] = heads;
    out.shape[2] = out.strides[1] = dim;
    out.strides[2] = 1;
    return out;
}

static pb_status forward(void *self, const pb_forward *f) {
    const @Class@ *const me = self;
    const pb_ops *const ops = f->ops;
    void *const ctx = ops->ctx;
    const int64_t t = f->token_count, n = f->logit_rows.shape[0], d = me->head_dim;
    const int64_t q_size = me->heads * d, kv_size = me->kv_heads * d;
    const float eps = (float)me->eps;
    const pb_tensor x = temp(f, t, me->hidden), h = temp(f, t, me->hidden), y = temp(f, t, me->hidden);
    const pb_tensor qkv = temp(f, t, q_size + 2 * kv_size), attended = temp(f, t, q_size);
    const pb_tensor gate_up = temp(f, t, 2 * (int64_t)me->inner), gated = temp(f, t, me->inner);
    const pb_tensor q = heads_of(&qkv, 0, me->heads, d), k = heads_of(&qkv, q_size, me->kv_heads, d);
    const pb_tensor v = heads_of(&qkv, q_size + kv_size, me->kv_heads, d);
    const pb_tensor out = heads_of(&attended, 0, me->heads, d);
    ops->embedding(ctx, &x, f->weights[EMBEDDING], &f->ids);
    for (uint32_t i = 0; i < me->layers; ++i) {
        pb_weight *const *const w = f->weights + FIRST_LAYER + (size_t)LAYER_WEIGHTS * i;
        ops->rms_norm(ctx, &h, &x, w[L_NORM], eps);
        ops->linear(ctx, &qkv, &h, w[L_QKV]);
        ops->rope(ctx, &q, &f->positions, f->weights[FREQUENCIES], 1);
        ops->rope(ctx, &k, &f->positions, f->weights[FREQUENCIES], 1);
        f->attend(f->ctx, i, &out, &q, &k, &v);
        ops->linear(ctx, &y, &attended, w[L_OUT]);
        ops->add(ctx, &x, &y);
        ops->rms_norm(ctx, &h, &x, w[L_MLP_NORM], eps);
        ops->linear(ctx, &gate_up, &h, w[L_GATE_UP]);
        ops->silu_mul(ctx, &gated, &gate_up);
        ops->linear(ctx, &y, &gated, w[L_DOWN]);
        ops->add(ctx, &x, &y);
    }
    if (n > 0) { /* the rows that sample */
        const pb_tensor last = temp(f, n, me->hidden), normed = temp(f, n, me->hidden);
        ops->gather_rows(ctx, &last, &x, &f->logit_rows);
        ops->rms_norm(ctx, &normed, &last, f->weights[NORM], eps);
        ops->linear(ctx, &f->logits, &normed, f->weights[HEAD]);
    }
    return PB_OK;
}

static const pb_model table = {sizeof table, 0, architectures, NULL, load_config, weight_count,
                               weight, fill, kv_spec, forward};
static const pb_component component = {
    .struct_size = sizeof component, .revision = PB_MODEL_REVISION, .kind = PB_MODEL,
    .name = "@name@", .version = "0.1.0", .summary = "a decoder of the Llama kind",
    .create = create, .destroy = destroy, .vtable = &table,
};
static const pb_component *const components[] = {&component};

__attribute__((visibility("default"))) const pb_plugin pb_plugin_v1 = {
    PB_MAGIC, PB_ABI_MAJOR, PB_ABI_MINOR, sizeof pb_plugin_v1, 1,
    PATCHBAY_PLUGIN_NAME, PATCHBAY_PLUGIN_VERSION, PATCHBAY_PLUGIN_BUILD, components};
