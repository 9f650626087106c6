/* patchbay/abi/tensor.h - how numbers cross: dtypes, and a view of a strided array. All a kernel may know. */
#ifndef PATCHBAY_ABI_TENSOR_H
#define PATCHBAY_ABI_TENSOR_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t pb_dtype;
enum {
    PB_F32  = 0,
    PB_BF16 = 1,
    PB_F16  = 2,
    PB_I32  = 3,
    PB_I64  = 4,
    PB_I8   = 5,
    PB_U8   = 6,
    PB_I4   = 7, /* of quantised weights only: two a byte, see pb_quant */
    PB_FP8  = 8  /* e4m3 without infinities: up to ±448; 0x7f and 0xff are NaN */
};

#define PB_MAX_RANK 4

typedef struct pb_tensor { /* a view: owns nothing. Closed: kernels are compiled against it */
    void    *data;                 /* NULL on devices that compute nothing               */
    pb_dtype dtype;
    int32_t  rank;                 /* 1 … PB_MAX_RANK                                    */
    int64_t  shape[PB_MAX_RANK];   /* outermost first; entries past rank are 1           */
    int64_t  strides[PB_MAX_RANK]; /* in elements                                        */
    int32_t  device;               /* 0: host memory; n: device n−1 of the device plugin */
    int32_t  reserved;
} pb_tensor;

#ifdef __cplusplus
}
#endif
#endif
