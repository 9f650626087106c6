// patchbay/sdk/op_list.hpp - the members of pb_ops, once, for what is made from each of them: X(name) for every op.
#pragma once

// Those that one rank computes alone.
#define PB_EACH_LOCAL_OP(X)                                                                                    \
    X(embedding) X(linear) X(rms_norm) X(add_rms_norm) X(rope) X(silu_mul) X(add) X(gather_rows) X(layer_norm) \
    X(relu) X(gelu_tanh) X(gelu_tanh_mul) X(scale) X(soft_cap) X(top_k) X(expert_linear) X(weighted_sum)       \
    X(gated_mlp) X(causal_conv_silu) X(ssm_scan) X(fill_placeholders) X(silu) X(gelu_erf) X(gelu_erf_mul)      \
    X(sigmoid_mul) X(swiglu_oai)

// Those between ranks.
#define PB_EACH_COLLECTIVE_OP(X) X(all_reduce) X(all_gather)

#define PB_EACH_OP(X) PB_EACH_LOCAL_OP(X) PB_EACH_COLLECTIVE_OP(X)
