/**
 * Node's options for an agent, which runs on every node for months and computes very little: no compilers, no start-up
 * snapshot, no threads for V8, and garbage is collected when the agent comes to rest.
 */
export const AGENT_FLAGS = ['--jitless', '--no-node-snapshot', '--v8-pool-size=0', '--expose-gc'] as const;
