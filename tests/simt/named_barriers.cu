// Barriers that have a number: right ones, and each way to get one wrong. Line numbers matter to the tests.
#include "audit_barrier.h"

constexpr unsigned kWarp = 32;

// Two warps hand values to two others through a ring of two places. Full is barrier 1 + place, empty 3 + place.
template <bool Full, bool Empty>
__global__ void ring(const int* in, int* out, int rounds) {
  __shared__ int places[2][2 * kWarp];
  const int t = threadIdx.x % (2 * kWarp);
  if (threadIdx.x < 2 * kWarp) {
    for (int i = 0; i < rounds; ++i) {
      if (Empty && i >= 2) audit::barrier_sync(3 + i % 2, 4 * kWarp);
      places[i % 2][t] = in[i * 2 * kWarp + t];  // filled
      if (Full) audit::barrier_arrive(1 + i % 2, 4 * kWarp);
    }
  } else {
    for (int i = 0; i < rounds; ++i) {
      if (Full) audit::barrier_sync(1 + i % 2, 4 * kWarp);
      out[i * 2 * kWarp + t] = places[i % 2][2 * kWarp - 1 - t];  // taken
      if (Empty && i + 2 < rounds) audit::barrier_arrive(3 + i % 2, 4 * kWarp);
    }
  }
}

// The same ring with barriers that are objects in shared memory.
template <bool Full, bool Empty>
__global__ void ring_of_objects(const int* in, int* out, int rounds) {
  __shared__ int places[2][2 * kWarp];
  __shared__ audit::Barrier full[2], empty[2];
  const int t = threadIdx.x % (2 * kWarp);
  if (threadIdx.x < 2) {
    full[threadIdx.x].start(1 + threadIdx.x, 4 * kWarp);
    empty[threadIdx.x].start(3 + threadIdx.x, 4 * kWarp);
  }
  __syncthreads();
  if (threadIdx.x < 2 * kWarp) {
    for (int i = 0; i < rounds; ++i) {
      if (Empty && i >= 2) empty[i % 2].sync();
      places[i % 2][t] = in[i * 2 * kWarp + t];  // put into the place
      if (Full) full[i % 2].arrive();
    }
  } else {
    for (int i = 0; i < rounds; ++i) {
      if (Full) full[i % 2].sync();
      out[i * 2 * kWarp + t] = places[i % 2][2 * kWarp - 1 - t];  // got from the place
      if (Empty && i + 2 < rounds) empty[i % 2].arrive();
    }
  }
}

// An mbarrier counts threads: one that has exited would be waited for for ever.
__global__ void object_without_a_lane() {
  __shared__ audit::Barrier barrier;
  if (threadIdx.x == 0) barrier.start(5, kWarp);
  __syncthreads();
  if (threadIdx.x == 7) return;
  barrier.sync();  // all but one
}

// Half of the last warp is not there: too few arrivals.
__global__ void object_of_a_short_block() {
  __shared__ audit::Barrier barrier;
  if (threadIdx.x == 0) barrier.start(5, 2 * kWarp);
  __syncthreads();
  barrier.sync();  // 48 of 64
}

// On a GPU these are two barriers, each with one warp of two.
__global__ void object_and_number() {
  __shared__ audit::Barrier barrier;
  if (threadIdx.x == 0) barrier.start(6, 2 * kWarp);
  __syncthreads();
  if (threadIdx.x < kWarp) {
    barrier.sync();  // the object
  } else {
    audit::barrier_sync(6, 2 * kWarp);  // the number
  }
}

__global__ void object_not_started() {
  __shared__ audit::Barrier barrier;
  barrier.arrive();  // of what
}

// A barrier of two of three warps, from two places in the code, again and again; the third one has its own way.
__global__ void pair(int* out, int rounds) {
  __shared__ int left[kWarp], right[kWarp];
  const int lane = threadIdx.x % kWarp;
  if (threadIdx.x < kWarp) {
    for (int i = 0; i < rounds; ++i) {
      left[lane] = i;
      audit::barrier_sync(15, 2 * kWarp);
      out[lane] += right[kWarp - 1 - lane];
      audit::barrier_sync(15, 2 * kWarp);
    }
  } else if (threadIdx.x < 2 * kWarp) {
    for (int i = 0; i < rounds; ++i) {
      right[lane] = 10 * i;
      audit::barrier_sync(15, 2 * kWarp);
      out[kWarp + lane] += left[kWarp - 1 - lane];
      audit::barrier_sync(15, 2 * kWarp);
    }
  }
  __syncthreads();
  if (threadIdx.x >= 2 * kWarp) out[threadIdx.x] = out[threadIdx.x - kWarp];
}

// Two of three warps meet, and of these the second one meets the third: that orders nothing of the third's with the
// first's later work. With one token a barrier, whoever runs late would see the third's write as ordered.
__global__ void third_party(int* out) {
  __shared__ int value;
  const unsigned warp = threadIdx.x / kWarp;
  if (warp == 0) {
    audit::barrier_sync(1, 2 * kWarp);
    if (threadIdx.x == 0) out[0] = value;  // read by the first
  } else if (warp == 1) {
    audit::barrier_sync(1, 2 * kWarp);
    audit::barrier_sync(2, 2 * kWarp);
    audit::barrier_sync(1, 2 * kWarp);
  } else {
    if (threadIdx.x == 2 * kWarp) value = 1;  // written by the third
    audit::barrier_sync(2, 2 * kWarp);
    audit::barrier_sync(1, 2 * kWarp);
  }
}

// An arrival is a promise to those that wait, and to nobody else.
__global__ void arrives_only(int* out) {
  __shared__ int value;
  if (threadIdx.x < kWarp) {
    if (threadIdx.x == 0) value = 1;  // before
    audit::barrier_sync(1, 2 * kWarp);
  } else {
    audit::barrier_arrive(1, 2 * kWarp);
    if (threadIdx.x == kWarp) out[0] = value;  // not after
  }
}

__global__ void missing_arrival(int* out) {
  if (threadIdx.x < kWarp) {
    out[0] = 1;
  } else {
    audit::barrier_sync(7, 3 * kWarp);  // in vain
  }
}

// Lanes that have exited are not waited for.
__global__ void lanes_exit(int* out) {
  if (threadIdx.x % kWarp < 5) return;
  audit::barrier_sync(1, 2 * kWarp);
  out[threadIdx.x] = 1;
}

__global__ void lanes_exit_late(int* out) {
  if (threadIdx.x % kWarp < 5) {
    __syncwarp(31);
    return;
  }
  audit::barrier_sync(1, 2 * kWarp);
  out[threadIdx.x] = 1;
}

__global__ void two_counts() {
  if (threadIdx.x < kWarp) {
    audit::barrier_arrive(2, 4 * kWarp);  // of four warps
  } else {
    audit::barrier_sync(2, 2 * kWarp);  // of two warps
  }
}

__global__ void any_barrier(unsigned id, unsigned threads) {
  audit::barrier_sync(id, threads);  // whichever
}

__global__ void half_a_warp() {
  if (threadIdx.x < 16) {
    audit::barrier_sync(4, kWarp);  // the first half
  } else {
    audit::barrier_sync(4, kWarp);  // the second half
  }
}

// What nobody waits for stays behind, and the next block begins anew.
__global__ void left_behind(int* out) {
  if (threadIdx.x < kWarp) audit::barrier_arrive(9, 2 * kWarp);
  out[blockIdx.x] = 1;
}
