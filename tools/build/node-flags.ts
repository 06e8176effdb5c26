/**
 * The options of Node in the one-file binary, and so in the image. They save memory and need a little more computing.
 * Young objects get 8 MiB instead of 16. Only one thread helps to collect garbage and to compile, because more threads
 * would compete for few cores with an API server. There is no option that changes how V8 collects garbage, because V8
 * would then compile again what is compiled into Node (see src/composition/small-heap.ts). The heap has no limit,
 * because the heap size that a plan needs is not known.
 */
export const NODE_FLAGS = ['--max-semi-space-size=8', '--v8-pool-size=1'] as const;
