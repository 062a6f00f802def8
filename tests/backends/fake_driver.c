// A libcuda.so.1 whose device is this process: the calls that a replay makes, checked against cuda.h by the compiler.
//
// The device computes only what kernels.cu holds, by the kernels' names. It is strict where a driver is: memory is
// exact and holds rubbish, launches during a capture run only when the graph does, an error stays.
// FAKE_CUDA: `none` has no device, `small` 8 MiB of memory; `fork` and `shortcut` capture graphs that are no chains,
// `foreign` one whose functions are another module's; `stale` replays that do nothing, `short` a graph without its last
// launch, `forgetful` one that forgets the shared memory and the attributes, so that its kernels crash and the plain
// ones do not.
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef cuGraphGetEdges  // the symbol without suffix takes no edge data
#undef cuEventElapsedTime

enum { kMaxLaunches = 64, kAhead = 512 };  // kAhead bytes before an allocation keep its size
static const CUresult kStrayError = CUDA_ERROR_ILLEGAL_ADDRESS;

typedef struct {
  const char* name;
  int count;
  size_t sizes[8];
} Kernel;

static const Kernel kernels[] = {
    {"scale", 4, {8, 8, 4, 4}},    {"increment", 2, {8, 4}},         {"reversed", 3, {8, 8, 4}},
    {"arrived", 6, {8, 8, 1, 4, 8, 8}}, {"overrun", 3, {8, 8, 4}}, {"stray", 1, {8}}, {"spin", 1, {8}},
    {"count_differing_bytes", 4, {8, 8, 8, 8}},
};

typedef struct {
  const Kernel* kernel;
  unsigned grid[3], block[3], shared, cooperative, cluster[3];
  unsigned char values[8][8];
} Launch;

typedef struct {
  size_t count;
  Launch launches[kMaxLaunches];
} Graph;

static Graph captured;  // on its way; a graph that is done is a copy
static int capturing, current;
static int on_its_way;  // a copy to the device is only over when somebody has waited: ours is no stream that waits
static CUresult sticky;
static size_t allocated;
static CUmodule loaded;

static int is(const char* what) {
  const char* mode = getenv("FAKE_CUDA");
  return mode && strcmp(mode, what) == 0;
}
static size_t memory(void) { return is("small") ? (size_t)8 << 20 : (size_t)8 << 30; }

static void run(const Launch* l) {
  if (on_its_way) sticky = CUDA_ERROR_UNKNOWN;
  float* p[2] = {0, 0};
  int n = 0;
  for (int i = 0; i < 2; ++i)
    if (i < l->kernel->count) memcpy(&p[i], l->values[i], sizeof p[i]);
  const char* name = l->kernel->name;
  if (strcmp(name, "scale") == 0) {
    float factor;
    memcpy(&n, l->values[2], 4), memcpy(&factor, l->values[3], 4);
    for (int i = 0; i < n && (unsigned)i < l->grid[0] * l->block[0]; ++i) p[1][i] = factor * p[0][i];
  } else if (strcmp(name, "increment") == 0) {
    memcpy(&n, l->values[1], 4);
    for (int i = 0; i < n; ++i) p[0][i] += 1.0f;
  } else if (strcmp(name, "reversed") == 0) {
    memcpy(&n, l->values[2], 4);
    if (l->shared < sizeof(float) * (size_t)n) sticky = kStrayError;
    else
      for (int i = 0; i < n; ++i) p[1][i] = p[0][n - 1 - i];
  } else if (strcmp(name, "arrived") == 0) {
    uint64_t* y = (uint64_t*)p[0];
    uint32_t b;
    y[0] = (uint64_t)p[1] % 256;
    y[1] = (uint64_t)(int64_t)(signed char)l->values[2][0];
    memcpy(&b, l->values[3], 4), y[2] = b;
    memcpy(&y[3], l->values[4], 8), memcpy(&y[4], l->values[5], 8);
  } else if (strcmp(name, "overrun") == 0) {
    memcpy(&n, l->values[2], 4);
    p[1][n] = 1.0f, p[0][0] = 5.0f;
  } else if (strcmp(name, "count_differing_bytes") == 0) {
    uint64_t size, *total;
    memcpy(&size, l->values[2], 8), memcpy(&total, l->values[3], 8);
    if (memcmp(p[0], p[1], size) == 0) return;
    for (uint64_t i = 0; i < size; ++i) *total += ((const char*)p[0])[i] != ((const char*)p[1])[i];
  } else if (strcmp(name, "stray") == 0) {
    sticky = kStrayError;
  } else {
    for (;;) {
    }
  }
}

