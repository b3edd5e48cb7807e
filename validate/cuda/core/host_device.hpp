// Functions that run on hosts and GPUs alike.
#pragma once

#ifdef __CUDACC__
#define FORETRAIN_HOST_DEVICE __host__ __device__
#else
#define FORETRAIN_HOST_DEVICE
#endif
