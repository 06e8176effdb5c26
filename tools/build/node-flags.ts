/**
 * Node's options in the one-file binary, and so in the image: less memory for a little more computing. Young objects get 8 MiB
 * instead of 16, and one thread helps to collect garbage and to compile: more take turns on few cores with an API server.
 * With an option that changes how it collects, V8 would compile again what is compiled into Node (see src/composition/small-heap.ts).
 * The heap has no limit: that of a plan is not known.
 */
export const NODE_FLAGS = ['--max-semi-space-size=8', '--v8-pool-size=1'] as const;