CUresult cuInit(unsigned flags) {
  return flags ? CUDA_ERROR_INVALID_VALUE : is("none") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }
CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  (void)device;
  return snprintf(name, (size_t)length, "Fake 9000"), CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return (void)device, *bytes = (size_t)8 << 30, CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return *value = 9, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return *value = 0, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return *value = 1, CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return *value = 232448, CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return (void)device, *context = (CUcontext)&current, CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) { return current = context == (CUcontext)&current, CUDA_SUCCESS; }
CUresult cuCtxSynchronize(void) {
  return on_its_way = 0, capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : sticky;
}
CUresult cuMemGetInfo(size_t* available, size_t* total) {
  return *total = memory(), *available = memory() - allocated, CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* base, size_t bytes) {
  if (!current) return CUDA_ERROR_INVALID_CONTEXT;
  if (bytes == 0 || capturing) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > memory() - allocated) return CUDA_ERROR_OUT_OF_MEMORY;
  void* place = 0;
  if (posix_memalign(&place, kAhead, kAhead + bytes) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *(size_t*)place = bytes;
  memset((char*)place + kAhead, 0xAB, bytes);
  return allocated += bytes, *base = (CUdeviceptr)place + kAhead, CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr base) {
  void* const place = (void*)(base - kAhead);
  return allocated -= *(size_t*)place, free(place), sticky;
}
CUresult cuMemsetD8(CUdeviceptr to, unsigned char value, size_t bytes) {
  return memset((void*)to, value, bytes), sticky;
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t words, CUstream stream) {
  (void)stream;
  for (size_t i = 0; i < words; ++i) ((unsigned*)to)[i] = value;
  return sticky;
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return (void)stream, memcpy((void*)to, (const void*)from, bytes), sticky;
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return memcpy((void*)to, (const void*)from, bytes), sticky;
}
CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return (void)module, (void)name, *address = 0, *bytes = 0, CUDA_ERROR_NOT_FOUND;
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return on_its_way = 1, memcpy((void*)to, from, bytes), sticky;
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return memcpy(to, (const void*)from, bytes), sticky;
}
CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return loaded = *module = (CUmodule)image, memcmp(image, "\177ELF", 4) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
CUresult cuModuleUnload(CUmodule module) {
  return module == loaded ? loaded = 0, CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  (void)module;
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; ++i)
    if (strcmp(kernels[i].name, name) == 0) return *function = (CUfunction)&kernels[i], CUDA_SUCCESS;
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  (void)function;
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) return CUDA_SUCCESS;
  return attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value <= 232448 ? CUDA_SUCCESS
                                                                                       : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  const Kernel* kernel = (const Kernel*)function;
  if (index >= (size_t)kernel->count) return CUDA_ERROR_INVALID_VALUE;
  return *offset = 0, *size = kernel->sizes[index], CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char** name, CUfunction function) {
  return *name = ((const Kernel*)function)->name, CUDA_SUCCESS;
}
CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return (void)function, *module = is("foreign") ? (CUmodule)kernels : loaded, CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return (void)kernel, *function = 0, CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return *stream = (CUstream)&captured, flags == CU_STREAM_NON_BLOCKING ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuStreamDestroy(CUstream stream) {
  return stream == (CUstream)&captured ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuStreamSynchronize(CUstream stream) {
  return (void)stream, capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : sticky;
}
CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return *event = (CUevent)&captured, flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) { return (void)event, (void)stream, CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent event) { return (void)event, sticky; }
CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  return (void)from, (void)to, *milliseconds = 1, CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  const CUlaunchConfig c = *config;
  if (extra || c.hStream != (CUstream)&captured || c.blockDimX * c.blockDimY * c.blockDimZ > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  Launch launch = {(const Kernel*)function,
                   {c.gridDimX, c.gridDimY, c.gridDimZ},
                   {c.blockDimX, c.blockDimY, c.blockDimZ},
                   c.sharedMemBytes, 0, {0, 0, 0}, {{0}}};
  for (unsigned i = 0; i < c.numAttrs; ++i)
    if (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      launch.cooperative = (unsigned)c.attrs[i].value.cooperative;
    else if (c.attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      memcpy(launch.cluster, &c.attrs[i].value.clusterDim, sizeof launch.cluster);
    else
      return CUDA_ERROR_INVALID_VALUE;
  for (int i = 0; i < 3; ++i)
    if (launch.cluster[i] && launch.grid[i] % launch.cluster[i]) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  if (launch.cooperative && launch.grid[0] > 132) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  for (int i = 0; i < launch.kernel->count; ++i) memcpy(launch.values[i], parameters[i], launch.kernel->sizes[i]);
  if (!capturing) run(&launch);
  else if (captured.count < kMaxLaunches) captured.launches[captured.count++] = launch;
  return sticky && !capturing ? CUDA_SUCCESS : sticky;  // what a kernel did shows when it is waited for
}
CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream stream, void** parameters, void** extra) {
  const CUlaunchConfig config = {gx, gy, gz, bx, by, bz, shared, stream, 0, 0};
  return cuLaunchKernelEx(&config, function, parameters, extra);
}
CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUlaunchAttributeID id, CUlaunchAttributeValue* value) {
  const Launch* l = (const Launch*)node;
  memset(value, 0, sizeof *value);
  if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) value->cooperative = (int)l->cooperative;
  else if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) memcpy(&value->clusterDim, l->cluster, sizeof l->cluster);
  else return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}
CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  (void)stream, capturing = 1, captured.count = 0;
  return mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  const char* seen = getenv("FAKE_CUDA_SEEN");  // a file that takes the first argument's first float at this moment
  FILE* file = seen ? fopen(seen, "w") : 0;
  if (file) {
    const float* first;
    memcpy(&first, captured.launches[0].values[0], sizeof first);
    fprintf(file, "%g", (double)*first), fclose(file);
  }
  if (is("short")) captured.count -= 1;
  for (size_t i = 0; i < captured.count && is("forgetful"); ++i) {
    Launch* const l = &captured.launches[i];
    l->shared = l->cooperative = l->cluster[0] = l->cluster[1] = l->cluster[2] = 0;
  }
  Graph* const done = malloc(sizeof *done);
  *done = captured;
  return (void)stream, capturing = 0, *graph = (CUgraph)done, CUDA_SUCCESS;
}
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  Graph* const g = (Graph*)graph;
  for (size_t i = 0; nodes && i < *count; ++i)  // in no helpful order
    nodes[i] = (CUgraphNode)&g->launches[g->count - 1 - i];
  return *count = g->count, CUDA_SUCCESS;
}
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  const size_t shortcut = is("shortcut") ? 1 : 0;  // beside the chain an edge from the first to the last
  Graph* const g = (Graph*)graph;
  for (size_t i = 0; from && i < *count; ++i) {
    from[i] = (CUgraphNode)&g->launches[is("fork") || i < shortcut ? 0 : i - shortcut];
    to[i] = (CUgraphNode)&g->launches[i < shortcut ? g->count - 1 : i + 1 - shortcut];
  }
  return *count = g->count - 1 + shortcut, CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  return (void)node, *type = CU_GRAPH_NODE_TYPE_KERNEL, CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* p) {
  const Launch* l = (const Launch*)node;
  memset(p, 0, sizeof *p);
  p->func = (CUfunction)l->kernel;
  p->gridDimX = l->grid[0], p->gridDimY = l->grid[1], p->gridDimZ = l->grid[2];
  p->blockDimX = l->block[0], p->blockDimY = l->block[1], p->blockDimZ = l->block[2];
  return p->sharedMemBytes = l->shared, CUDA_SUCCESS;
}
CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  return *executable = (CUgraphExec)graph, flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) { return graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }  // as its executable
CUresult cuGraphExecDestroy(CUgraphExec executable) { return free(executable), CUDA_SUCCESS; }
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  const Graph* const g = (const Graph*)executable;
  if (stream != (CUstream)&captured) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < g->count && !sticky && !is("stale"); ++i) run(&g->launches[i]);
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == kStrayError            ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
                                          : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  return *text = error == kStrayError ? "an illegal memory access was encountered" : "some error", CUDA_SUCCESS;
}
