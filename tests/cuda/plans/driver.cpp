// libcuda.so.1 without a device: enough for cuDNN to compile the kernels of its plans and to believe them loaded.
// Without cuda.h, whose prototypes would have every argument of what is only looked up written out.
namespace {

constexpr int success = 0;
int thing = 0;

}  // namespace

extern "C" {

#define LOOKED_UP(name) \
  int name() { return success; }
#define GIVES(name, type, value) \
  int name(type* result) {       \
    *result = value;             \
    return success;              \
  }

GIVES(cuDriverGetVersion, int, 13000)
GIVES(cuDeviceGetCount, int, 1)
GIVES(cuDeviceGet, int, 0)
GIVES(cuDeviceGetAttribute, int, 1)
GIVES(cuCtxGetDevice, int, 0)
GIVES(cuCtxGetCurrent, void*, &thing)
GIVES(cuCtxPopCurrent, void*, &thing)
GIVES(cuCtxGetLimit, unsigned long, 0)
GIVES(cuDevicePrimaryCtxRetain, void*, &thing)
GIVES(cuLibraryLoadData, void*, &thing)
GIVES(cuLibraryLoadFromFile, void*, &thing)
GIVES(cuLibraryGetKernel, void*, &thing)
GIVES(cuModuleLoadData, void*, &thing)
GIVES(cuModuleLoadDataEx, void*, &thing)
GIVES(cuModuleLoadFatBinary, void*, &thing)
GIVES(cuModuleGetFunction, void*, &thing)
GIVES(cuModuleGetGlobal_v2, void*, &thing)
GIVES(cuKernelGetAttribute, int, 0)
GIVES(cuFuncGetAttribute, int, 0)
GIVES(cuOccupancyMaxPotentialClusterSize, int, 8)
GIVES(cuOccupancyMaxActiveBlocksPerMultiprocessor, int, 1)
int cuGetErrorName(int, const char** text) {
  *text = "an error";
  return success;
}
int cuGetErrorString(int status, const char** text) { return cuGetErrorName(status, text); }
int cuStreamGetCtx(void*, void** context) {
  *context = &thing;
  return success;
}

// The compiler asks for more where this succeeds.
int cuInit(unsigned) { return 34; }
int cuGetExportTable(const void**, const void*) { return 34; }
LOOKED_UP(cuCtxPushCurrent)
LOOKED_UP(cuDevicePrimaryCtxRelease)
LOOKED_UP(cuDevicePrimaryCtxReset)
LOOKED_UP(cuFuncSetAttribute)
LOOKED_UP(cuKernelSetAttribute)
LOOKED_UP(cuLaunchCooperativeKernel)
LOOKED_UP(cuLaunchKernel)
LOOKED_UP(cuLaunchKernelEx)
LOOKED_UP(cuLibraryUnload)
LOOKED_UP(cuLinkAddData)
LOOKED_UP(cuLinkAddData_v2)
LOOKED_UP(cuLinkAddFile_v2)
LOOKED_UP(cuLinkComplete)
LOOKED_UP(cuLinkCreate)
LOOKED_UP(cuLinkCreate_v2)
LOOKED_UP(cuLinkDestroy)
LOOKED_UP(cuMemcpyDtoH_v2)
LOOKED_UP(cuModuleUnload)
LOOKED_UP(cuStreamSynchronize)
LOOKED_UP(cuTensorMapEncodeTiled)

}  // extern "C"
