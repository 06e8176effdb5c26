/**
 * The environment variables of an agent. With them, glibc returns freed memory to the kernel at once (mallopt(3)), and
 * only two threads read files.
 */
export const AGENT_ENVIRONMENT = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '16384',
  MALLOC_TRIM_THRESHOLD_: '65536',
  MALLOC_TOP_PAD_: '0',
  UV_THREADPOOL_SIZE: '2',
} as const;
