/* kept_c - a token table, attention over the tokens themselves in each layer, and an lm head, in plain C. */
#include <stdio.h>

#include "patchbay/abi/model.h"
#include "plain.h"

enum { HEADS = 4 };

struct model {
    const pb_host *host;
    uint32_t hidden, layers, vocab;
};

/* A number of 1 to 2^20; 0: config.json has none. */
static uint32_t number(const pb_model_config *config, const char *key) {
    for (uint32_t i = 0; i < config->count; ++i) {
        const pb_setting *const s = &config->items[i];
        char digits[16] = "", *end = digits;
        unsigned long value;
        if (s->key.size != strlen(key) || memcmp(s->key.data, key, s->key.size) != 0) continue;
        if (s->value.size == 0 || s->value.size >= sizeof digits || s->value.data[0] == '-') return 0;
        memcpy(digits, s->value.data, s->value.size);
        value = strtoul(digits, &end, 10);
        return *end || value > 1u << 20 ? 0 : (uint32_t)value;
    }
    return 0;
}

static pb_status load_config(void *self, const pb_model_config *config, pb_model_facts *out) {
    struct model *const m = self;
    m->hidden = number(config, "hidden_size");
    m->layers = number(config, "num_hidden_layers");
    m->vocab = number(config, "vocab_size");
    if (m->hidden == 0 || m->layers == 0 || m->vocab == 0)
        return refuse(m->host, PB_INVALID, "hidden_size, num_hidden_layers or vocab_size is not in 1 to 1048576");
    if (m->hidden % HEADS != 0) return refuse(m->host, PB_UNSUPPORTED, "hidden_size is no multiple of 4");
    out->vocab_size = m->vocab;
    out->hidden_size = m->hidden;
    out->layer_count = m->layers;
    out->max_position = 512;
    out->flags = 0;
    return PB_OK;
}

static uint32_t weight_count(void *self) { return (void)self, 2; }

static pb_status weight(void *self, uint32_t index, pb_weight_spec *out) {
    const struct model *const m = self;
    static const char *const names[] = {"embed.weight", "head.weight"};
    if (index > 1) return refuse(m->host, PB_INVALID, "there are two weights");
    out->role = index == 0 ? PB_WEIGHT_EMBEDDING : PB_WEIGHT_LINEAR;
    out->uses = (uint64_t)1 << out->role;
    out->cols = m->hidden;
    out->part_count = 1;
    snprintf(out->parts[0].name, sizeof out->parts[0].name, "%s", names[index]);
    out->parts[0].rows = m->vocab;
    return PB_OK;
}

static pb_status fill(void *self, uint32_t index, float *out) {
    return (void)index, (void)out, refuse(((const struct model *)self)->host, PB_INVALID, "no weight is computed");
}

static pb_status kv_spec(void *self, uint32_t layer, pb_kv_spec *out) {
    const struct model *const m = self;
    if (layer >= m->layers) return refuse(m->host, PB_INVALID, "no such layer");
    out->kind = PB_KV_FULL;
    out->heads = out->kv_heads = HEADS;
    out->head_dim = m->hidden / HEADS;
    out->scale = 0.25f;
    return PB_OK;
}

static pb_tensor as_heads(pb_tensor x) { /* (T, hidden) as (T, heads, head_dim) */
    x.rank = 3;
    x.shape[2] = x.shape[1] / HEADS;
    x.shape[1] = HEADS;
    x.strides[1] = x.shape[2];
    x.strides[2] = 1;
    return x;
}

static pb_status forward(void *self, const pb_forward *f) {
    const struct model *const m = self;
    const pb_ops *const ops = f->ops;
    const int64_t shape[2] = {f->token_count, m->hidden}, rows[2] = {f->logit_rows.shape[0], m->hidden};
    const pb_tensor x = f->temp(f->ctx, f->activation_dtype, 2, shape);
    const pb_tensor y = f->temp(f->ctx, f->activation_dtype, 2, shape);
    const pb_tensor last = f->temp(f->ctx, f->activation_dtype, 2, rows);
    ops->embedding(ops->ctx, &x, f->weights[0], &f->ids);
    for (uint32_t layer = 0; layer < m->layers; ++layer) {
        const pb_tensor in = as_heads(x), out = as_heads(y);
        f->attend(f->ctx, layer, &out, &in, &in, &in);
        ops->add(ops->ctx, &x, &y);
    }
    ops->gather_rows(ops->ctx, &last, &x, &f->logit_rows);
    ops->linear(ops->ctx, &f->logits, &last, f->weights[1]);
    return PB_OK;
}

static pb_status create(const pb_host *host, const pb_config *config, void **self) {
    struct model *const out = calloc(1, sizeof *out);
    (void)config;
    if (!out) return refuse(host, PB_EXHAUSTED, "no memory");
    out->host = host;
    *self = out;
    return PB_OK;
}

static const char *const architectures[] = {"KeptForCausalLM", NULL};
static const pb_model table = {.struct_size = sizeof table,
                               .architectures = architectures,
                               .load_config = load_config,
                               .weight_count = weight_count,
                               .weight = weight,
                               .fill = fill,
                               .kv_spec = kv_spec,
                               .forward = forward};
static const pb_component component = {.struct_size = sizeof component,
                                       .param_stride = sizeof(pb_param),
                                       .revision = PB_MODEL_REVISION,
                                       .kind = PB_MODEL,
                                       .name = "kept_c",
                                       .version = "1.0.0",
                                       .summary = "a token table, attention and an lm head",
                                       .create = create,
                                       .destroy = destroy_plain,
                                       .vtable = &table};
EXPORT_ONE(component)
