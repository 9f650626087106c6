/* patchbay/abi/cost.h - what work takes: given by plugins whose device computes nothing, charged by that device. */
#ifndef PATCHBAY_ABI_COST_H
#define PATCHBAY_ABI_COST_H
#include "patchbay/abi/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pb_cost { /* [call] */
    uint32_t struct_size;
    uint32_t launches;                /* kernels, one after the other                   */
    uint64_t flop;                    /* a multiply-add is two                          */
    uint64_t read_bytes, write_bytes; /* of the device's memory                         */
    pb_dtype flop_dtype;              /* of what is multiplied: whose peak counts       */
    uint32_t in_graph;                /* 1: part of a replayed graph, where launches cost what its nodes do */
} pb_cost;

#ifdef __cplusplus
}
#endif
#endif
